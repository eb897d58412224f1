"""What a spec needs, and why its runs differ, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from runner.views.escape import one_line, visible

SHOWN = 400
"""Characters of a value that are shown."""


class Need(Protocol):
    """Something outside of a spec that its runs need."""

    @property
    def kind(self) -> str:
        """What it is, in a word."""
        ...

    @property
    def name(self) -> str:
        """Which one."""
        ...

    @property
    def where(self) -> str:
        """Where the spec names it."""
        ...

    @property
    def problem(self) -> str | None:
        """What is wrong with it; None: nothing."""
        ...


class Source(Protocol):
    """A part of a run that makes two runs differ."""

    @property
    def kind(self) -> str:
        """What it is, in a word."""
        ...

    @property
    def name(self) -> str:
        """Which one."""
        ...

    @property
    def turn(self) -> int:
        """The turn in which it showed first; 0 before the first."""
        ...

    @property
    def agent(self) -> str | None:
        """The sub-agent's path; None for the main agent."""
        ...

    @property
    def advice(self) -> str:
        """What may be the cause, and what helps."""
        ...

    def as_json(self) -> dict[str, Any]:
        """The source as JSON; a value that isn't there has no key."""
        ...


def need_lines(needs: Iterable[Need]) -> Iterator[str]:
    """A line for each thing that is needed."""
    for need in needs:
        what = f"{need.kind} {one_line(need.name)}"
        if need.problem is None:
            yield f"ok: {what}"
        else:
            yield f"{visible(need.where)}: {what}: {one_line(need.problem, SHOWN)}"


def need_json(need: Need) -> dict[str, Any]:
    """A thing that is needed as an object."""
    return {name: getattr(need, name) for name in ("kind", "name", "where", "problem")}


def source_lines(sources: Iterable[Source]) -> Iterator[str]:
    """Each source of difference: which it is, what it gave in both runs, and what helps."""
    for source in sources:
        turn = f"turn {source.turn}" if source.turn else "before the first turn"
        agent = "" if source.agent is None else f" of {one_line(source.agent)}"
        told = source.as_json()
        yield f"differs: {source.kind} {one_line(source.name)}, {turn}{agent}"
        at = f" {one_line(told['path'])}" if told["path"] else ""
        for run, side in (("one run", "a"), ("another", "b")):
            yield f"  {run}{at}: {_shown(told[side]) if side in told else '(nothing)'}"
        yield f"  {source.advice}"


def _shown(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), SHOWN)
