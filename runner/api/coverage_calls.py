"""Which hooks and rules a logged tool call came to, as far as the log tells.

A hook that let a call pass stands in no log, but that it was asked follows from the others: a call
that ran was shown to all hooks that are meant for its tool, and one that was blocked to those that
stand before the one that blocked it. Where several may have done what is logged, each counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from runner.api.coverage_items import APPLIED, ASKED, FALSE, RAN, TRUE, Json, hook_of
from runner.engine.message import text_of
from runner.engine.tool_calls import CUT
from runner.engine.tool_outcome import ENDING, SKIPPED, UNFIT, not_run

Hit = Callable[[str, str], None]
"""Takes the PATH of an item, and a part of it that was exercised."""

# How the result of a call begins that no hook was asked about, and of one that all were.
_TOO_EARLY = (CUT, ENDING, SKIPPED, UNFIT, "There is no tool ", "The arguments are not a JSON ")
_AT_A_LIMIT = "Not run: the run's limit of "
_DENIED_BY = "denied by the rule deny: "
_NOT_ASKED = "needs a person's permission, and nobody can be asked"
_SAID_NO = "the person who was asked said no"
_CODE = ("python", "command")


@dataclass(slots=True)
class Call:
    """A tool call, as its lines tell it."""

    name: str
    arguments: Any
    rewrites: list[Json] = field(default_factory=list)
    """The arguments that hooks gave it, one after the other."""
    block: Json | None = None
    """The decision that kept it from being run."""

    def decide(self, decision: Json) -> None:
        """Take a decision of a hook before the call."""
        if decision["action"] == "rewrite":
            self.rewrites.append(decision.get("arguments") or {})
        elif decision["action"] == "block" or decision.get("on_error") != "warn":
            self.block = decision


def tell_call(spec: Json, call: Call, end: Json, tool: str | None, hit: Hit) -> None:
    """Tell what a call exercised.

    Args:
        spec: The spec of the agent that made it.
        call: The call.
        end: Its ``tool_execution_end``.
        tool: The PATH of its tool; None where the spec has none of that name.
        hit: Is told.
    """
    said = text_of(end["result"]["content"]) if end["is_error"] else ""
    if call.block is None and said.startswith(_TOO_EARLY):
        for n, entry in enumerate(_before(spec)):
            if hook_of(entry)[0] == "set" and _is_rewritten(entry["set"], call):
                hit(f"hooks.before_tool_call[{n}]", _part(entry["set"], TRUE))
        return
    if "stopped" in end and said == not_run(end["stopped"]):
        return  # before or after the hooks were asked
    _tell_permissions(spec, call, hit)
    _tell_before(spec, call, hit)
    if call.block is not None or said.startswith(_AT_A_LIMIT):
        return
    if tool is not None:
        hit(tool, RAN)
    for n in range(len((spec.get("hooks") or {}).get("after_tool_call") or ())):
        hit(f"hooks.after_tool_call[{n}]", ASKED)


# --- hooks ----------------------------------------------------------------------------------------


def _before(spec: Json) -> Sequence[Json]:
    return (spec.get("hooks") or {}).get("before_tool_call") or ()


def _tell_before(spec: Json, call: Call, hit: Hit) -> None:
    if call.block is not None and _is_of_permissions(spec, call.block):
        return  # they are asked first
    entries = _before(spec)
    blockers = _blockers(entries, call)
    for n, entry in enumerate(entries):
        path, (tag, value) = f"hooks.before_tool_call[{n}]", hook_of(entry)
        if not _is_meant(tag, value, call):
            continue
        if n in blockers:
            hit(path, _part(value, TRUE))
            continue
        if blockers and n > blockers[0]:
            continue
        if tag == "set":
            hit(path, _part(value, TRUE if _is_rewritten(value, call) else FALSE))
        else:
            hit(path, _part(value, FALSE) if tag == "deny" else ASKED)
        if tag == "allow" and value.get("when") is None and not blockers:
            return


def _is_meant(tag: str, value: Any, call: Call) -> bool:
    return tag in _CODE or fnmatchcase(call.name, str(value.get("tool", "")))


def _part(value: Any, answer: str) -> str:
    """The part that an answer of a hook is, which has two where it has a condition."""
    has_condition = isinstance(value, Mapping) and value.get("when") is not None
    return answer if has_condition else ASKED


def _is_rewritten(value: Json, call: Call) -> bool:
    """Whether a ``set`` may have made one of a call's rewrites."""
    wanted = (value.get("args") or {}).items()
    return fnmatchcase(call.name, str(value["tool"])) and any(
        all(key in made and made[key] == item for key, item in wanted) for made in call.rewrites
    )


def _blockers(entries: Sequence[Json], call: Call) -> list[int]:
    """Which hooks may have blocked a call."""
    if call.block is None:
        return []
    reason = call.block.get("reason")
    tagged = [(n, *hook_of(entry)) for n, entry in enumerate(entries)]
    meant = [(n, tag, value) for n, tag, value in tagged if _is_meant(tag, value, call)]
    if call.block["action"] == "fail":
        return [n for n, tag, value in meant if tag in _CODE or value.get("when") is not None]
    denied = [
        n
        for n, tag, value in meant
        if tag == "deny" and reason == (value.get("reason") or f"{call.name} is denied")
    ]
    return denied or [n for n, tag, _ in meant if tag in _CODE]


# --- permissions ----------------------------------------------------------------------------------


def _is_of_permissions(spec: Json, block: Json) -> bool:
    reason = str(block.get("reason"))
    told = reason.startswith(_DENIED_BY) or _NOT_ASKED in reason or reason == _SAID_NO
    return spec.get("permissions") is not None and told


def _tell_permissions(spec: Json, call: Call, hit: Hit) -> None:
    """Tell the rule that decided of a call: of those that let it pass, what they say of it."""
    wanted = spec.get("permissions")
    if wanted is None or not isinstance(call.arguments, dict):
        return
    lists = {verdict: list(wanted.get(verdict) or ()) for verdict in ("allow", "ask", "deny")}
    reason = str(call.block.get("reason")) if call.block is not None else ""
    if reason.startswith(_DENIED_BY):
        text = reason.removeprefix(_DENIED_BY)
        if text in lists["deny"]:
            hit(f"permissions.deny[{lists['deny'].index(text)}]", APPLIED)
        return
    from runner.hooks.permission import Rules

    workspace = os.path.realpath(spec.get("workspace") or ".")
    about = {"tool_name": call.name, "tool_call_id": "", "arguments": call.arguments}

    def means(rules: Sequence[str]) -> str:
        """The first rule that means a part of the call."""
        told = Rules.read((), rules, ()).verdict(about, workspace)[1]
        return told.removeprefix("the rule ask: ")

    verdict = Rules.read(lists["allow"], (), ()).verdict(about, workspace)[0]
    rules = lists[verdict]
    if verdict == "ask":
        rules = [means(rules)]
    for n, rule in enumerate(lists[verdict]):
        if rule in rules and means([rule]) == rule:
            hit(f"permissions.{verdict}[{n}]", APPLIED)
