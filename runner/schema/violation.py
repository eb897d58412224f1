"""Sentences for a model about values that don't fit: where, what was there, what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jsonschema import ValidationError

from runner.error import did_you_mean
from runner.json_text import line

_MAX_VALUE = 80
"""Characters of a value that are told."""
_NOUNS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def tell(error: ValidationError) -> Iterator[str]:
    """What there is to say of one error of jsonschema, of which a choice may have several."""
    if error.validator in ("anyOf", "oneOf") and error.context:
        yield from _tell_choice(error)
    else:
        yield _sentence(error, _asked(error))


def path_text(path: Iterable[str | int]) -> str:
    """A place in the arguments, such as ``items[2].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{line(part)}]"
    return text


def value_text(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = line(value)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…"


def _sentence(error: ValidationError, asked: str) -> str:
    place = path_text(error.absolute_path)
    if error.validator == "required":
        return f"at {place}: it is missing; {asked}"
    if error.validator == "additionalProperties" and error.message == "unknown":
        return f"at {place}: there is no such name here; {asked}"
    return f"{place and f'at {place}: '}{value_text(error.instance)} is wrong; {asked}"


def _tell_choice(error: ValidationError) -> Iterator[str]:
    """The faults of the one alternative that was meant, or what the alternatives ask for."""
    alternatives: dict[Any, list[ValidationError]] = {}
    for child in error.context or ():
        alternatives.setdefault(child.relative_schema_path[0], []).append(child)
    meant = [
        children
        for children in alternatives.values()
        if all(c.relative_path or c.validator not in ("type", "const", "enum") for c in children)
    ]
    if len(meant) == 1:
        for child in meant[0]:
            yield from tell(child)
        return
    texts = [" and ".join(map(_wish, children)) for children in alternatives.values()]
    yield _sentence(error, " or ".join(dict.fromkeys(texts)) + " was asked for")


def _wish(error: ValidationError) -> str:
    """What one alternative of a choice asks for, without its verb."""
    wish = _asked(error).removesuffix(" was asked for").removesuffix(" is asked for")
    place = path_text(error.relative_path)
    return f"{wish} at {place}" if place else wish


def _asked(error: ValidationError) -> str:
    """What a keyword asks for."""
    if error.validator is None:  # the schema `false`, of which jsonschema does not tell the place
        return "nothing is right in its place"
    tell_asked = _ASKED.get(str(error.validator))
    if tell_asked is None:
        return f"{error.validator} asks for {value_text(error.validator_value)}"
    return tell_asked(error)


def _type(error: ValidationError) -> str:
    wanted: Any = error.validator_value
    names = [wanted] if isinstance(wanted, str) else wanted
    return " or ".join(_NOUNS.get(name, str(name)) for name in names) + " was asked for"


def _enum(error: ValidationError) -> str:
    members: Any = error.validator_value
    return "one of " + ", ".join(map(value_text, members)) + " was asked for"


def _required(error: ValidationError) -> str:
    properties = error.schema.get("properties") if isinstance(error.schema, Mapping) else None
    schema = properties.get(error.path[-1]) if isinstance(properties, Mapping) else None
    wanted = schema.get("type") if isinstance(schema, Mapping) else None
    return f"{_NOUNS[wanted]} was asked for" if wanted in _NOUNS else "it is required"


def _unknown(error: ValidationError) -> str:
    properties = error.schema.get("properties", ()) if isinstance(error.schema, Mapping) else ()
    return did_you_mean(str(error.path[-1]), properties)


def _amount(form: str) -> Callable[[ValidationError], str]:
    return lambda error: form.format(value_text(error.validator_value)) + " was asked for"


_ASKED: dict[str, Callable[[ValidationError], str]] = {
    "type": _type,
    "enum": _enum,
    "const": _amount("{}"),
    "required": _required,
    "additionalProperties": _unknown,
    "minimum": _amount("at least {}"),
    "maximum": _amount("at most {}"),
    "exclusiveMinimum": _amount("more than {}"),
    "exclusiveMaximum": _amount("less than {}"),
    "multipleOf": _amount("a multiple of {}"),
    "minLength": _amount("a length of at least {}"),
    "maxLength": _amount("a length of at most {}"),
    "minItems": _amount("a list of at least {}"),
    "maxItems": _amount("a list of at most {}"),
    "minProperties": _amount("an object of at least {} names"),
    "maxProperties": _amount("an object of at most {} names"),
    "uniqueItems": lambda _: "a list with nothing in it twice was asked for",
    "pattern": _amount("a match of the pattern {}"),
    "oneOf": lambda _: "it fits more than one of the forms of which one was asked for",
    "not": _amount("anything but {}"),
    "dependentRequired": _amount("what {} depends on"),
}
