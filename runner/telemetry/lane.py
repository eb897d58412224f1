"""What is open of one agent while its events come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.telemetry import names
from runner.telemetry.asked import Asked
from runner.telemetry.content import Conversation
from runner.telemetry.span import Span

_USAGE = ("input", "output", "cache_read", "cache_write", "reasoning")
_MOST = 2**60
"""Tokens; a log that says more says nothing."""


class Numbers:
    """Which numbers of agents with one name were seen: kept short, however many there are."""

    __slots__ = ("_beyond", "_whole")

    def __init__(self) -> None:
        self._whole = 0
        self._beyond: set[int] = set()

    def missing_before(self, number: int) -> int:
        """How many lower numbers were not seen yet; the number itself is seen now."""
        missing = number - 1 - self._whole - sum(other < number for other in self._beyond)
        self._beyond.add(number)
        while self._whole + 1 in self._beyond:
            self._whole += 1
            self._beyond.discard(self._whole)
        return max(0, missing)


@dataclass(slots=True, eq=False)
class Lane:
    """One agent's open spans."""

    path: str
    """``main``, or a sub-agent's."""
    name: str
    asked: Asked
    above: Lane | None
    """The agent that it works for."""
    span: Span | None = None
    """Of the agent itself."""
    tasks: dict[tuple[Any, Any], Span] = field(default_factory=dict)
    turn: Span | None = None
    number: int | None = None
    """The turn's."""
    chat: Span | None = None
    first: int | None = None
    """When the answer began, in nanoseconds since 1970."""
    failed: Span | None = None
    """A model call that ended in an error, while a retry may still be told of it."""
    calls: dict[str, Span] = field(default_factory=dict)
    limit: bool = False
    """Whether it came to a limit."""
    usage: dict[str, int] = field(default_factory=dict)
    """Tokens, those of the agents below included."""
    conversation: Conversation | None = None
    """None where content is not asked for."""
    numbers: dict[str, Numbers] = field(default_factory=dict)
    """Of the agents below, by name."""

    @property
    def innermost(self) -> Span | None:
        """What a model call or a tool call of the agent is a part of."""
        if self.turn is not None:
            return self.turn
        return next(reversed(self.tasks.values()), self.span)

    def owner(self, part: str, busy: Mapping[Span, Any]) -> Span | None:
        """The open call or task that an agent below works for.

        Events don't say it, but agents are numbered in the order of what they work for.

        Args:
            part: The last part of its path, such as ``reader#2``.
            busy: The spans that have an agent already.
        """
        name, _, digits = part.partition("#")
        number = int(digits) if digits.isdecimal() and len(digits) < 10 else 1
        before = self.numbers.setdefault(name, Numbers()).missing_before(number)
        spans: Iterable[Span] = self.calls.values() or self.tasks.values()
        waiting = [span for span in spans if span not in busy]
        called = [span for span in waiting if span.attributes.get(names.TOOL_NAME) == name]
        waiting = called or waiting
        return waiting[min(before, len(waiting) - 1)] if waiting else self.innermost

    def add_usage(self, usage: Mapping[str, Any]) -> None:
        """Count tokens, here and for all agents above."""
        for key in _USAGE:
            value = usage.get(key)
            if isinstance(value, int):
                self.usage[key] = self.usage.get(key, 0) + value
        if self.above is not None:
            self.above.add_usage(usage)


def tokens(usage: Any) -> dict[str, int]:
    """A usage as attributes: none where nothing was counted, which is no count of 0.

    All that the model read is its input, that from a cache included.
    """
    if not isinstance(usage, Mapping):
        return {}
    used = {key: usage.get(key, 0) for key in _USAGE}
    if not all(isinstance(value, int) and 0 <= value < _MOST for value in used.values()):
        return {}
    if not any(used.values()):
        return {}
    found = {
        names.INPUT_TOKENS: used["input"] + used["cache_read"] + used["cache_write"],
        names.OUTPUT_TOKENS: used["output"],
    }
    more = {
        names.CACHE_READ_TOKENS: used["cache_read"],
        names.CACHE_CREATION_TOKENS: used["cache_write"],
        names.REASONING_TOKENS: used["reasoning"],
    }
    return found | {key: value for key, value in more.items() if value}
