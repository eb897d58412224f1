"""The decorator that tells what a function is as a tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast, overload

from runner.toolkit.tool import ToolOptions

_MARK = "__pi_run_tool__"
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ToolMark:
    """What a function's decorator says of it; what is None or absent, the function itself says."""

    name: str | None
    description: str | None
    options: ToolOptions
    preview: Callable[..., str | None] | None = None
    """Tells a person what a call would change: a function of the same parameters."""
    answers: bool = False
    """Whether its one argument is the agent's answer, of the form that the spec's output has."""


@overload
def tool(function: _F, /) -> _F: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    label: str | None = None,
    execution: Literal["parallel", "sequential"] = "parallel",
    idempotent: bool = False,
    timeout: float | None = None,
    read_only: bool = False,
    preview: Callable[..., str | None] | None = None,
    answers: bool = False,
) -> Callable[[_F], _F]: ...


def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    preview: Callable[..., str | None] | None = None,
    answers: bool = False,
    **options: Any,
) -> Any:
    """Mark a function as a tool. It stays the function that it is.

    Used bare (``@tool``) or with options::

        @tool(name="look_up", timeout=10)
        def look(word: str) -> str:
            "Look a word up."

    Args:
        function: The function, where it is used bare.
        name: The name for the model; default: the function's.
        description: For the model; default: the function's docstring, without its sections.
        preview: Tells a person who is asked for a call what it would change: a function of the same
            parameters, which changes nothing and gives a text, or None where it can't tell.
        answers: Whether its one argument is the agent's answer: its schema is then that of the
            spec's ``output``. It gives a `ToolResult` with ``terminate``, the answer as its text,
            and ``details`` with a key ``answer``.
        options: ``label``, ``execution``, ``idempotent``, ``timeout`` and ``read_only``, as in a
            spec.
    """
    if unknown := options.keys() - ToolOptions.__annotations__.keys():
        raise TypeError(f"tool() knows no {', '.join(sorted(unknown))}")

    def mark(function: _F) -> _F:
        setattr(
            function,
            _MARK,
            ToolMark(name, description, cast("ToolOptions", options), preview, answers),
        )
        return function

    return mark if function is None else mark(function)


def mark_of(function: Any) -> ToolMark | None:
    """What a function's decorator says of it, if it has one."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, ToolMark) else None
