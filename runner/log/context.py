"""What the model read at a turn: rebuilt from a log, by the ids that each request names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.engine.digest import digest_of
from runner.error import UsageError

Message = dict[str, Any]


@dataclass(slots=True)
class Context:
    """What the model was given at a turn, by the last request that was made in it.

    Messages are as they are in the history. Where a hook changed what is sent without giving it an
    id of its own, the log does not have that.
    """

    turn: int
    agent: str | None
    """The sub-agent's path; None for the main agent."""
    provider: str
    model: str
    system_prompt: str | None
    """None where the log does not have it: a sub-agent's."""
    tools: list[dict[str, Any]] | None
    """``{name, description, parameters}`` each; None where the log does not have them."""
    messages: list[Message]
    missing: list[str] = field(default_factory=list)
    """Ids of messages that were given and are not in the log: what a hook made up."""


@dataclass(slots=True)
class ContextChange:
    """What changed between two turns in what the model was given."""

    before: Context
    after: Context
    added: list[Message]
    dropped: list[Message]


def turns_of(text: str) -> tuple[int, ...]:
    """The turns that ``TURN`` or ``A..B`` names: one or two.

    Raises:
        UsageError: where it is neither.
    """
    found = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", text.strip())
    if found is None:
        raise UsageError(f'"{text}" is no turn; such as 2, or 1..2 for what changed in between')
    return tuple(int(turn) for turn in found.groups() if turn is not None)


def context_at(
    events: Iterable[Mapping[str, Any]], turn: int, *, agent: str | None = None
) -> Context:
    """What the model was given at a turn.

    Args:
        events: Those of a log.
        turn: Counted from 1.
        agent: A sub-agent's path; None for the main agent.

    Raises:
        UsageError: when the agent made no request in that turn.
    """
    return _contexts(events, {turn}, agent)[turn]


def context_change(
    events: Iterable[Mapping[str, Any]], first: int, last: int, *, agent: str | None = None
) -> ContextChange:
    """What changed from one turn to another in what the model was given.

    Args:
        events: Those of a log.
        first: The one turn.
        last: The other turn.
        agent: A sub-agent's path; None for the main agent.

    Raises:
        UsageError: when the agent made no request in one of them.
    """
    found = _contexts(events, {first, last}, agent)
    before, after = found[first], found[last]
    old = {message["id"] for message in before.messages}
    new = {message["id"] for message in after.messages}
    return ContextChange(
        before,
        after,
        [message for message in after.messages if message["id"] not in old],
        [message for message in before.messages if message["id"] not in new],
    )


def _contexts(
    events: Iterable[Mapping[str, Any]], turns: set[int], agent: str | None
) -> dict[int, Context]:
    reading = _Reading(turns, agent)
    for event in events:
        reading.see(event)
        if reading.is_done:
            break
    for turn in sorted(turns):
        if turn not in reading.found:
            raise UsageError(reading.why_not(turn))
    return reading.found


class _Reading:
    """What is known of an agent's context while its log is read."""

    def __init__(self, turns: set[int], agent: str | None) -> None:
        self._wanted = turns
        self._agent = agent
        self._turn = 0
        self._requested: set[int] = set()
        self._plan: Mapping[str, Any] = {}
        self._known: dict[str, Message] = {}
        self._given: dict[str, None] = {}  # ids, in their order
        self.found: dict[int, Context] = {}

    @property
    def is_done(self) -> bool:
        """Whether nothing that follows tells of the turns that are wanted."""
        return self._turn > max(self._wanted) and self._wanted <= self.found.keys()

    def see(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        if kind in ("run_start", "run_resume"):
            self._begin(event.get("plan", self._plan))
        elif event.get("agent") != self._agent:
            return
        elif kind == "turn_start":
            self._turn = event["turn"]
        elif kind == "message_end":
            self._known[event["message"]["id"]] = event["message"]
        elif kind == "model_request":
            self._request(event)

    def _begin(self, plan: Mapping[str, Any]) -> None:
        self._plan = plan
        # The messages before the first prompt have no events.
        history = plan.get("messages") if self._agent is None else None
        for message in history if isinstance(history, list) else ():
            if isinstance(message, dict) and isinstance(message.get("id"), str):
                self._known.setdefault(message["id"], message)

    def _request(self, event: Mapping[str, Any]) -> None:
        change = event["context_change"]
        for dropped in change["dropped"]:
            self._given.pop(dropped, None)
        self._given.update(dict.fromkeys(change["added"]))
        self._requested.add(self._turn)
        if self._turn not in self._wanted:
            return
        missing = [given for given in self._given if given not in self._known]
        self.found[self._turn] = Context(
            turn=self._turn,
            agent=self._agent,
            provider=event["provider"],
            model=event["model"],
            system_prompt=self._system_prompt(event["system_digest"]),
            tools=self._tools(event["tools_digest"]),
            messages=[self._known[given] for given in self._given if given in self._known],
            missing=missing,
        )

    def _system_prompt(self, digest: str) -> str | None:
        resolved = self._plan.get("resolved")
        # With an output's schema told to the model, it read more than the spec says.
        whole = resolved.get("system_prompt") if isinstance(resolved, dict) else None
        for prompt in (whole, self._plan.get("system_prompt")):
            if isinstance(prompt, str) and digest_of(prompt) == digest:
                return prompt
        return None

    def _tools(self, digest: str) -> list[dict[str, Any]] | None:
        resolved = self._plan.get("resolved")
        tools = resolved.get("tools") if isinstance(resolved, dict) else None
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            return None
        seen = [{k: t.get(k) for k in ("name", "description", "parameters")} for t in tools]
        return seen if digest_of(seen) == digest else None

    def why_not(self, turn: int) -> str:
        """Why there is nothing to show of a turn."""
        who = f" of {self._agent}" if self._agent is not None else ""
        if not self._requested:
            return f"turn {turn}: the log has no request{who} to a model"
        turns = sorted(self._requested)
        return f"turn {turn}: the log has no request{who} in it; it has turns {_ranges(turns)}"


def _ranges(numbers: list[int]) -> str:
    """Numbers in order, shortly: 1 to 3, 5."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return ", ".join(" to ".join(map(str, one)) for one in ranges)
