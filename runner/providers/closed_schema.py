"""JSON Schema as Claude's constrained decoding takes it.

Source: the Claude API reference, "Structured outputs", JSON Schema limitations. What is left out
only says more exactly what may stand in a place, and is checked when the answer has come.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runner.providers.blocks import as_list, as_object, as_text
from runner.providers.inline import inlined

_KEPT = frozenset(("type", "enum", "const", "default", "description", "title", "required"))
_LISTS = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
_FORMATS = frozenset(
    ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid")
)
_SILENT = frozenset(("$schema", "$id", "$comment", "examples", "additionalProperties"))


class _OpenError(Exception):
    """The schema leaves open what the decoder wants to know."""


def closed(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema whose answers fit the given one, but for finer bounds.

    None where there is none: for an object whose names are free, and a schema that contains itself.
    """
    whole = inlined(schema)
    try:
        return _closed(whole) if whole is not None else None
    except _OpenError:
        return None


def _closed(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise _OpenError
    made: dict[str, Any] = {}
    bounds: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _LISTS:
            made[_LISTS[name]] = [_closed(item) for item in as_list(value)]
        elif name == "properties":
            made[name] = {key: _closed(item) for key, item in as_object(value).items()}
        elif name == "items":
            made[name] = _closed(value)
        elif _is_known(name, value):
            made[name] = value
        elif name not in _SILENT:
            bounds[name] = value
    if schema.get("type") == "object" or "properties" in schema:
        if not schema.get("properties") or schema.get("additionalProperties"):
            raise _OpenError
        made["additionalProperties"] = False
    if bounds:
        # The model can read what the decoder can't hold it to.
        said = json.dumps(bounds, ensure_ascii=False)
        made["description"] = f"{made.get('description', '')} {said}".strip()
    return made


def _is_known(name: str, value: Any) -> bool:
    match name:
        case "format":
            return as_text(value) in _FORMATS
        case "minItems":
            return value in (0, 1)
    return name in _KEPT
