"""A spec's text as a tree that still knows where each value and each key stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from runner.error import Fault

MAX_PATH = 200
"""Characters of a PATH that a fault shows."""
MAX_MESSAGE = 600
"""Characters of what is wrong that a fault shows."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where text came from: a file, an option of the command, a log's plan."""

    name: str
    """As a person knows it, such as the path given to the command."""
    folder: str = "."
    """What relative paths in it are relative to."""


class Place(NamedTuple):
    """Where something stands, line and column counted from 1."""

    source: Source
    line: int
    column: int

    def fault(self, path: str, message: str, *, warning: bool = False) -> Fault:
        """A fault that stands here."""
        path = _short(one_line(path or "spec"), MAX_PATH)
        message = _short(one_line(message), MAX_MESSAGE)
        return Fault(self.source.name, self.line, self.column, path, message, warning=warning)


@dataclass(slots=True, eq=False, repr=False)
class ScalarNode:
    """A single value."""

    place: Place
    text: str
    """As written, but for quotes and escapes."""
    value: str | int | float | bool | None
    """By the core schema of YAML 1.2."""
    plain: bool = False
    """Whether it stands without quotes, so that its text is not its only reading."""
    broken: bool = False
    """Whether its fault is already told, and nothing more is to be said about it."""


@dataclass(slots=True, eq=False, repr=False)
class ListNode:
    """A list."""

    place: Place
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class MapNode:
    """A map. What an anchor names may stand in several places of a tree."""

    place: Place
    entries: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Place] = field(default_factory=dict)
    """Where each key stands."""


Node = ScalarNode | ListNode | MapNode

_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[\w$-]+")
_STEP = re.compile(r'\[(?P<index>\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]|\.?(?P<key>[^.\[\]]+)')


def one_line(text: str) -> str:
    """A text whose control characters and line breaks stand as escapes."""
    return _ODD.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def join(path: str, key: str | int) -> str:
    """The PATH of what stands in another: ``tools`` and 2 give ``tools[2]``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def split(path: str) -> list[str | int] | None:
    """The steps of a PATH, None where it is not one."""
    steps: list[str | int] = []
    end = 0
    for match in _STEP.finditer(path):
        if match.start() != end or (end == 0 and path.startswith(".")):
            return None
        end = match.end()
        if match["index"]:
            steps.append(int(match["index"][:9]))
        else:
            steps.append(match["key"] or json.loads(match["quoted"]))
    return steps if end == len(path) and steps else None


def child(node: Node | None, step: str | int) -> Node | None:
    """What stands under a key or at an index, None where nothing does."""
    if isinstance(node, MapNode) and isinstance(step, str):
        return node.entries.get(step)
    if isinstance(node, ListNode) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None


def scalars(node: Node, path: str) -> Iterator[tuple[str, ScalarNode]]:
    """All single values in a tree, each with its PATH."""
    if isinstance(node, ScalarNode):
        yield path, node
    elif isinstance(node, ListNode):
        for index, item in enumerate(node.items):
            yield from scalars(item, join(path, index))
    else:
        for key, value in node.entries.items():
            yield from scalars(value, join(path, key))


def to_value(node: Node) -> Any:
    """The plain JSON value of a tree; what is not JSON (NaN) stays as it is."""
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, ListNode):
        return [to_value(item) for item in node.items]
    return {key: to_value(value) for key, value in node.entries.items()}


def from_value(value: Any, place: Place) -> Node:
    """A plain JSON value as a tree, all of which stands in one place."""
    if isinstance(value, Mapping):
        entries = {str(key): from_value(item, place) for key, item in value.items()}
        return MapNode(place, entries, dict.fromkeys(entries, place))
    if isinstance(value, (list, tuple)):
        return ListNode(place, [from_value(item, place) for item in value])
    if isinstance(value, str):
        return ScalarNode(place, value, value)
    return ScalarNode(place, json.dumps(value), value, plain=True)
