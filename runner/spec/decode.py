"""The model's type hints → shapes, and with them a tree → a spec and a spec → JSON."""

from __future__ import annotations

import types
from dataclasses import MISSING
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from runner.spec.mark import Included, Mark, Min, Pattern, Private
from runner.spec.model.map import Map
from runner.spec.record import FieldShape, IncludedShape, ModelShape, UnionShape
from runner.spec.shape import (
    BooleanShape,
    ChoiceShape,
    FreeShape,
    ListShape,
    MarkedShape,
    NullShape,
    NumberShape,
    PrivateShape,
    Shape,
    TableShape,
    TextShape,
)

_shapes: dict[Any, Shape] = {
    str: TextShape(),
    int: NumberShape(integer=True),
    float: NumberShape(integer=False),
    bool: BooleanShape(),
    type(None): NullShape(),
    Any: FreeShape(),
}
"""The shapes made so far, by their hint."""


def shape_of(hint: Any) -> Shape:
    """The shape of a type hint of the model. Hints are looked at when needed, and once.

    Raises:
        TypeError: for a hint that no spec can hold.
    """
    shape = _shapes.get(hint)
    if shape is None:
        shape = _shapes[hint] = _make(hint)
    return shape


def _make(hint: Any) -> Shape:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(hint)
    if origin in (Union, types.UnionType):
        options = [shape_of(option) for option in arguments]
        return UnionShape(options, [o for o in options if isinstance(o, ModelShape)])
    if origin is Literal:
        return ChoiceShape(arguments)
    if origin is list:
        return ListShape(shape_of(arguments[0]))
    if origin is dict:
        return TableShape(shape_of(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Map):
        return _model(hint)
    raise TypeError(f"{hint!r} is no type of a spec")


def _annotated(hint: Any) -> Shape:
    inner, *metadata = get_args(hint)
    shape = shape_of(inner)
    for data in metadata:
        if isinstance(data, Pattern):
            shape = (
                TableShape(shape.value, data) if isinstance(shape, TableShape) else TextShape(data)
            )
        elif isinstance(data, Min):
            shape = NumberShape(inner is int, data)
        elif isinstance(data, Private):
            shape = PrivateShape(shape)
        elif isinstance(data, Included):
            shape = IncludedShape(shape, data)
        elif isinstance(data, Mark):
            shape = MarkedShape(shape, data)
    return shape


def _model(model: type[Map]) -> ModelShape:
    shape = ModelShape(model)
    hints: dict[str, Any] = {}
    for base in reversed(model.__mro__):
        hints.update(getattr(base, "__annotations__", {}))
    for name, default in model.fields.items():
        key = name.rstrip("_")
        shape.keys[key] = FieldShape(name, shape_of(hints[name]), default is MISSING)
    return shape


def to_json(value: Any) -> Any:
    """A decoded value as JSON, defaults included, which decodes to the same again."""
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if not isinstance(value, Map):
        return value
    result = {}
    for name, default in value.fields.items():
        item = getattr(value, name)
        # A null that says something, such as a limit that is lifted, is not the default.
        if item is not None or default is not None:
            result[name.rstrip("_")] = to_json(item)
    return result
