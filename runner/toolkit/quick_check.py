"""Seeing at a glance that a value fits a plain JSON Schema, with nothing imported for it.

It never says that a value is wrong, or why: what is not clear here is for the whole check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_MAX_DEPTH = 40
"""Levels of a value that are looked at."""


def surely_fits(value: Any, schema: Any, depth: int = _MAX_DEPTH) -> bool:
    """True only if a value fits; False also where that isn't clear."""
    if schema is True or schema == {}:
        return True
    if not isinstance(schema, Mapping) or not depth:
        return False
    for keyword, asked in schema.items():
        if keyword in _ANNOTATIONS:
            continue
        keyword_fits = _KEYWORDS.get(keyword)
        if keyword_fits is None or not keyword_fits(value, asked, schema, depth - 1):
            return False
    return True


def _type(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    wanted = (asked,) if isinstance(asked, str) else asked
    return isinstance(wanted, (tuple, list)) and any(
        type(value) in _TYPES.get(name, ()) for name in wanted if isinstance(name, str)
    )


def _enum(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    # Of other types Python and JSON differ on what is equal: True and 1, 1 and 1.0.
    return isinstance(value, str) and isinstance(asked, list) and value in asked


def _const(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    return isinstance(value, str) and value == asked


def _properties(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict) or not isinstance(asked, Mapping):
        return False
    return all(
        surely_fits(value[name], part, depth) for name, part in asked.items() if name in value
    )


def _required(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(value, dict) or not isinstance(asked, list):
        return False
    return all(isinstance(name, str) and name in value for name in asked)


def _additional(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    known = schema.get("properties", {})
    if not isinstance(value, dict) or not isinstance(known, Mapping):
        return False
    return all(
        asked is not False and surely_fits(part, asked, depth)
        for name, part in value.items()
        if name not in known
    )


def _items(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    return isinstance(value, list) and all(surely_fits(item, asked, depth) for item in value)


def _any_of(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    return isinstance(asked, list) and any(surely_fits(value, part, depth) for part in asked)


def _minimum(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    return _is_number(value) and _is_number(asked) and value >= asked


def _maximum(value: Any, asked: Any, schema: Mapping[str, Any], depth: int) -> bool:
    return _is_number(value) and _is_number(asked) and value <= asked


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}

_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "format", "$comment", "$schema")
)

_KEYWORDS: dict[str, Callable[[Any, Any, Mapping[str, Any], int], bool]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "minimum": _minimum,
    "maximum": _maximum,
}
