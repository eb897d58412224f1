"""Why two runs of the same spec differ: what gave something else though it was given the same.

A log says what each part of a run was given and what came of it: a model its request, a tool its
arguments. Where the given is the same and the outcome is not, that part is a source. What differs
since something before it does is none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.log.canonical import canonical
from runner.log.compare import compare
from runner.log.difference import ABSENT, differences
from runner.log.read import Warn, read

Event = Mapping[str, Any]
_Key = tuple[Any, ...]

_ADVICE = {
    "spec": "it was rendered otherwise; templates that use run.id differ from run to run",
    "tool": "the same arguments gave another result: time, chance, the network, or what the run "
    "before left in the workspace",
    "model": "the same request was answered otherwise; a temperature of 0 may help, and a replay "
    "of a log always does",
    "stream": "the same answer came in other pieces; log.deltas: false leaves them out",
    "server": "a request failed in one run and not in the other",
    "hook": "it decided otherwise about the same call",
    "request": "the same history was sent otherwise; a context hook may use time or chance",
    "message": "it differs though all before it is the same: its template, or the hook that queued "
    "it",
    "outcome": "it differs though all before it is the same: time, or chance",
}


@dataclass(slots=True, frozen=True)
class Source:
    """One part of a run that makes two runs differ."""

    kind: str
    """``spec``, ``tool``, ``model``, ``stream``, ``server``, ``hook``, ``request``, ``message`` or
    ``outcome``."""
    name: str
    """Which one: a tool's name, a model's, a path in the spec."""
    turn: int
    """The agent's turn in which it showed first; 0 before the first."""
    agent: str | None
    """The sub-agent's path; None for the main agent."""
    path: str
    """The first place that differs in what came of it."""
    a: Any
    """The first run's value there, or `ABSENT`."""
    b: Any
    """The second run's value there, or `ABSENT`."""

    @property
    def advice(self) -> str:
        """What may be the cause, and what helps."""
        return _ADVICE[self.kind]

    def as_json(self) -> dict[str, Any]:
        """The source as JSON; a value that isn't there has no key."""
        names = ("kind", "name", "turn", "path", "advice")
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.agent is not None:
            found["agent"] = self.agent
        found |= {side: v for side in "ab" if (v := getattr(self, side)) is not ABSENT}
        return found


def sources_of(
    a: str | os.PathLike[str], b: str | os.PathLike[str], warn: Warn | None = None
) -> list[Source]:
    """Why two logs of the same spec differ; empty where they don't.

    Raises:
        LogError: when a log can't be read, or is broken.
    """

    def events(path: str | os.PathLike[str]) -> Iterator[Event]:
        return (event for _, event in read(path, warn))

    first = next(compare(events(a), events(b)), None)
    if first is None:
        return []
    found = sources(events(a), events(b))
    if not found:
        found.append(
            Source("outcome", first.path, first.turn, first.agent, first.path, first.a, first.b)
        )
    return found


def sources(a: Iterable[Event], b: Iterable[Event]) -> list[Source]:
    """Why the events of two runs differ, each source once, in the order in which they showed."""
    one, other = _Facts().read(a), _Facts().read(b)
    found: list[Source] = []
    explained: set[_Key] = set()
    differs = False
    for key in _order(one, other):
        mine, theirs = one.get(key), other.get(key)
        if mine is not None and theirs is not None and mine.came == theirs.came:
            continue
        fact = mine or theirs
        if fact is None or key in explained:
            continue
        if fact.anchor is None:
            is_source = not differs
        else:
            is_source = _same_given(one.get(fact.anchor), other.get(fact.anchor))
            explained.add(fact.anchor)
        differs = True
        if is_source:
            found.append(_source(fact, mine, theirs))
    return _once(found)


@dataclass(slots=True)
class _Fact:
    """Something that a part of a run gave."""

    kind: str
    name: str
    turn: int
    agent: str | None
    came: Any
    """What came of it."""
    given: Any = None
    """What it was given."""
    anchor: _Key | None = None
    """The fact whose given has to be the same for this to be a source; None: all before it."""


@dataclass(slots=True)
class _Agent:
    """What is known of an agent while its lines are read."""

    turn: int = 0
    digest: str = ""
    calls: dict[str, Any] = field(default_factory=dict)
    pieces: list[Any] = field(default_factory=list)
    worked_below: bool = False
    """Whether another agent has worked for it since its last line."""


class _Facts:
    """Gathers the facts of a log."""

    def __init__(self) -> None:
        self._facts: dict[_Key, _Fact] = {}
        self._agents: dict[str | None, _Agent] = {}

    def read(self, events: Iterable[Event]) -> dict[_Key, _Fact]:
        for event in canonical(events):
            path = event.get("agent")
            agent = self._agents.setdefault(path, _Agent())
            if read := _READ.get(event["type"]):
                read(self, event, path, agent)
            agent.worked_below = False
            self._tell_above(path)
        return self._facts

    def _tell_above(self, path: str | None) -> None:
        """Tell the agents for which one works that it did."""
        while path is not None:
            above = path.rpartition("/")[0]
            path = above if "/" in above else None
            self._agents.setdefault(path, _Agent()).worked_below = True

    def _add(self, key: _Key, fact: _Fact) -> None:
        """Keep a fact; of the same key there may be several, which are counted."""
        number = 0
        while (*key, number) in self._facts:
            number += 1
        self._facts[*key, number] = fact

    def _start(self, event: Event, path: str | None, agent: _Agent) -> None:
        for name in ("plan", "inputs"):
            for key, value in event[name].items():
                self._facts["spec", name, key] = _Fact(
                    "spec", key if name == "plan" else f"inputs.{key}", 0, None, value, None, _START
                )
        self._facts[_START] = _Fact("spec", "", 0, None, None)

    def _turn(self, event: Event, path: str | None, agent: _Agent) -> None:
        agent.turn = event["turn"]

    def _request(self, event: Event, path: str | None, agent: _Agent) -> None:
        agent.digest = event["context_digest"]
        fact = _Fact("request", event["model"], agent.turn, path, agent.digest)
        self._add(("request", path, agent.turn), fact)

    def _retry(self, event: Event, path: str | None, agent: _Agent) -> None:
        anchor = ("model", path, agent.turn, 0)
        name = event.get("fallback") or "the model's server"
        fact = _Fact("server", name, agent.turn, path, event["error"], None, anchor)
        self._add(("server", path, agent.turn), fact)

    def _delta(self, event: Event, path: str | None, agent: _Agent) -> None:
        agent.pieces.append(event["delta"])

    def _message(self, event: Event, path: str | None, agent: _Agent) -> None:
        message, turn = event["message"], agent.turn
        if message["role"] == "assistant":
            name = f"{message['provider']}/{message['model']}"
            key = ("model", path, turn)
            fact = _Fact("model", name, turn, path, message, agent.digest, (*key, 0))
            self._add(key, fact)
            stream = ("stream", path, turn, 0)
            given = (agent.digest, message)
            self._add(stream[:-1], _Fact("stream", name, turn, path, agent.pieces, given, stream))
            agent.pieces = []
        elif message["role"] != "tool_result":
            name = f"{message['role']} message {message['id']}"
            fact = _Fact("message", name, turn, path, message["content"])
            self._add(("message", path, turn), fact)

    def _call(self, event: Event, path: str | None, agent: _Agent) -> None:
        agent.calls[event["tool_call_id"]] = event["arguments"]

    def _decision(self, event: Event, path: str | None, agent: _Agent) -> None:
        call = event.get("tool_call_id")
        came = {key: event.get(key) for key in ("action", "reason", "arguments", "on_error")}
        anchor = ("tool", path, agent.turn, call, 0) if call is not None else None
        fact = _Fact("hook", event["hook"], agent.turn, path, came, None, anchor)
        self._add(("hook", path, agent.turn, call, event["hook"]), fact)

    def _result(self, event: Event, path: str | None, agent: _Agent) -> None:
        call, name = event["tool_call_id"], event["tool_name"]
        given = (name, agent.calls.pop(call, None))
        came = {"is_error": event["is_error"], "result": event["result"]}
        key = ("tool", path, agent.turn, call)
        # Of a tool that is an agent, what its model and its tools did tells more.
        anchor = None if agent.worked_below else (*key, 0)
        self._add(key, _Fact("tool", name, agent.turn, path, came, given, anchor))

    def _outcome(self, event: Event, path: str | None, agent: _Agent) -> None:
        kind = event["type"]
        left_out = ("seq", "agent", "type")
        came = {key: value for key, value in event.items() if key not in left_out}
        self._add((kind, path, agent.turn), _Fact("outcome", kind, agent.turn, path, came))


_START: _Key = ("start",)
_READ = {
    "run_start": _Facts._start,
    "turn_start": _Facts._turn,
    "model_request": _Facts._request,
    "model_retry": _Facts._retry,
    "message_update": _Facts._delta,
    "message_end": _Facts._message,
    "tool_execution_start": _Facts._call,
    "tool_execution_end": _Facts._result,
    "hook_decision": _Facts._decision,
    "tool_unavailable": _Facts._outcome,
    "limit_reached": _Facts._outcome,
    "expectation": _Facts._outcome,
    "run_end": _Facts._outcome,
}


def _order(one: Mapping[_Key, _Fact], other: Mapping[_Key, _Fact]) -> list[_Key]:
    """The keys of both, in the order of the first; decisions first, since they explain results."""
    keys = [*one, *(key for key in other if key not in one)]
    return sorted(keys, key=lambda key: key[0] not in ("spec", "hook", "server"))


def _same_given(one: _Fact | None, other: _Fact | None) -> bool:
    return one is not None and other is not None and one.given == other.given


def _source(fact: _Fact, one: _Fact | None, other: _Fact | None) -> Source:
    a = ABSENT if one is None else one.came
    b = ABSENT if other is None else other.came
    path, a, b = next(differences(a, b, ""))
    return Source(fact.kind, fact.name, fact.turn, fact.agent, path.lstrip("."), a, b)


def _once(found: list[Source]) -> list[Source]:
    """Each source where it showed first."""
    first: dict[tuple[str, str], Source] = {}
    for source in found:
        first.setdefault((source.kind, source.name), source)
    return sorted(first.values(), key=lambda source: source.turn)
