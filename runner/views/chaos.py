"""What became of a run at each point where it was made to fail, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from runner.views.escape import one_line

SHOWN = 300
"""Characters of a sentence that are shown."""
_HEAD = ("point", "injected", "ended", "")


class Point(Protocol):
    """One thing that goes wrong in a run."""

    @property
    def kind(self) -> str:
        """Where it goes wrong, in a word."""
        ...

    @property
    def what(self) -> str:
        """What happens there."""
        ...

    @property
    def where(self) -> str:
        """The place in a few words."""
        ...

    @property
    def place(self) -> int:
        """Its number there."""
        ...

    @property
    def agent(self) -> str | None:
        """The path of the agent that it befalls."""
        ...


class Outcome(Protocol):
    """What came of one point."""

    status: str | None
    exit_code: int | None
    error: str | None
    broken: list[str]

    @property
    def point(self) -> Point:
        """The point."""
        ...


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for each point, below it what does not hold; at last how many survived."""
    rows = [_HEAD, *map(_row, outcomes)]
    widths = [max(len(row[n]) for row in rows) for n in range(3)]
    for row, outcome in zip(rows, (None, *outcomes), strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[3]]).rstrip()
        for text in outcome.broken if outcome is not None else ():
            yield f"  {one_line(text, SHOWN)}"
    yield summary(outcomes)


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many points there were, and how many were survived."""
    broken = sum(1 for outcome in outcomes if outcome.broken)
    survived = len(outcomes) - broken
    points = "1 point" if len(outcomes) == 1 else f"{len(outcomes)} points"
    return f"{points}: {survived} survived, {broken} broken"


def outcome_json(outcome: Outcome, log: str | None = None) -> dict[str, Any]:
    """One point as an object; ``log`` is where its log was kept."""
    point = outcome.point
    return {
        "kind": point.kind,
        "injected": point.what,
        "where": point.where,
        "place": point.place,
        "agent": point.agent,
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "error": outcome.error,
        "survived": not outcome.broken,
        "broken": outcome.broken,
        "log": log,
    }


def _row(outcome: Outcome) -> tuple[str, str, str, str]:
    point = outcome.point
    ended = outcome.status or "never"
    verdict = "broken" if outcome.broken else "survived"
    return one_line(point.where), point.what, ended, verdict
