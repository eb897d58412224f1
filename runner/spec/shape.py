"""What may stand in a place of a spec: shapes, which make values of nodes or say what is wrong.

A shape that can't make a value of a node adds a fault and gives `INVALID`; whatever has such a part
is invalid too, so all faults of a spec are found and none is told twice.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from runner.error import Fault, nearest
from runner.spec.mark import Included, Mark, Min, Pattern
from runner.spec.node import ListNode, MapNode, Node, ScalarNode, join

MAX_NUMBER = 10**15
"""No number of a spec is larger: a longer one is a slip, and arithmetic with it goes wrong."""

INVALID: Final[Any] = object()
"""Stands for a value that could not be made."""


@dataclass(slots=True, eq=False, repr=False)
class Found:
    """A marked value and where it stands."""

    mark: Mark
    path: str
    node: Node


@dataclass(slots=True, eq=False, repr=False)
class Decoding:
    """What is gathered while a tree is decoded."""

    faults: list[Fault]
    include: Callable[[ScalarNode, str, Included], Node | None]
    """Reads the file that a node names, for a PATH; None where it can't, which is a fault."""
    found: list[Found] = field(default_factory=list)
    """Every marked value, in the order of the text."""

    def fault(self, node: Node, path: str, message: str) -> Any:
        """Add a fault at a node, and give `INVALID`."""
        if not (isinstance(node, ScalarNode) and node.broken):
            self.faults.append(node.place.fault(path, message))
        return INVALID


class Shape:
    """What may stand in a place."""

    wanted: str = "a value"
    """What it is, in words."""
    private: bool = False
    """Whether no message may show it."""

    def fits(self, node: Node) -> bool:
        """Whether a node is of this kind, whatever is in it."""
        raise NotImplementedError

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """The value of a node that fits."""
        raise NotImplementedError

    def read(self, node: Node, path: str, into: Decoding) -> Any:
        """The value of a node, or a fault about its kind."""
        if isinstance(node, ScalarNode) and node.broken:
            return INVALID
        if self.fits(node):
            return self.decode(node, path, into)
        found = "" if self.private else f", not {shown(node)}"
        return into.fault(node, path, f"{self.wanted} is needed{found}")


@dataclass(slots=True, eq=False, repr=False)
class TextShape(Shape):
    """A text; a plain scalar is one as it is written."""

    pattern: Pattern | None = None
    wanted: str = "a string"

    def fits(self, node: Node) -> bool:
        """A scalar that isn't null."""
        return isinstance(node, ScalarNode) and node.value is not None

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """The text as it is written."""
        text = node.text if isinstance(node, ScalarNode) else ""
        if self.pattern and not re.fullmatch(self.pattern.regex, text):
            return into.fault(node, path, f"{shown(node)} is not right; use {self.pattern.wanted}")
        return text


@dataclass(slots=True, eq=False, repr=False)
class NumberShape(Shape):
    """An integer, or any number that JSON has."""

    integer: bool
    bound: Min | None = None

    @property
    def wanted(self) -> str:  # type: ignore[override]
        """With its bound."""
        name = "an integer" if self.integer else "a number"
        if not self.bound:
            return name
        least = f"{self.bound.least:g}"
        return (
            f"{name} greater than {least}"
            if self.bound.exclusive
            else f"{name} of at least {least}"
        )

    def fits(self, node: Node) -> bool:
        """A number of the right kind."""
        if not isinstance(node, ScalarNode) or isinstance(node.value, bool):
            return False
        return isinstance(node.value, int if self.integer else (int, float))

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """The number as it is written: 0 stays 0 where 0.0 could stand."""
        value: Any = node.value if isinstance(node, ScalarNode) else None
        bound = self.bound
        low = bound and (value <= bound.least if bound.exclusive else value < bound.least)
        if value > MAX_NUMBER:
            return into.fault(node, path, f"{shown(node)} is too large")
        if low or math.isnan(value):
            return into.fault(node, path, f"{self.wanted} is needed, not {shown(node)}")
        return value


class BooleanShape(Shape):
    """True or false."""

    wanted = "a boolean (true or false)"

    def fits(self, node: Node) -> bool:
        """One of the two words, without quotes."""
        return isinstance(node, ScalarNode) and isinstance(node.value, bool)

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """True or false."""
        return node.value if isinstance(node, ScalarNode) else INVALID


class NullShape(Shape):
    """Nothing."""

    wanted = "null"

    def fits(self, node: Node) -> bool:
        """Null, in any spelling."""
        return isinstance(node, ScalarNode) and node.value is None and not node.broken

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """None."""
        return None


@dataclass(slots=True, eq=False, repr=False)
class ChoiceShape(Shape):
    """One of a few words."""

    options: tuple[str | int, ...]

    @property
    def wanted(self) -> str:  # type: ignore[override]
        """All of them."""
        return either(map(str, self.options))

    def fits(self, node: Node) -> bool:
        """Any scalar that isn't null."""
        return isinstance(node, ScalarNode) and node.value is not None

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """The option whose text it is."""
        text = node.text if isinstance(node, ScalarNode) else ""
        for option in self.options:
            if text == str(option):
                return option
        near = nearest(text, [str(option) for option in self.options])
        hint = f'; did you mean "{near}"?' if near else ""
        return into.fault(node, path, f"{self.wanted} is needed, not {shown(node)}{hint}")


@dataclass(slots=True, eq=False, repr=False)
class ListShape(Shape):
    """A list."""

    item: Shape
    wanted: str = "a list"

    def fits(self, node: Node) -> bool:
        """A list of anything."""
        return isinstance(node, ListNode)

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """The values of its items."""
        items = node.items if isinstance(node, ListNode) else []
        values = [self.item.read(item, join(path, n), into) for n, item in enumerate(items)]
        return INVALID if INVALID in values else values


@dataclass(slots=True, eq=False, repr=False)
class TableShape(Shape):
    """A map whose keys are the user's own."""

    value: Shape
    pattern: Pattern | None = None
    wanted: str = "a map"

    def fits(self, node: Node) -> bool:
        """A map of anything."""
        return isinstance(node, MapNode)

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """Its values; where keys are names, those that begin with ``x-`` are left out."""
        values: dict[str, Any] = {}
        sound = True
        entries = node.entries if isinstance(node, MapNode) else {}
        keys = node.keys if isinstance(node, MapNode) else {}
        for key, item in entries.items():
            if self.pattern and key.startswith("x-"):
                continue
            if self.pattern and not re.fullmatch(self.pattern.regex, key):
                message = f"the name is not right; use {self.pattern.wanted}"
                into.faults.append(keys[key].fault(join(path, key), message))
                sound = False
            values[key] = self.value.read(item, join(path, key), into)
        return values if sound and INVALID not in values.values() else INVALID


class FreeShape(Shape):
    """Any JSON."""

    def fits(self, node: Node) -> bool:
        """Anything."""
        return True

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """The plain value."""
        if isinstance(node, MapNode):
            return TableShape(self).decode(node, path, into)
        if isinstance(node, ListNode):
            return ListShape(self).decode(node, path, into)
        if node.broken:
            return INVALID
        if isinstance(node.value, float) and not math.isfinite(node.value):
            return into.fault(node, path, f"{node.text} is no number that JSON has")
        return node.value


@dataclass(slots=True, eq=False, repr=False)
class MarkedShape(Shape):
    """A value that is more than its type says."""

    inner: Shape
    mark: Mark

    @property
    def wanted(self) -> str:  # type: ignore[override]
        """As without the mark."""
        return self.inner.wanted

    def fits(self, node: Node) -> bool:
        """As without the mark."""
        return self.inner.fits(node)

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """As without the mark; where it stands is kept."""
        value = self.inner.decode(node, path, into)
        if value is not INVALID:
            into.found.append(Found(self.mark, path, node))
        return value


@dataclass(slots=True, eq=False, repr=False)
class PrivateShape(Shape):
    """A value that no message may show."""

    inner: Shape
    private: bool = True

    @property
    def wanted(self) -> str:  # type: ignore[override]
        """As without the mark."""
        return self.inner.wanted

    def fits(self, node: Node) -> bool:
        """As without the mark."""
        return self.inner.fits(node)

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """As without the mark."""
        return self.inner.decode(node, path, into)


def either(names: Iterable[str]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def shown(node: Node) -> str:
    """What a node is, in words, no longer than a line."""
    if isinstance(node, MapNode):
        return "a map"
    if isinstance(node, ListNode):
        return "a list"
    value = node.value
    if value is None:
        return "null"
    if isinstance(value, str):
        text = value if len(value) <= 60 else value[:57] + "…"
        return f"the string {json.dumps(text, ensure_ascii=False)}"
    text = node.text if len(node.text) <= 60 else node.text[:57] + "…"
    return f"the boolean {text}" if isinstance(value, bool) else f"the number {text}"
