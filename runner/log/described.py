"""What the classes of `runner.engine.event` and `runner.engine.message` say of a log's objects."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict


@dataclass(slots=True, frozen=True)
class Field:
    """A field of an object."""

    name: str
    hint: Any
    """The type of its values, without `NotRequired`."""
    required: bool


def fields(described: type) -> list[Field]:
    """The fields of a class of objects, in order."""
    # `__required_keys__` knows nothing of annotations that are texts.
    return [
        Field(name, get_args(hint)[0], False)
        if get_origin(hint) is NotRequired
        else Field(name, hint, True)
        for name, hint in get_type_hints(described, include_extras=True).items()
    ]


def options(hint: Any) -> tuple[Any, ...]:
    """The types of a union; the type alone where it is none."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def tag(classes: tuple[Any, ...]) -> str | None:
    """The field that tells some classes of objects apart; None where they aren't all objects."""
    if len(classes) < 2 or not all(map(is_typeddict, classes)):
        return None
    return "role" if all("role" in one.__annotations__ for one in classes) else "type"


def by_word(classes: tuple[Any, ...], key: str) -> dict[str, Any]:
    """Classes of objects by the word that stands in the field that tells them apart."""
    return {get_args(get_type_hints(one)[key])[0]: one for one in classes}
