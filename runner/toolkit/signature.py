"""A function's parameters, as a model is to give them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from runner.error import UsageError, describe
from runner.toolkit.context import ToolContext
from runner.toolkit.docstring import Docstring, read_docstring

REQUIRED = inspect.Parameter.empty
"""Stands for the default of a parameter that has none."""


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """One parameter."""

    name: str
    hint: Any
    """Its type hint; ``Any`` where there is none."""
    default: Any
    """`REQUIRED` where there is none."""
    description: str | None


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model and a caller need to know of a function."""

    name: str
    text: str
    """The docstring, without its sections on parameters, results and exceptions."""
    parameters: tuple[FunctionParameter, ...]
    context_name: str | None
    """The parameter that takes the `ToolContext`, if one does."""


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read a function, a method, a class or an object that can be called.

    Raises:
        UsageError: if a model can't call it by names, or a type hint can't be read.
    """
    plain = function.func if isinstance(function, functools.partial) else function
    name = getattr(plain, "__name__", type(plain).__name__)
    doc = read_docstring(_doc(plain))
    hints = _hints(plain, name)
    parameters = []
    contexts = []
    for parameter in _parameters(function, name):
        hint = hints.get(parameter.name, Any)
        if _is_context(hint):
            contexts.append(parameter.name)
        else:
            parameters.append(_read(parameter, hint, doc, name))
    if len(contexts) > 1:
        raise UsageError(f"{name}: only one parameter may be a ToolContext, not {contexts}")
    return Signature(name, doc.text, tuple(parameters), contexts[0] if contexts else None)


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name}: its parameters can't be read: {describe(error)}") from error
    for parameter in found:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(
                f'{name}: "{parameter}" has no names that a model could be told; '
                "write each parameter out"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise UsageError(
                f'{name}: parameter "{parameter.name}" is positional-only, and a model gives '
                'arguments by name; take the "/" away'
            )
    return found


def _read(
    parameter: inspect.Parameter, hint: Any, doc: Docstring, function_name: str
) -> FunctionParameter:
    if type(parameter.default).__name__ == "FieldInfo":
        raise UsageError(
            f'{function_name}: parameter "{parameter.name}" has a Field for its default; '
            f"write {parameter.name}: Annotated[TYPE, Field(…)] = DEFAULT"
        )
    return FunctionParameter(
        parameter.name, hint, parameter.default, doc.parameters.get(parameter.name)
    )


def _hints(function: Any, name: str) -> dict[str, Any]:
    if inspect.isclass(function):
        function = function.__init__
    elif not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return get_type_hints(inspect.unwrap(function), include_extras=True)
    except Exception as error:
        raise UsageError(f"{name}: a type hint can't be read: {describe(error)}") from error


def _doc(function: Any) -> str | None:
    if inspect.isroutine(function) or inspect.isclass(function):
        return inspect.getdoc(function)
    return type(function).__call__.__doc__ or inspect.getdoc(type(function))


def _is_context(hint: Any) -> bool:
    if get_origin(hint) in (Annotated, Union, UnionType):
        return any(_is_context(part) for part in get_args(hint))
    return hint is ToolContext
