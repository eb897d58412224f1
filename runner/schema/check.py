"""The whole check of arguments by JSON Schema (Draft 2020-12), told in sentences.

It is bounded: nothing outside a schema is fetched, patterns are matched in linear time, and a
schema that multiplies itself is given up. Formats are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing.jsonschema import EMPTY_REGISTRY

from runner.error import describe
from runner.schema.pattern import search
from runner.schema.violation import tell

_MAX_STEPS = 300_000
"""Keywords that are held against one call's arguments: about a second's work."""
_MAX_VIOLATIONS = 50
"""Sentences that are told of one call."""

_steps: ContextVar[Iterator[int]] = ContextVar("steps")
"""Counts the keywords of the check that is going on."""


class SchemaCheck:
    """A schema, made ready to have values held against it."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._validator = _Validator(schema, registry=EMPTY_REGISTRY)

    def violations(self, arguments: Any) -> list[str]:
        """All ways in which a value doesn't fit, each ``at PATH: VALUE is wrong; what is right``.

        Never raises: where the schema itself is to blame, a sentence says so.
        """
        _steps.set(iter(range(_MAX_STEPS)))
        try:
            errors = islice(self._validator.iter_errors(arguments), _MAX_VIOLATIONS + 1)
            said = list(dict.fromkeys(one for error in errors for one in tell(error)))
        except RecursionError:
            return ["the arguments, or the schema, are nested too deeply to be checked"]
        except Exception as error:
            return [f"the schema can't be used: {describe(error)}"]
        return said if len(said) <= _MAX_VIOLATIONS else [*said[:_MAX_VIOLATIONS], "and more"]


Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


def _counted(check: Keyword) -> Keyword:
    def counted(
        validator: Any, asked: Any, value: Any, schema: Any
    ) -> Iterable[ValidationError] | None:
        if next(_steps.get(), None) is None:
            raise ValueError(f"it takes more than {_MAX_STEPS} steps for these arguments")
        return check(validator, asked, value, schema)

    return counted


def _required(validator: Any, asked: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """One fault a name, at the place where it is missing."""
    if isinstance(value, dict):
        for name in asked:
            if name not in value:
                yield ValidationError("missing", path=[name])


def _additional(validator: Any, asked: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """One fault a name, at the place where it is too much."""
    if not isinstance(value, dict):
        return
    patterns = list(schema.get("patternProperties", ()))
    for name, part in value.items():
        if name in schema.get("properties", ()) or any(search(p, name) for p in patterns):
            continue
        if asked is False:
            yield ValidationError("unknown", path=[name])
        else:
            yield from validator.descend(part, asked, path=name)


def _pattern(validator: Any, asked: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not search(asked, value):
        yield ValidationError("no match")


def _pattern_properties(
    validator: Any, asked: Any, value: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, part in asked.items():
            for name in value:
                if search(pattern, name):
                    yield from validator.descend(value[name], part, path=name, schema_path=pattern)


_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        keyword: _counted(check)
        for keyword, check in {
            **Draft202012Validator.VALIDATORS,
            "required": _required,
            "additionalProperties": _additional,
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
        }.items()
    },
)
