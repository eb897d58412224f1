"""JSON Schema as Gemini's ``Schema`` can say it, which is a part of OpenAPI 3.0's.

Source: the Gemini API reference, ``Schema``. It refuses keywords that it doesn't know. What is
left out only says more exactly what may stand in a place, and is checked when the answer has come.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runner.providers.blocks import as_list, as_object, as_text
from runner.providers.inline import inlined

_KEPT = frozenset(
    (
        "description",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "nullable",
        "title",
    )
)
_FORMATS = frozenset(("date-time", "double", "float", "int32", "int64"))
_SILENT = frozenset(
    (
        "$comment",
        "$id",
        "$schema",
        "additionalProperties",
        "default",
        "example",
        "examples",
    )
)
_READ = frozenset(
    (
        "allOf",
        "anyOf",
        "const",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "oneOf",
        "properties",
        "required",
        "type",
    )
)
_TYPES = frozenset(("array", "boolean", "integer", "number", "object", "string"))


class _OpenError(Exception):
    """The schema leaves a type open, which can't be said."""


def reduced(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema in those words; None where something would be lost that arguments are made of.

    That is an object whose names are free, a value of any type, and a schema that contains itself.
    """
    whole = inlined(schema)
    try:
        return _reduced(whole) if whole is not None else None
    except _OpenError:
        return None


def _reduced(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise _OpenError
    schema = _joined(schema)
    types, nullable = _types(schema)
    branches = as_list(schema.get("anyOf") or schema.get("oneOf"))
    if types and len(types) == 1:
        made = _typed(schema, types[0])
    elif types:
        made = {"anyOf": [_typed({**schema, "description": ""}, type_) for type_ in types]}
    elif branches:
        made, has_null = _choice(branches)
        nullable = nullable or has_null
    else:
        raise _OpenError
    if description := schema.get("description"):
        made.setdefault("description", description)
    if nullable:
        made["nullable"] = True
    return made


def _joined(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with the members of its ``allOf`` in it."""
    members = schema.get("allOf")
    if not isinstance(members, list):
        return schema
    made = {name: value for name, value in schema.items() if name != "allOf"}
    for member in members:
        if not isinstance(member, Mapping):
            raise _OpenError
        member = _joined(member)
        properties = as_object(made.get("properties")) | as_object(member.get("properties"))
        required = as_list(made.get("required")) + as_list(member.get("required"))
        made = {**member, **made}
        if properties:
            made["properties"] = properties
        if required:
            made["required"] = required
    return made


def _types(schema: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The types that a value may have, by what is said and by what else is there; and null."""
    said = schema.get("type")
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    nullable = isinstance(values, list) and None in values
    if isinstance(said, str):
        found = [said]
    elif isinstance(said, list):
        found = [item for item in said if isinstance(item, str)]
    elif "properties" in schema:
        found = ["object"]
    elif "items" in schema:
        found = ["array"]
    elif isinstance(values, list):
        found = sorted({_type_of(value) for value in values})
    else:
        return [], False
    types = [item for item in found if item != "null"]
    if not types or not _TYPES.issuperset(types):
        raise _OpenError
    return types, nullable or "null" in found


def _type_of(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
    return names.get(type(value), "object")


def _choice(branches: Sequence[Any]) -> tuple[dict[str, Any], bool]:
    """One of several schemas, and whether null is among them."""
    some = [item for item in branches if not (isinstance(item, Mapping) and _is_null(item))]
    if not some:
        raise _OpenError
    made = [_reduced(item) for item in some]
    return made[0] if len(made) == 1 else {"anyOf": made}, len(some) < len(branches)


def _is_null(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "null" or schema.get("enum") == [None]


def _typed(schema: Mapping[str, Any], type_: str) -> dict[str, Any]:
    """A schema of one type."""
    made: dict[str, Any] = {"type": type_}
    bounds = {k: v for k, v in schema.items() if k not in _KEPT | _SILENT | _READ}
    made |= {name: value for name, value in schema.items() if name in _KEPT}
    if type_ == "object":
        made |= _members(schema)
    elif type_ == "array":
        made["items"] = _reduced(schema.get("items"))
    elif type_ in ("integer", "number"):
        made |= _range(schema, 1 if type_ == "integer" else 0)
    if (format_ := as_text(schema.get("format"))) in _FORMATS:
        made["format"] = format_
    elif format_:
        bounds["format"] = format_
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        if type_ == "string":
            made["enum"] = [value for value in values if isinstance(value, str)]
        else:
            bounds["enum"] = values
    if bounds:
        # The model can read what can't be said otherwise.
        said = json.dumps(bounds, ensure_ascii=False)
        made["description"] = f"{made.get('description', '')} {said}".strip()
    return {name: value for name, value in made.items() if value != ""}


def _members(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = as_object(schema.get("properties"))
    if not properties:
        raise _OpenError
    made: dict[str, Any] = {
        "properties": {name: _reduced(value) for name, value in properties.items()}
    }
    required = as_list(schema.get("required"))
    if known := [name for name in properties if name in required]:
        made["required"] = known
    return made


def _range(schema: Mapping[str, Any], step: int) -> dict[str, Any]:
    """Bounds that lie outside the range, as such that lie inside it (of a whole number)."""
    made = {}
    for name, outside, sign in (
        ("minimum", "exclusiveMinimum", step),
        ("maximum", "exclusiveMaximum", -step),
    ):
        bound = schema.get(outside)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            made[name] = bound + sign
    return made
