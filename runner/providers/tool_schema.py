"""Tools and schemas as requests carry them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.engine.contract import ToolSchema
from runner.providers.body import to_bytes


class ToolList:
    """The tools of a request as JSON, written anew only when they change."""

    def __init__(self, encode: Callable[[ToolSchema], Any]) -> None:
        self._encode = encode
        self._seen: list[ToolSchema] = []
        self._json = b"[]"

    def json(self, tools: Sequence[ToolSchema]) -> bytes:
        """A JSON array of the tools; an empty one where there are none."""
        if list(tools) != self._seen:
            self._seen = list(tools)
            self._json = to_bytes([self._encode(tool) for tool in tools])
        return self._json


def object_schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's parameters with what servers miss in those of a tool without any."""
    return {"type": "object", "properties": {}, **parameters}


def is_strict(schema: Any) -> bool:
    """Whether OpenAI can hold a model to a schema: each object closed, each property required.

    Source: the OpenAI guide "Structured model outputs", supported schemas.
    """
    if isinstance(schema, list):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties")
        closed = schema.get("additionalProperties") is False
        if not (closed and isinstance(properties, Mapping) and _all_required(schema, properties)):
            return False
    if not _STRICT_REFUSES.isdisjoint(schema):
        return False
    inner = (
        [*value.values()]
        if name in ("properties", "$defs") and isinstance(value, Mapping)
        else value
        for name, value in schema.items()
        if name not in ("enum", "const", "default", "examples")
    )
    return all(map(is_strict, inner))


def _all_required(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> bool:
    required = schema.get("required", ())
    return isinstance(required, list | tuple) and set(properties) <= set(map(str, required))


_STRICT_REFUSES = frozenset(
    (
        "allOf",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "oneOf",
        "patternProperties",
        "then",
        "unevaluatedProperties",
    )
)
