"""A span as this package has it: what took time in a run, and in what it happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Kind = Literal["agent", "task", "turn", "chat", "tool"]


@dataclass(slots=True)
class Note:
    """Something that happened at one moment of a span."""

    name: str
    time: int
    """Nanoseconds since 1970."""
    attributes: dict[str, Any]


@dataclass(slots=True, eq=False)
class Span:
    """What took time: an agent, a task, a turn, a model call, a tool call."""

    kind: Kind
    name: str
    seq: int
    """The number of the event that began it: unique in its run."""
    start: int
    """Nanoseconds since 1970."""
    parent: Span | None
    agent: str
    """The path of the agent that does it."""
    attributes: dict[str, Any]
    """Texts, numbers, truth values, and lists of texts; those of its end are added then."""
    end: int | None = None
    error: str | None = None
    """The error type, of few different ones, where it did not end well."""
    message: str | None = None
    """What went wrong in words: content, as those of a model or a tool."""
    notes: list[Note] = field(default_factory=list)

    def fail(self, error: str, message: str | None = None) -> None:
        """Say that it did not end well."""
        self.error, self.message = error, message
        self.attributes["error.type"] = error

    @property
    def seconds(self) -> float:
        """How long it took, once it has ended."""
        return 0.0 if self.end is None else (self.end - self.start) / 1e9


class Sink(Protocol):
    """Gets each span twice. A span begins after its parent, and ends before it."""

    def begin(self, span: Span) -> None:
        """It began; what is known of it then is there."""
        ...

    def end(self, span: Span) -> None:
        """It ended."""
        ...
