"""How two JSON values differ, place by place, and which places are not looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from runner.error import UsageError


class Absent:
    """Stands for a value that isn't there."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(slots=True, frozen=True)
class Difference:
    """One place at which two logs differ."""

    turn: int
    """The agent's turn, counted from 1; 0 before the first."""
    agent: str | None
    """The sub-agent's path; None for the main agent."""
    path: str
    """The event's type and the place in it, such as ``message_end.message.content[0].text``; the
    type alone where only one of the logs has the event."""
    a: Any
    """The first log's value, or `ABSENT`."""
    b: Any
    """The second log's value, or `ABSENT`."""

    def as_json(self) -> dict[str, Any]:
        """The difference as JSON; a value that isn't there has no key."""
        found: dict[str, Any] = {"turn": self.turn, "path": self.path}
        if self.agent is not None:
            found["agent"] = self.agent
        if self.a is not ABSENT:
            found["a"] = self.a
        if self.b is not ABSENT:
            found["b"] = self.b
        return found


def differences(a: Any, b: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Each place at which two JSON values differ: its path, and both values there.

    Args:
        a: The first value.
        b: The second value.
        path: The place of the two.
    """
    # Its depth is that of values which the JSON parser could read.
    stack = [(path, a, b)]
    while stack:
        here, one, other = stack.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            stack += reversed(list(_of_objects(one, other, here)))
        elif isinstance(one, list) and isinstance(other, list):
            stack += reversed(list(_of_lists(one, other, here)))
        elif one != other or isinstance(one, bool) != isinstance(other, bool):
            yield here, one, other


def _of_objects(a: dict[str, Any], b: dict[str, Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    for key in (*a, *(key for key in b if key not in a)):
        place = f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key)}]"
        yield path + place, a.get(key, ABSENT), b.get(key, ABSENT)


def _of_lists(a: list[Any], b: list[Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    """The items in their order; where one list is longer, those that its ends don't share."""
    shorter = min(len(a), len(b))
    end = 0
    if len(a) != len(b):
        start = _same(a, b, shorter)
        end = _same(a[::-1], b[::-1], shorter - start)
    for place in range(max(len(a), len(b)) - end):
        one = a[place] if place < len(a) - end else ABSENT
        other = b[place] if place < len(b) - end else ABSENT
        yield f"{path}[{place}]", one, other


def _same(a: list[Any], b: list[Any], most: int) -> int:
    """How many items two lists share at their beginning."""
    for place in range(most):
        if a[place] != b[place]:
            return place
    return most


class Ignored:
    """Places that are not to be told.

    A pattern is a path as of `Difference.path`, for that place and all below it. ``*`` stands for
    any one key or index, and a pattern that begins with ``.`` is for events of all types:
    ``run_end.usage``, ``message_end.message.content[*].text``, ``.spec``.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """Understand patterns.

        Raises:
            UsageError: for an empty one.
        """
        self._patterns = [_pattern(pattern) for pattern in patterns]

    def __contains__(self, path: str) -> bool:
        return any(pattern.match(path) for pattern in self._patterns)


def _pattern(pattern: str) -> re.Pattern[str]:
    path = pattern.strip().removeprefix("$")
    if not path.strip("."):
        raise UsageError(
            f'"{pattern}" is no path to ignore; such as run_end.usage, or .usage for all events'
        )
    if path.startswith("."):
        path = "*" + path
    any_index = re.escape("[*]")
    source = re.escape(path).replace(any_index, r"\[[^\]]*\]").replace(r"\*", r"[^.\[]+")
    return re.compile(source + r"(?=\Z|[.\[])")
