"""Where a run parts from its log: the first event that does not come out as recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.engine.event import VOLATILE

_NOT_COMPARED = frozenset(("seq", "t", "agent", "redactions"))
_MISSING: Any = object()
_PLACEHOLDER = re.compile(r"\[secret:[A-Za-z0-9_.-]+\]|\[redacted(?::[a-z_]+)?\]")


@dataclass(slots=True)
class Parting:
    """The first difference between a log and a run that is driven by it."""

    seq: int | None
    """Of the recorded line; None where the run went on after the log's end."""
    agent: str | None
    turn: int
    type: str
    """Of the recorded event; where there is none, of the new one."""
    path: str
    """JSON path in the event, such as ``message.content[0].text``; empty for the event itself."""
    recorded: Any
    """The value in the log; None where there is none."""
    new: Any
    """The value now; None where there is none."""
    cause: str
    """What it most likely comes from, in words."""


def first_difference(
    recorded: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[str, Any, Any] | None:
    """JSON path, recorded and new value of what differs first between two events; None if nothing.

    Fields that differ from run to run are not compared, nor those that the new event's type
    doesn't have: a newer pi-run may have written them.
    """
    if recorded.get("type") != new.get("type"):
        return "type", recorded.get("type"), new.get("type")
    left_out = _NOT_COMPARED | VOLATILE.get(str(new.get("type")), frozenset())
    if new.get("type") == "run_end" and _same_error(recorded.get("error"), new.get("error")):
        left_out |= {"error"}
    for key, value in new.items():
        if key not in left_out and (found := _differs(recorded.get(key, _MISSING), value, key)):
            return found
    for key in _FIELDS.get(str(new.get("type")), ()):
        if key in recorded and key not in new and key not in left_out:
            return key, recorded[key], None
    return None


def _same_error(one: Any, other: Any) -> bool:
    """Whether two errors are the same, but for the place in the spec's file that they may name."""
    texts = isinstance(one, str) and isinstance(other, str)
    return texts and _PLACE.sub("", one) == _PLACE.sub("", other)


_PLACE = re.compile(r"\A[^\n]*?:\d+:\d+: ")

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "hook_decision": ("reason", "arguments", "stop", "on_error"),
    "message_end": (),
    "model_retry": ("fallback",),
    "run_end": ("error",),
    "task_end": ("skipped", "warning", "item"),
    "task_start": ("item",),
    "tool_execution_end": ("terminate", "stopped"),
}
"""Fields that not every event of a type has, so that one that is missing now is a difference."""


def _differs(recorded: Any, new: Any, path: str) -> tuple[str, Any, Any] | None:
    if recorded is _MISSING:
        return path, None, new
    if isinstance(recorded, dict) and isinstance(new, dict):
        for key in [*recorded, *(key for key in new if key not in recorded)]:
            there = new.get(key, _MISSING)
            if there is _MISSING:
                return f"{path}.{key}", recorded[key], None
            if found := _differs(recorded.get(key, _MISSING), there, f"{path}.{key}"):
                return found
        return None
    if isinstance(recorded, list) and isinstance(new, list):
        for index, (one, other) in enumerate(zip(recorded, new, strict=False)):
            if found := _differs(one, other, f"{path}[{index}]"):
                return found
        if len(recorded) != len(new):
            at = min(len(recorded), len(new))
            left = recorded[at] if at < len(recorded) else None
            right = new[at] if at < len(new) else None
            return f"{path}[{at}]", left, right
        return None
    same = recorded == new and isinstance(recorded, bool) == isinstance(new, bool)
    return None if same or _is_redacted(recorded, new) else (path, recorded, new)


def _is_redacted(recorded: Any, new: Any) -> bool:
    """Whether a recorded text is a new one with something taken out, which a replay doesn't know.

    So it is where a secret, or what a pattern matches, is part of what the loop itself says, such
    as a tool's name.
    """
    if not isinstance(recorded, str) or not isinstance(new, str):
        return False
    first, *rest = _PLACEHOLDER.split(recorded)
    if not rest or not new.startswith(first):
        return False
    if not set(_PLACEHOLDER.findall(new)) <= set(_PLACEHOLDER.findall(recorded)):
        return False
    place, last = len(first), rest.pop()
    for text in rest:
        found = new.find(text, place + 1)
        if found < 0:
            return False
        place = found + len(text)
    return new.endswith(last) and len(new) - len(last) > place


def likely_cause(recorded: Mapping[str, Any], new: Mapping[str, Any], path: str) -> str:
    """What a difference most likely comes from, in words."""
    kind, now = str(recorded.get("type")), str(new.get("type"))
    if kind == now == "model_request":
        if path.startswith("system_digest") or recorded.get("system_digest") != new.get(
            "system_digest"
        ):
            return "the system prompt is another one"
        if recorded.get("tools_digest") != new.get("tools_digest"):
            return "the tools are others: a name, a description, a schema, or their order"
        if recorded.get("model") != new.get("model") or recorded.get("provider") != new.get(
            "provider"
        ):
            return "the model is another one"
        if recorded.get("attempt") != new.get("attempt"):
            return "a retry"
        return "the messages are others: a template, a hook, a result, or their order"
    if now == "hook_decision" and new.get("action") == "fail" and kind != now:
        return f"the hook {new['hook']} fails: {new.get('reason') or 'it does not say why'}"
    types = {kind, now}
    for kinds, cause in _CAUSES:
        if types & kinds:
            return cause
    return "the log was changed, or the loop does something else now"


_CAUSES: tuple[tuple[set[str], str], ...] = (
    ({"model_retry"}, "a retry"),
    ({"hook_decision"}, "a hook decides otherwise"),
    ({"limit_reached"}, "a limit is another one"),
    ({"expectation"}, "an expectation is another one, or what it is held against"),
    ({"task_start", "task_end"}, "a task's condition, or its template"),
    ({"message_queued"}, "what is queued, and when"),
    ({"tool_execution_start", "tool_execution_end"}, "a tool's call or its result was changed"),
    ({"message_start", "message_update", "message_end"}, "a message was changed, or a template"),
)
