"""The JSON Schema of a log's line, made from the classes of the events: ``python -m`` this.

It takes fields and types of events and of blocks that it does not know, as a reader does.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import sys
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, is_typeddict

from runner import bundled
from runner.engine import event as events
from runner.log.described import by_word, fields, options, tag

Schema = dict[str, Any]

FILE = "log.schema.json"
"""Its name in the folder of schemas."""

_SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    dict: {"type": "object"},
    Any: {},
}


def schema() -> Schema:
    """The JSON Schema (Draft 2020-12) of one line of a log."""
    definitions: dict[str, Schema] = {}
    known = by_word(get_args(events.Event), "type")
    lines = []
    for word, described in known.items():
        definitions[word] = {}  # keeps the order of the events
        definitions[word] = _object(described, definitions, ("seq",))
        lines.append({"$ref": f"#/$defs/{word}"})
    definitions["unknown"] = {
        "description": "An event of a newer minor version.",
        "type": "object",
        "properties": {
            "seq": {"type": "integer", "minimum": 0},
            "type": {"type": "string", "not": {"enum": list(known)}},
        },
        "required": ["seq", "type"],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a pi-run log",
        "description": f"One event of a run, as it stands in a log of the format {events.FORMAT}.",
        "oneOf": [*lines, {"$ref": "#/$defs/unknown"}],
        "$defs": definitions,
    }


def schema_text() -> str:
    """The schema as its file has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _object(described: Any, definitions: dict[str, Schema], also: tuple[str, ...] = ()) -> Schema:
    """A class of objects; ``also`` are fields that are required besides those that say so."""
    texts = _field_texts(described.__module__)[described.__name__]
    properties: dict[str, Schema] = {}
    for field in fields(described):
        text = texts.get(field.name)
        about = {"description": text} if text else {}
        properties[field.name] = about | _value(field.hint, definitions)
    return {
        "description": _plain(inspect.getdoc(described) or ""),
        "type": "object",
        "properties": properties,
        "required": [f.name for f in fields(described) if f.required or f.name in also],
    }


def _value(hint: Any, definitions: dict[str, Schema]) -> Schema:
    """What fits a hint."""
    if is_typeddict(hint):
        return _reference(hint, definitions)
    classes = options(hint)
    if key := tag(classes):
        return _tagged(key, classes, definitions)
    if len(classes) > 1:
        return {"anyOf": [_value(one, definitions) for one in classes]}
    if get_origin(hint) is Literal:
        words = get_args(hint)
        return {"const": words[0]} if len(words) == 1 else {"enum": list(words)}
    if get_origin(hint) is list:
        return {"type": "array", "items": _value(get_args(hint)[0], definitions)}
    return dict(_SIMPLE[get_origin(hint) or hint])


def _reference(described: Any, definitions: dict[str, Schema]) -> Schema:
    name = described.__name__
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = _object(described, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _tagged(key: str, classes: tuple[Any, ...], definitions: dict[str, Schema]) -> Schema:
    words = list(by_word(classes, key))
    unknown = {
        "type": "object",
        "properties": {key: {"type": "string", "not": {"enum": words}}},
        "required": [key],
    }
    return {"oneOf": [*(_reference(one, definitions) for one in classes), unknown]}


@cache
def _field_texts(module: str) -> dict[str, dict[str, str]]:
    """The texts below the fields of a module's classes, by class and field."""
    classes: dict[str, dict[str, str]] = {}
    for described in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(described, ast.ClassDef):
            texts = classes[described.name] = {}
            for base in described.bases:
                texts |= classes.get(ast.unparse(base), {})
            texts |= _texts_below(described.body)
    return classes


def _texts_below(body: list[ast.stmt]) -> dict[str, str]:
    texts = {}
    for field, below in itertools.pairwise(body):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = _plain(text)
    return texts


def _plain(text: str) -> str:
    """A docstring as plain text of one line a paragraph."""
    paragraphs = re.split(r"\n\s*\n", text.replace("``", "`").strip())
    return "\n\n".join(" ".join(one.split()) for one in paragraphs)


def main() -> None:
    """Write the schema to its file."""
    path = bundled.folder("schemas") / FILE
    path.write_text(schema_text(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
