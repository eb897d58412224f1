"""How two logs differ, by turn and path, as text and as JSON."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from runner.views.escape import one_line, visible

SHOWN = 400
"""Characters of a value on one line that are shown."""
_COMPARED = 50_000
"""Characters of texts that are compared line by line; longer ones take too long."""
_LINES_SHOWN = 200
"""Lines of one difference that are shown."""


class Difference(Protocol):
    """One place at which two logs differ."""

    @property
    def turn(self) -> int:
        """The agent's turn; 0 before the first."""
        ...

    @property
    def agent(self) -> str | None:
        """The sub-agent's path; None for the main agent."""
        ...

    @property
    def path(self) -> str:
        """The event's type and the place in it."""
        ...

    def as_json(self) -> dict[str, Any]:
        """The difference as JSON; a value that isn't there has no key."""
        ...


def diff_lines(found: Iterable[Difference], a: str, b: str) -> Iterator[str]:
    """Differences, those of a turn below its number.

    Args:
        found: In the order of the logs.
        a: The first log's name.
        b: The second log's name.
    """
    where: tuple[int, str | None] | None = None
    for one in found:
        if where is None:
            yield f"- {visible(a)}"
            yield f"+ {visible(b)}"
        if where != (where := (one.turn, one.agent)):
            turn = f"turn {one.turn}" if one.turn else "before the first turn"
            yield turn + (f" of {one_line(one.agent)}" if one.agent is not None else "") + ":"
        yield from difference_lines(one)


def difference_lines(one: Difference) -> Iterator[str]:
    """A difference: its path, and below it both values, or the lines in which two texts differ."""
    yield f"  {one_line(one.path)}"
    values = one.as_json()
    if "a" in values and "b" in values and (changed := _changed(values["a"], values["b"])):
        yield from (f"    {visible(line)}" for line in changed)
        return
    for sign, side in (("-", "a"), ("+", "b")):
        if side in values:
            yield f"    {sign} {_shown(values[side])}"


def diff_json(found: Iterable[Difference], a: str, b: str) -> dict[str, Any]:
    """Differences as an object."""
    differences = [one.as_json() for one in found]
    return {"a": a, "b": b, "same": not differences, "differences": differences}


def _changed(a: Any, b: Any) -> list[str] | None:
    """The lines in which two texts of several lines differ; None where they are no such texts."""
    if not (isinstance(a, str) and isinstance(b, str)) or "\n" not in a.strip() + b.strip():
        return None
    if len(a) + len(b) > _COMPARED:
        return None
    old, new = a.split("\n"), b.split("\n")
    lines = [line for line in difflib.ndiff(old, new) if line[0] in "+-"]
    if len(lines) <= _LINES_SHOWN:
        return lines
    return [*lines[:_LINES_SHOWN], f"… {len(lines) - _LINES_SHOWN:,} more lines"]


def _shown(value: Any) -> str:
    """A value on one line: a text in quotes where it stands in an event, an event by its type."""
    if isinstance(value, Mapping) and "type" in value and "t" not in value:
        value = {key: part for key, part in value.items() if key != "seq"}
    text = value if isinstance(value, str) and value.strip() else _json(value)
    return one_line(text, SHOWN)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
