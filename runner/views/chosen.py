"""The part of a run that someone wants to see: some turns, the calls of a tool, one agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runner.error import did_you_mean

MAIN = "main"
"""The path of the agent whose events name none."""

Event = Mapping[str, Any]


class Chosen:
    """Lets pass what is wanted, in constant memory.

    Args:
        turns: The first and the last turn: of the agent that is chosen, else of the main agent,
            with all that other agents do meanwhile. None: all.
        tool: The name of a tool, of which all calls are wanted. None: everything.
        agent: An agent's path; ``main`` is the first one. None: all.
    """

    def __init__(
        self,
        turns: tuple[int, int] | None = None,
        tool: str | None = None,
        agent: str | None = None,
    ) -> None:
        self._turns = turns
        self._tool = tool
        self._agent = agent
        self._turn = 0
        self._calls: set[tuple[str, str]] = set()
        self._tools: set[str] = set()
        self._agents: set[str] = {MAIN}
        self._found = False

    @property
    def all(self) -> bool:
        """Whether everything is wanted."""
        return self._turns is None and self._tool is None and self._agent is None

    def among(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events that are wanted; a turn's start only where something of it is."""
        if self.all:
            yield from events
            return
        start: Event | None = None
        for event in events:
            self._look(event)
            if not self._wants(event):
                continue
            if event["type"] == "turn_start" and self._tool is not None:
                start = event
                continue
            if start is not None and start.get("agent") == event.get("agent"):
                yield start
                start = None
            self._found = True
            yield event

    def among_framed(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events that are wanted, with the run's start and end, whatever is wanted."""
        frame: list[Event] = []

        def seen() -> Iterator[Event]:
            for event in events:
                if event["type"] in ("run_start", "run_end"):
                    frame.append(event)
                yield event

        for event in self.among(seen()):
            yield from (one for one in frame if one is not event)
            frame.clear()
            yield event
        yield from frame

    def why_nothing(self) -> str | None:
        """What is wrong with the choice, where it let nothing pass; after all events."""
        if self.all or self._found:
            return None
        if self._agent is not None and self._agent not in self._agents:
            known = did_you_mean(self._agent, sorted(self._agents))
            return f'there is no agent "{self._agent}" in it; {known}'
        if self._tool is not None and self._tool not in self._tools:
            known = did_you_mean(self._tool, sorted(self._tools))
            return f'there is no call of a tool "{self._tool}" in it; {known}'
        if self._turns is not None and self._turn < self._turns[0]:
            return f"there is no turn {self._turns[0]} in it; its last is {self._turn}"
        return "nothing in it is all of this; leave one of the options out"

    def _look(self, event: Event) -> None:
        """Keep track of turns, and of what there is."""
        agent = event.get("agent", MAIN)
        if event["type"] == "turn_start" and agent == (self._agent or MAIN):
            self._turn = event["turn"]
        elif event["type"] == "agent_start":
            self._agents.add(agent)
        elif event["type"] == "tool_execution_start":
            self._tools.add(event["tool_name"])

    def _wants(self, event: Event) -> bool:
        agent = event.get("agent", MAIN)
        if self._agent is not None and agent != self._agent:
            return False
        if self._turns is not None and not self._in_turn(event):
            return False
        if self._tool is None or event["type"] == "turn_start":
            return True
        return self._of_tool(agent, event)

    def _in_turn(self, event: Event) -> bool:
        if self._turns is None or event["type"] in ("run_end", "run_resume"):
            return False
        return self._turns[0] <= self._turn <= self._turns[1]

    def _of_tool(self, agent: str, event: Event) -> bool:
        """Whether an event is about a call of the tool."""
        key = (agent, event.get("tool_call_id", ""))
        if event["type"] == "tool_execution_start" and event["tool_name"] == self._tool:
            self._calls.add(key)
        wanted = key in self._calls
        if event["type"] == "tool_execution_end":
            self._calls.discard(key)
        return wanted
