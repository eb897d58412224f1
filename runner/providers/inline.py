"""JSON Schemas without references, for those who don't follow them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

MOST_NODES = 10_000
"""A schema that becomes larger than this when its references are followed is left alone."""

_DATA = frozenset(("const", "default", "enum", "example", "examples"))
_MAPS = frozenset(("dependentSchemas", "patternProperties", "properties"))
_DEFINITIONS = frozenset(("$defs", "definitions"))


def inlined(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema with what each ``$ref`` of it stands for in its place.

    None where that can't be: it contains itself, refers to another document, or would grow beyond
    all bounds.
    """
    try:
        made: dict[str, Any] = _Inliner(schema).walk(
            {name: value for name, value in schema.items() if name not in _DEFINITIONS}, ()
        )
    except (_EndlessError, RecursionError):
        return None
    return made


class _EndlessError(Exception):
    """There is no such schema."""


class _Inliner:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MOST_NODES

    def walk(self, node: Any, inside: tuple[str, ...]) -> Any:
        """A node without references; ``inside`` are those that led to it."""
        if isinstance(node, list):
            return [self.walk(item, inside) for item in node]
        if not isinstance(node, Mapping):
            return node
        self._left -= 1
        if self._left < 0:
            raise _EndlessError
        made = {
            name: self._value(name, value, inside) for name, value in node.items() if name != "$ref"
        }
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return made
        if reference in inside:
            raise _EndlessError
        found = self.walk(self._target(reference), (*inside, reference))
        return {**found, **made} if isinstance(found, dict) else found

    def _value(self, name: str, value: Any, inside: tuple[str, ...]) -> Any:
        if name in _DATA:
            return value
        if name in _MAPS and isinstance(value, Mapping):
            return {key: self.walk(item, inside) for key, item in value.items()}
        return self.walk(value, inside)

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#"):
            raise _EndlessError
        node: Any = self._root
        for part in reference.split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or name not in node:
                raise _EndlessError
            node = node[name]
        return node
