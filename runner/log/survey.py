"""What a log says as a whole, found in one reading: how its run ended, and what was left open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Line = dict[str, Any]
Call = tuple[str | None, str]
"""An agent's path, and the id of one of its calls: ids are counted by agent."""


@dataclass(slots=True)
class Survey:
    """A log at a glance."""

    start: Line = field(default_factory=dict)
    """Its first line."""
    lines: int = 0
    elapsed: float = 0.0
    """``t`` of its last line, in seconds."""
    ends: list[Line | None] = field(default_factory=list)
    """How each part of the run ended, in order: its ``run_end``; None where it was killed."""
    last_type: str = ""
    open_calls: dict[Call, Line] = field(default_factory=dict)
    """The ``tool_execution_start`` of each call that has no end."""
    finished: list[str] = field(default_factory=list)
    """Ids of the calls of the last open turn that have an end."""
    not_started: list[str] = field(default_factory=list)
    """Ids of the calls of the last answers that have no start."""
    rerun: set[Call] = field(default_factory=set)
    """The calls that an earlier resume ran again."""
    plan: dict[str, Any] = field(default_factory=dict)
    """The plan that the run goes by at its end."""
    turns: dict[str | None, int] = field(default_factory=dict)
    """The last turn of each agent."""
    _asked: dict[str | None, list[str]] = field(default_factory=dict)
    _ended: dict[str | None, list[str]] = field(default_factory=dict)

    @property
    def end(self) -> Line | None:
        """The ``run_end`` that the log ends with; None where it does not."""
        return self.ends[-1] if self.ends else None

    def see(self, line: Line) -> None:
        """Take a line into account."""
        kind, agent = line.get("type"), line.get("agent")
        if not self.lines:
            self.start, self.plan = line, line.get("plan", {})
            self.ends.append(None)
        self.lines += 1
        self.elapsed = max(self.elapsed, line.get("t", 0.0))
        self.last_type = str(kind)
        match kind:
            case "run_resume":
                self.ends.append(None)
                self.rerun |= {call for call in self.open_calls if call[1] in line["rerun"]}
                self.plan = line.get("plan", self.plan)
            case "run_end":
                self.ends[-1] = line
            case "turn_start":
                self.turns[agent] = line.get("turn", 0)
                self._asked[agent], self._ended[agent] = [], []
            case "message_end":
                self._message(line.get("message", {}), agent)
            case "tool_execution_start":
                self.open_calls[agent, line["tool_call_id"]] = line
            case "tool_execution_end":
                self.open_calls.pop((agent, line["tool_call_id"]), None)
                self._ended.setdefault(agent, []).append(line["tool_call_id"])

    def _message(self, message: Line, agent: str | None) -> None:
        if message.get("role") == "assistant" and message.get("stop_reason") not in (
            "error",
            "aborted",
        ):
            blocks = message.get("content", ())
            self._asked[agent] = [b["id"] for b in blocks if b.get("type") == "tool_call"]

    def close(self) -> None:
        """All lines were seen."""
        self.finished, self.not_started = self._calls_so_far()

    def going_on(self) -> dict[str, Any]:
        """What a ``run_resume`` says that stands here, but for what became of the open calls."""
        finished, not_started = self._calls_so_far()
        return {
            "at_seq": self.lines - 1,
            "reason": "killed" if self.end is None else self.end["status"],
            "kept": finished,
            "not_started": not_started if self.end is None else [],
        }

    def _calls_so_far(self) -> tuple[list[str], list[str]]:
        """Of the calls of the last open turns: those that have an end, those without a start."""
        finished: list[str] = []
        not_started: list[str] = []
        for agent, asked in self._asked.items():
            ended = self._ended.get(agent, [])
            finished += ended
            not_started += [
                call for call in asked if call not in ended and (agent, call) not in self.open_calls
            ]
        return finished, not_started


def survey(lines: Iterable[Line]) -> Survey:
    """Read a log through."""
    found = Survey()
    for line in lines:
        found.see(line)
    found.close()
    return found
