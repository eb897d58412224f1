"""JSON Schema and conversion of plain type hints, without pydantic, which takes long to import.

What it gives is what pydantic would: a test holds the two together.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

Convert = Callable[[Any], Any]
"""Makes a value of the hinted type of JSON that fits the schema."""

_NAMES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    types.NoneType: "null",
}


class NotPlain(Exception):  # noqa: N818 - no error: pydantic takes over
    """The hint is not plain: it is for pydantic."""


def read_plain(hint: Any) -> tuple[dict[str, Any], Convert]:
    """The schema and the conversion of a hint.

    Raises:
        NotPlain: for any hint but str, int, float, bool, None, Any, list, dict with names for
            keys, Literal, and a union of one of these with None.
    """
    if hint in (Any, inspect.Parameter.empty):
        return {}, _as_it_is
    if hint is None:
        hint = types.NoneType
    if isinstance(hint, type) and hint in _NAMES:
        return {"type": _NAMES[hint]}, {int: _to_int, float: _to_float}.get(hint, _as_it_is)
    origin, parts = get_origin(hint), get_args(hint)
    if hint is list or origin is list:
        return _read_list(*parts)
    if hint is dict or origin is dict:
        return _read_dict(*parts)
    if origin is Literal:
        return _read_literal(parts), _as_it_is
    if origin in (Union, types.UnionType):
        return _read_optional(parts)
    raise NotPlain


def split_description(hint: Any) -> tuple[Any, str | None]:
    """A hint, and the text that it is annotated with where that is all: ``Annotated[T, "…"]``."""
    if get_origin(hint) is Annotated:
        inner, *said = get_args(hint)
        if len(said) == 1 and isinstance(said[0], str):
            return inner, said[0]
    return hint, None


def _read_list(item: Any = Any) -> tuple[dict[str, Any], Convert]:
    schema, convert = read_plain(item)
    if convert is not _as_it_is:
        return {"type": "array", "items": schema}, lambda value: [convert(one) for one in value]
    return {"type": "array", "items": schema}, _as_it_is


def _read_dict(key: Any = str, item: Any = Any) -> tuple[dict[str, Any], Convert]:
    if key is not str:
        raise NotPlain
    schema, convert = read_plain(item)
    whole = {"type": "object", "additionalProperties": schema or True}
    if convert is not _as_it_is:
        return whole, lambda value: {name: convert(one) for name, one in value.items()}
    return whole, _as_it_is


def _read_literal(members: tuple[Any, ...]) -> dict[str, Any]:
    if any(type(member) not in _NAMES for member in members):
        raise NotPlain
    schema: dict[str, Any] = {"const": members[0]} if len(members) == 1 else {"enum": [*members]}
    kinds = {type(member) for member in members}
    return schema | ({"type": _NAMES[kinds.pop()]} if len(kinds) == 1 else {})


def _read_optional(parts: tuple[Any, ...]) -> tuple[dict[str, Any], Convert]:
    if len(parts) != 2 or types.NoneType not in parts:
        raise NotPlain
    read = [read_plain(part) for part in parts]
    if {} in [schema for schema, _ in read]:
        raise NotPlain
    convert = read[0 if parts[1] is types.NoneType else 1][1]
    whole = {"anyOf": [schema for schema, _ in read]}
    return whole, lambda value: None if value is None else convert(value)


def _as_it_is(value: Any) -> Any:
    return value


def _to_int(value: Any) -> Any:
    # JSON does not tell 2.0 from 2.
    return int(value) if isinstance(value, float) else value


def _to_float(value: Any) -> Any:
    return float(value)
