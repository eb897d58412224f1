"""The model's type hints → shapes, and with them a tree → a spec and a spec → JSON."""

from __future__ import annotations

import types
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from runner.spec.mark import MARKS, Included, Min, Pattern, Private
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
    if hasattr(hint, "__dataclass_fields__"):
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
        elif isinstance(data, MARKS):
            shape = MarkedShape(shape, data)
    return shape


def _model(model: type[Any]) -> ModelShape:
    shape = ModelShape(model)
    for known in fields(model):
        required = known.default is MISSING and known.default_factory is MISSING
        shape.keys[known.name.rstrip("_")] = FieldShape(known.name, shape_of(known.type), required)
    return shape


def to_json(value: Any) -> Any:
    """A decoded value as JSON, defaults included, which decodes to the same again."""
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if not hasattr(value, "__dataclass_fields__"):
        return value
    result = {}
    for known in fields(value):
        item = getattr(value, known.name)
        # A null that says something, such as a limit that is lifted, is not the default.
        if item is not None or known.default is not None:
            result[known.name.rstrip("_")] = to_json(item)
    return result
