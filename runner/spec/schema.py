"""The JSON Schema of specs (Draft 2020-12), made of the model that loads them.

``python -m runner.spec.schema`` writes ``schemas/spec.schema.json``. It is as lenient as the loader
is: a number or a boolean may stand where a text is wanted, keys that begin with ``x-`` in any map,
and a spec that extends another need not be whole.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from runner.bundled import folder
from runner.spec.decode import shape_of
from runner.spec.mark import Pattern
from runner.spec.model import Spec
from runner.spec.model.map import Map
from runner.spec.record import IncludedShape, ModelShape, UnionShape
from runner.spec.shape import (
    BooleanShape,
    ChoiceShape,
    ListShape,
    MarkedShape,
    NullShape,
    NumberShape,
    PrivateShape,
    Shape,
    TableShape,
    TextShape,
)

Json = dict[str, Any]

_TEXT_TYPES = ["string", "number", "boolean"]
_FILE: Json = {
    "type": "object",
    "description": "The file whose content stands here.",
    "properties": {"file": {"type": _TEXT_TYPES, "description": "Its path."}},
    "required": ["file"],
    "patternProperties": {"^x-": True},
    "additionalProperties": False,
}


def generate() -> Json:
    """The schema of a spec."""
    definitions = _Definitions()
    root = shape_of(Spec)
    assert isinstance(root, ModelShape)
    whole = definitions.of(root, part=False)
    properties = definitions.body(root, part=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A spec of pi-run, version 1",
        **properties,
        "if": {"not": {"required": ["extends"]}},
        "then": whole,
        "$defs": dict(sorted(definitions.made.items())),
    }


def text() -> str:
    """The schema as it stands in its file."""
    return json.dumps(generate(), indent=2, ensure_ascii=False) + "\n"


class _Definitions:
    """The definitions of maps, each made when it is first referred to."""

    def __init__(self) -> None:
        self.made: dict[str, Json] = {}

    def of(self, shape: Shape, *, part: bool) -> Json:
        """The schema of a shape; ``part`` where a map may be completed by what it is laid over."""
        match shape:
            case MarkedShape() | PrivateShape():
                return self.of(shape.inner, part=part)
            case TextShape():
                return {"type": _TEXT_TYPES} | _pattern(shape.pattern)
            case NumberShape():
                return _number(shape)
            case BooleanShape():
                return {"type": "boolean"}
            case NullShape():
                return {"type": "null"}
            case ChoiceShape():
                return {"enum": list(shape.options)}
            case ListShape():
                return {"type": "array", "items": self.of(shape.item, part=False)}
            case TableShape():
                return self._table(shape, part=part)
            case IncludedShape():
                self.made["File"] = _FILE
                inner = self.of(shape.inner, part=part)
                return _any_of([inner, {"$ref": "#/$defs/File"}])
            case UnionShape():
                return _any_of([self.of(option, part=part) for option in shape.options])
            case ModelShape():
                return self._reference(shape, part=part)
        return {}

    def _table(self, shape: TableShape, *, part: bool) -> Json:
        schema: Json = {"type": "object", "additionalProperties": self.of(shape.value, part=part)}
        if shape.pattern:
            schema["propertyNames"] = {"pattern": f"^(?:{shape.pattern.regex}|x-.*)$"}
            schema["patternProperties"] = {"^x-": True}
        return schema

    def _reference(self, shape: ModelShape, *, part: bool) -> Json:
        name = shape.model.__name__
        if part and _is_strict(shape):
            name += "Part"
        if name not in self.made:
            self.made[name] = {}
            self.made[name] = self.body(shape, part=part)
        return {"$ref": f"#/$defs/{name}"}

    def body(self, shape: ModelShape, *, part: bool) -> Json:
        """The schema of a map itself."""
        meanings = notes(shape.model)
        properties = {}
        for key, known in shape.keys.items():
            schema = self.of(known.shape, part=part)
            default = shape.model.fields[known.name]
            if isinstance(default, (str, int, float)):
                schema = {**schema, "default": default}
            properties[key] = {**schema, "description": meanings[known.name]}
        for key in shape.rule("ignored"):
            properties[key] = {"type": "string", "description": "Where this schema lies."}
        schema = {
            "type": "object",
            "description": " ".join((shape.model.__doc__ or "").split()),
            "properties": properties,
            "patternProperties": {"^x-": True},
            "additionalProperties": False,
        }
        return schema if part else schema | _rules(shape)


def _any_of(options: Iterable[Json]) -> Json:
    """The schema that is met by one of these, in the shortest form."""
    types: dict[str, None] = {}
    others: list[Json] = []
    for option in options:
        for each in option.get("anyOf", [option]):
            if each.keys() == {"type"}:
                kind = each["type"]
                types.update(dict.fromkeys([kind] if isinstance(kind, str) else kind))
            elif each not in others:
                others.append(each)
    simple: Json = {"type": list(types) if len(types) > 1 else next(iter(types), None)}
    if not others:
        return simple
    return {"anyOf": [simple, *others] if types else others}


def _number(shape: NumberShape) -> Json:
    schema: Json = {"type": "integer" if shape.integer else "number"}
    if shape.bound:
        key = "exclusiveMinimum" if shape.bound.exclusive else "minimum"
        schema[key] = shape.bound.least
    return schema


def _pattern(pattern: Pattern | None) -> Json:
    return {"pattern": f"^(?:{pattern.regex})$"} if pattern else {}


def _rules(shape: ModelShape) -> Json:
    """What has to stand in a whole map."""
    schema: Json = {}
    if required := [key for key, known in shape.keys.items() if known.required]:
        schema["required"] = required
    if one_of := shape.rule("one_of"):
        schema["oneOf"] = [{"required": [key]} for key in one_of]
    if any_of := shape.rule("any_of"):
        schema["anyOf"] = [{"required": [key]} for key in any_of]
    if needs := shape.rule("needs"):
        key, table = needs
        schema["allOf"] = [
            {
                "if": {"properties": {key: {"const": value}}, "required": [key]},
                "then": {"required": list(others)},
            }
            for value, others in table.items()
        ]
    return schema


def _is_strict(shape: Shape) -> bool:
    """Whether a whole map has rules that a part of it need not keep."""
    match shape:
        case MarkedShape() | PrivateShape() | IncludedShape():
            return _is_strict(shape.inner)
        case TableShape():
            return _is_strict(shape.value)
        case UnionShape():
            return any(map(_is_strict, shape.options))
        case ModelShape():
            return bool(_rules(shape)) or any(
                _is_strict(known.shape) for known in shape.keys.values()
            )
    return False


def notes(model: type[Map]) -> Mapping[str, str]:
    """The string below each field of a class, read from its source."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, Map) or base is Map:
            continue
        body = _class_bodies(base.__module__)[base.__name__]
        for field, note in itertools.pairwise(body):
            match field, note:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(written))),
                ):
                    found[name] = " ".join(written.split())
    return found


@functools.cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}


if __name__ == "__main__":
    (folder("schemas") / "spec.schema.json").write_text(text(), encoding="utf-8")
