"""A span as this package has it: what took time in a run, and in what it happened."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from runner.json_text import line

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


def told(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as any receiver can take them, whatever stands in a log."""
    return {key: told_value(value) for key, value in attributes.items()}


def told_value(value: Any) -> Any:
    """One value: a text that is Unicode, a number that fits 64 bits, or a list of texts."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)[:20]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [_text(one) for one in value]
    return as_json(value)


def as_json(value: Any) -> str:
    """A value as JSON text; a number that JSON has none for, such as 1e999, as Python shows it."""
    try:
        return line(value)
    except ValueError:
        return json.dumps(value)


def _text(value: str) -> str:
    """A text with each lone surrogate, which no encoding has, replaced."""
    return (
        value
        if value.isascii()
        else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


class Sink(Protocol):
    """Gets each span twice. A span begins after its parent, and ends before it."""

    def begin(self, span: Span) -> None:
        """It began; what is known of it then is there."""
        ...

    def end(self, span: Span) -> None:
        """It ended."""
        ...
