"""Inputs: their types, and the values that a run is given for them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from runner import json_text
from runner.error import UsageError, did_you_mean
from runner.spec.core_schema import resolve
from runner.spec.model import Input
from runner.spec.node import one_line
from runner.spec.yaml_tree import MAX_DEPTH

_WANTED = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean (true or false)",
    "array": "an array",
    "object": "an object",
}
_PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def bind(
    declared: Mapping[str, Input], values: Mapping[str, Any], texts: Mapping[str, str]
) -> dict[str, Any]:
    """The value of each declared input.

    Args:
        declared: The inputs of a spec, by their names.
        values: JSON values that were given.
        texts: What was given as text, which is read by the declared type. It wins over `values`.

    Raises:
        UsageError: for all that is unknown, missing, of the wrong type or not allowed, a line each.
    """
    bound: dict[str, Any] = {}
    problems = [
        f'no input is called "{name}"; {did_you_mean(name, declared)}'
        for name in {**values, **texts}
        if name not in declared
    ]
    for name, known in declared.items():
        try:
            if name in texts:
                bound[name] = allowed(known, read(known, texts[name]))
            elif name in values:
                bound[name] = allowed(known, values[name])
            elif known.default is not None:
                bound[name] = known.default
            else:
                problems.append(f'the input "{name}" is missing; give it with -i {name}=VALUE')
        except ValueError as error:
            problems.append(f'the input "{name}": {error}')
    if problems:
        raise UsageError("\n".join(map(one_line, problems)))
    return bound


def read(known: Input, text: str) -> Any:
    """The value of a text by an input's type.

    Raises:
        ValueError: saying what is needed, where it is no such value.
    """
    if known.type == "string":
        return text
    try:
        if known.type in ("array", "object"):
            return json_text.parse(text)
        return resolve(text.strip()) if text.strip() else text
    except ValueError:
        return text


def allowed(known: Input, value: Any) -> Any:
    """A value, where an input may have it.

    Raises:
        ValueError: saying what is needed, where it may not.
    """
    if _is_too_deep(value):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    if known.type == "number" and isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a number that JSON has is needed, not {value}")
    fits = isinstance(value, _PYTHON[known.type])
    if not fits or (isinstance(value, bool) and known.type != "boolean"):
        shown = "" if known.secret else f", not {_shown(value)}"
        raise ValueError(f"{_WANTED[known.type]} is needed{shown}")
    if known.enum is not None and _key(value) not in [_key(option) for option in known.enum]:
        if known.secret:
            raise ValueError("a value is needed that its enum has")
        options = ", ".join(_shown(option) for option in known.enum)
        raise ValueError(f"one of {options} is needed, not {_shown(value)}")
    return value


def parameters(declared: Mapping[str, Input]) -> dict[str, Any]:
    """The JSON Schema of a spec's inputs, as the parameters of a tool."""
    properties: dict[str, Any] = {}
    for name, known in declared.items():
        schema: dict[str, Any] = {"type": known.type}
        if known.description is not None:
            schema["description"] = known.description
        if known.enum is not None and not known.secret:
            schema["enum"] = known.enum
        if known.default is not None and not known.secret:
            schema["default"] = known.default
        properties[name] = schema
    required = [name for name, known in declared.items() if known.default is None]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (list, dict))
            for inner in (outer if isinstance(outer, list) else outer.values())
        ]
        if not level:
            return False
    return True


def _key(value: Any) -> str:
    """Equal for equal JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
