"""A log as a script: what the model said in a run, for the scripted model to say it again.

A script is of one model: the main agent's, unless another agent or a fallback model is asked for.
It has an entry for each request that was answered or failed, in their order. What a resume left
behind, an answer that was broken off or the failure that had ended the run, is left out: the run
that the script is for goes through without a break.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.api.recorded_reply import CallIds, Entry, Pieces, failed, reply, unanswered
from runner.engine.model_call import FIRST_DELAY
from runner.error import UsageError, did_you_mean
from runner.log.read import Warn, read

MAIN = "main"
_NAMED = 3
"""Ids or agents that a warning names."""


@dataclass(slots=True)
class Script:
    """The replies of one model of a run."""

    name: str
    """The spec's."""
    agent: str
    """The agent's path."""
    entries: list[Entry] = field(default_factory=list)
    """In the form of ``model.script``."""
    warnings: list[str] = field(default_factory=list)
    """What is left out, and which other models there are; a sentence each."""


def script(
    path: str, *, agent: str = MAIN, fallback: int | None = None, warn: Warn | None = None
) -> Script:
    """The script of a model in a run.

    Args:
        path: The run's log.
        agent: The agent's path, such as ``main/reviewer#1``.
        fallback: Which of its fallback models is meant, counted from 0; None: its first model.
        warn: Is told of a torn tail.

    Raises:
        LogError: where the log can't be read.
        UsageError: where the agent or the model made no request in it.
    """
    recording: _Recording | None = None
    others: dict[str, int] = {}
    status: str | None = None
    redactions = 0
    made = Script("", agent)
    for _, event in read(path, warn):
        kind = event["type"]
        if kind == "run_start":
            made.name = event["spec"]["name"]
            plan = _plan_of(event["plan"], agent)
            recording = _Recording(plan, 0 if fallback is None else fallback + 1)
        assert recording is not None, "a log begins with its run_start"
        if kind == "run_resume":
            recording.resume(status)
            recording.adopt(_plan_of(event.get("plan", {}), agent))
            status = None
        elif kind == "run_end":
            status, redactions = event["status"], event.get("redactions", 0)
        here = event.get("agent", MAIN)
        if here == agent:
            recording.feed(event)
        elif kind == "model_request":
            others[here] = others.get(here, 0) + 1
    assert recording is not None, "a log without a line is none"
    made.entries = recording.finish()
    _check_found(path, recording, agent, fallback, others)
    made.warnings += recording.unsaid()
    made.warnings += _about_the_end(status, redactions)
    made.warnings += _about_others(agent, others, recording.places, fallback)
    return made


def written(script: Script) -> str:
    """A script as a YAML file.

    Raises:
        UsageError: where it is larger than a spec's files may be.
    """
    from runner.spec.yaml import MAX_BYTES
    from runner.views.script import script_text

    text = script_text(script.name, script.agent, script.entries)
    if len(text.encode()) > MAX_BYTES:
        raise UsageError(
            f"the script of {script.agent} would be larger than 1 MiB, which no file of a spec may "
            "be; use `pi-run replay` for this run"
        )
    return text


class _Recording:
    """The replies of one model, as an agent's events tell them.

    Args:
        plan: The agent's spec, as far as the log has it.
        place: The model's: 0 is the first, then the fallbacks.
    """

    def __init__(self, plan: Mapping[str, Any], place: int) -> None:
        self._retries: list[Mapping[str, Any]] = []
        self.adopt(plan)
        self.places: set[int] = set()
        """Of all models that were asked."""
        self._wanted = place
        self._ids = CallIds(_maps(plan.get("messages")))
        self._entries: list[Entry] = []
        self._call: list[Entry] = []
        """Of the model call that is under way, or was the last."""
        self._place = 0
        self._requests = 0
        """Of this call, to the model that is asked now."""
        self._open = False
        self._outcome = "answered"
        self._failing: tuple[str, Entry, Mapping[str, Any]] | None = None
        """An answer that is an error, until it is clear what came of that."""
        self._pieces = Pieces()
        self._unsaid: dict[str, list[str]] = {}

    def adopt(self, plan: Mapping[str, Any]) -> None:
        """Go on by another plan, where there is one."""
        if model := _map(plan.get("model")):
            models = [model, *_maps(model.get("fallback"))]
            self._retries = [_map(one.get("retry")) for one in models]

    def feed(self, event: Mapping[str, Any]) -> None:
        """Take one of the agent's events."""
        kind = event["type"]
        if kind == "model_retry":
            self._retry(event)
            return
        self._settle(again=False)
        if kind == "model_request":
            self._request(event)
        elif kind == "message_update":
            self._pieces.add(event["delta"])
        elif kind == "message_end" and event["message"]["role"] == "assistant" and self._open:
            self._answer(event["message"])

    def resume(self, status: str | None) -> None:
        """The run goes on after a break.

        Args:
            status: How it had ended; None where it was killed.
        """
        self._settle(again=False)
        if self._open:
            # It is asked again, in the same model call.
            self._open = False
            self._requests -= 1
        elif self._outcome == "failed" and status in (None, "error", "aborted"):
            self._call.clear()

    def finish(self) -> list[Entry]:
        """All entries, those that follow one another and are the same as one."""
        self._settle(again=False)
        self._flush()
        return self._entries

    def unsaid(self) -> list[str]:
        """What the script can't say, a sentence each."""
        return [f"a script can't say {what}: {_some(ids)}" for what, ids in self._unsaid.items()]

    # --- requests ---------------------------------------------------------------------------------

    def _request(self, event: Mapping[str, Any]) -> None:
        if event["attempt"] == 1:
            self._flush()
            self._place = self._requests = 0
        self._requests += 1
        self.places.add(self._place)
        self._open, self._pieces = True, Pieces()

    def _answer(self, message: Mapping[str, Any]) -> None:
        id_, self._open = message["id"], False
        entry = reply(message, self._pieces, self._ids, lambda what: self._note(what, id_))
        self._pieces = Pieces()
        if message["stop_reason"] == "error" and "error" in message:
            self._failing = id_, entry, message["error"]
            return
        if message["stop_reason"] in ("error", "aborted"):
            self._outcome = "failed"
        else:
            self._outcome = "answered"
            self._ids.keep([b["id"] for b in message["content"] if b["type"] == "tool_call"])
        self._put(entry or {"text": ""})

    def _retry(self, event: Mapping[str, Any]) -> None:
        again = "fallback" not in event
        if self._failing is not None:
            self._settle(again=again)
        elif self._open:
            entry: Entry = {"error": event["error"]}
            if again or not self._is_last():
                entry = unanswered(event["error"], again=again)
            self._put(entry)
        self._open, self._outcome = False, "retried"
        if not again:
            self._place, self._requests = self._place + 1, 0
        elif event["delay"] != self._own_delay():
            self._note("the waits that a server asks for", "before a retry")

    def _settle(self, *, again: bool) -> None:
        """It is clear what came of an answer that is an error."""
        if self._failing is None:
            return
        (id_, entry, error), self._failing = self._failing, None
        self._outcome = "failed"
        if error["kind"] == "exhausted" and not entry:
            return  # so does the script that is made, at the same request
        last = self._is_last()
        more = failed(error, lambda what: self._note(what, id_), again=again, last=last)
        self._put(entry | more)

    def _is_last(self) -> bool:
        """Whether the attempts of the model that is asked are used up."""
        return self._requests >= _number(self._retry_of().get("attempts"), 1)

    def _own_delay(self) -> float:
        most = _number(self._retry_of().get("max_delay"), FIRST_DELAY)
        return float(min(most, FIRST_DELAY * 2 ** (min(self._requests, 60) - 1)))

    def _retry_of(self) -> Mapping[str, Any]:
        return self._retries[self._place] if self._place < len(self._retries) else {}

    def _put(self, entry: Entry) -> None:
        if self._place == self._wanted:
            self._call.append(entry)

    def _flush(self) -> None:
        """Take the last model call's entries as they are: it is over."""
        for entry in self._call:
            counter = "times" if entry.keys() <= {"error", "status"} else "repeat"
            before = self._entries[-1] if self._entries else {}
            if entry == {key: before[key] for key in before.keys() - {counter}}:
                before[counter] = before.get(counter, 1) + 1
            else:
                self._entries.append(entry)
        self._call = []

    def _note(self, what: str, id_: str) -> None:
        if self._place == self._wanted:
            self._unsaid.setdefault(what, []).append(id_)


def _plan_of(plan: Mapping[str, Any], agent: str) -> Mapping[str, Any]:
    """The spec of an agent in the plan of a run; empty where it is not to be found."""
    for part in agent.split("/")[1:]:
        name = part.partition("#")[0]
        agents = _map(_map(plan.get("resolved")).get("agents"))
        plan = next((one for one in _maps([*agents.values()]) if one.get("name") == name), {})
    return plan


# A log that others wrote may have anything in its plan.
def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any, otherwise: float) -> float:
    return value if isinstance(value, int | float) else otherwise


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _check_found(
    path: str,
    recording: _Recording,
    agent: str,
    fallback: int | None,
    others: Mapping[str, int],
) -> None:
    if not recording.places and agent != MAIN:
        known = did_you_mean(agent, [MAIN, *others])
        raise UsageError(f"{path}: no agent {agent} asked its model; {known}")
    if fallback is not None and fallback + 1 not in recording.places:
        asked = ", ".join(str(place - 1) for place in sorted(recording.places) if place)
        known = f"those asked: {asked}" if asked else "no fallback model was"
        raise UsageError(f"{path}: the fallback model {fallback} was not asked; {known}")


def _about_the_end(status: str | None, redactions: int) -> list[str]:
    warnings = []
    if status is None:
        warnings.append("the log breaks off before its run ended; the script has no more than that")
    if redactions:
        warnings.append(f"{redactions} values were taken out of the log; so they are in the script")
    return warnings


def _about_others(
    agent: str, others: Mapping[str, int], places: set[int], fallback: int | None
) -> list[str]:
    warnings = []
    if others:
        have = "has a script of its" if len(others) == 1 else "have scripts of their"
        warnings.append(f"{_some(list(others))} {have} own: --agent {next(iter(others))}")
    if fallback is None and (stood_in := [place - 1 for place in sorted(places) if place]):
        names = ", ".join(f"model.fallback[{n}]" for n in stood_in)
        have = "has a script of its" if len(stood_in) == 1 else "have scripts of their"
        warnings.append(f"{names} of {agent} {have} own: --fallback {stood_in[0]}")
    return warnings


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
