"""Limits of a run, and what it has used of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from runner.engine.message import Usage, add_usage, no_usage, tokens_of, usage_since


@dataclass(slots=True)
class Limits:
    """How far a run may go. None lifts a limit."""

    turns: int | None = 50
    """Model calls, each with its tools."""
    tool_calls: int | None = 500
    """Tool calls that are run."""
    repeats: int | None = 10
    """How often in a row the same call may have the same result."""
    depth: int | None = 3
    """Agents within agents."""
    seconds: float | None = None
    """Of wall time."""
    tokens: int | None = None
    """Read and written, those of the cache included."""
    cost_usd: float | None = None


class Reached(NamedTuple):
    """A limit that forbids to go on."""

    limit: str
    value: float
    allowed: float | None
    owner: int
    """The number of the meter whose limit it is."""


@dataclass(slots=True)
class MadeCall:
    """A tool call that a model made."""

    name: str
    arguments: dict[str, Any] | str
    """As the model gave them."""
    ran: bool = False
    """Whether its tool was run: it was not refused, skipped or beyond a limit."""


_numbers = count(1)


class Meter:
    """What an agent and its sub-agents have used. What a sub-agent uses, its parents use too."""

    __slots__ = (
        "calls",
        "calls_refused",
        "cost_usd",
        "depth",
        "limits",
        "number",
        "parent",
        "tool_calls",
        "turns",
        "unpriced",
        "usage",
    )

    def __init__(self, limits: Limits, parent: Meter | None = None) -> None:
        self.limits = limits
        self.number = next(_numbers)
        """Tells it from all other meters."""
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.turns = 0
        self.calls: list[MadeCall] = []
        """Every call that a model made, in the order of their starts."""
        self.tool_calls = 0
        self.calls_refused = 0
        self.usage: Usage = no_usage()
        self.cost_usd = 0.0
        self.unpriced = False
        """Whether a part of the cost is not known."""

    def _lineage(self) -> list[Meter]:
        meters, meter = [], self
        while True:
            meters.append(meter)
            if meter.parent is None:
                return meters
            meter = meter.parent

    def add_turn(self) -> None:
        """A turn began."""
        for meter in self._lineage():
            meter.turns += 1

    def add_usage(self, usage: Usage, cost_usd: float | None) -> None:
        """An answer used so much."""
        for meter in self._lineage():
            add_usage(meter.usage, usage)
            if cost_usd is not None:
                meter.cost_usd += cost_usd
            elif any(usage.values()):
                meter.unpriced = True

    def add_call(self, name: str, arguments: dict[str, Any] | str) -> MadeCall:
        """A model made a call, whatever becomes of it."""
        made = MadeCall(name, arguments)
        for meter in self._lineage():
            meter.calls.append(made)
        return made

    def take_call(self) -> Reached | None:
        """Count a tool call that is about to be run, or say which limit forbids it."""
        lineage = self._lineage()
        for meter in lineage:
            allowed = meter.limits.tool_calls
            if allowed is not None and meter.tool_calls >= allowed:
                meter.calls_refused += 1
                asked = meter.tool_calls + meter.calls_refused
                return Reached("tool_calls", asked, allowed, meter.number)
        for meter in lineage:
            meter.tool_calls += 1
        return None

    def reached(self) -> Reached | None:
        """The limit, of this agent or of one above it, that forbids another model call."""
        for meter in self._lineage():
            limits = meter.limits
            tokens = tokens_of(meter.usage)
            if limits.turns is not None and meter.turns >= limits.turns:
                return Reached("turns", meter.turns, limits.turns, meter.number)
            if limits.tool_calls is not None and meter.calls_refused:
                value = meter.tool_calls + meter.calls_refused
                return Reached("tool_calls", value, limits.tool_calls, meter.number)
            if limits.tokens is not None and tokens >= limits.tokens:
                return Reached("tokens", tokens, limits.tokens, meter.number)
            if limits.cost_usd is not None and meter.cost_usd >= limits.cost_usd:
                return Reached("cost_usd", round(meter.cost_usd, 12), limits.cost_usd, meter.number)
        return None

    def mark(self) -> Mark:
        """What is used so far, for counting from here on."""
        return Mark(self, self.turns, len(self.calls), self.usage.copy(), self.cost)

    @property
    def cost(self) -> float | None:
        """The cost in USD; None where a part of it is not known."""
        return None if self.unpriced else round(self.cost_usd, 12)


@dataclass(slots=True)
class Mark:
    """What a meter showed at some point; what was used since."""

    meter: Meter
    turns_before: int = 0
    calls_before: int = 0
    usage_before: Usage = field(default_factory=no_usage)
    cost_before: float | None = 0.0

    def turns(self) -> int:
        """How many turns there were since."""
        return self.meter.turns - self.turns_before

    def calls(self) -> Sequence[MadeCall]:
        """The calls since."""
        return self.meter.calls[self.calls_before :]

    def usage(self) -> Usage:
        """The usage since."""
        return usage_since(self.usage_before, self.meter.usage)

    def cost(self) -> float | None:
        """The cost since in USD; None where a part of it is not known."""
        now = self.meter.cost
        if now is None or self.cost_before is None:
            return None
        return round(now - self.cost_before, 12)
