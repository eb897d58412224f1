"""Whether a JSON Schema is valid, without the cost of jsonschema where that is plain to see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_TEXTS = frozenset(("title", "description", "format", "$comment"))
_FREE = frozenset(("default", "examples", "const"))
_BOOLEANS = frozenset(("deprecated", "readOnly", "writeOnly", "uniqueItems"))
_COUNTS = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minProperties"))
_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
_LISTS = frozenset(("anyOf", "allOf", "oneOf"))
_SINGLE = frozenset(("items", "additionalProperties", "not"))


def problem_of(schema: Any) -> tuple[list[str | int], str] | None:
    """What makes a JSON Schema (Draft 2020-12) invalid: where in it, and what.

    Returns:
        None where it is valid.
    """
    if _is_plain(schema):
        return None
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    try:
        validator = Draft202012Validator(Draft202012Validator.META_SCHEMA)
        error = best_match(validator.iter_errors(schema))
    except RecursionError:
        return [], "it is nested too deeply"
    if error is None:
        return _lost_reference(schema)
    while error.context:  # of several ways in which it could be right, the one it comes closest to
        error = max(error.context, key=lambda e: (len(e.absolute_path), e.validator != "type"))
    return list(error.absolute_path), error.message


def _lost_reference(schema: Any) -> tuple[list[str | int], str] | None:
    """The first ``$ref`` that leads nowhere: nothing outside a schema is ever fetched."""
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

    if not isinstance(schema, dict):
        return None
    root = DRAFT202012.create_resource(schema)
    todo = [(root, EMPTY_REGISTRY.resolver_with_root(root))]
    while todo:
        resource, resolver = todo.pop()
        contents = resource.contents
        for key in ("$ref", "$dynamicRef"):
            if not isinstance(contents, dict) or key not in contents:
                continue
            try:
                resolver.lookup(contents[key])
            except (Unresolvable, ValueError):  # the latter for what is no URI
                steps = next(_way_to(contents, schema))
                return [*steps, key], f'"{contents[key]}" is nowhere in it'
        below = [(one, resolver.in_subresource(one)) for one in resource.subresources()]
        todo += reversed(below)
    return None


def _way_to(wanted: Any, there: Any) -> Iterator[list[str | int]]:
    """The steps that lead to a part of a schema."""
    if there is wanted:
        yield []
        return
    items: Any = ()
    if isinstance(there, dict):
        items = there.items()
    elif isinstance(there, list):
        items = enumerate(there)
    for step, item in items:
        yield from ([step, *rest] for rest in _way_to(wanted, item))


def _is_plain(schema: Any) -> bool:
    """Whether a schema is valid by the few keywords that most schemas are made of."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    return all(_is_plain_keyword(key, value) for key, value in schema.items())


def _is_plain_keyword(key: str, value: Any) -> bool:
    if key == "type":
        return isinstance(value, str) and value in _TYPES
    if key == "properties":
        return isinstance(value, dict) and all(map(_is_plain, value.values()))
    if key in ("required", "enum"):
        texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return texts and len(set(value)) == len(value)
    if key in _SINGLE:
        return _is_plain(value)
    if key in _LISTS:
        return isinstance(value, list) and bool(value) and all(map(_is_plain, value))
    if key in _COUNTS | _NUMBERS:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (key in _NUMBERS or (isinstance(value, int) and value >= 0))
    if key in _TEXTS:
        return isinstance(value, str)
    return key in _FREE or (key in _BOOLEANS and isinstance(value, bool))
