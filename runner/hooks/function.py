"""Hooks that are functions of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from runner.apart import await_apart
from runner.thread import call_in_thread


def function_hook(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """What the loop calls for a function.

    It gets a copy, so that nothing that it does with it changes a history. It keeps no other run
    waiting: an async one runs in a loop apart, any other in a thread.

    Args:
        function: Takes what its extension point gives; where that is nothing, it may take none.
        name: Of its thread.
    """

    async def hook(*args: Any) -> Any:
        copied = [copy_json(arg) for arg in args] or _nothing(function)
        if inspect.iscoroutinefunction(function):
            return await await_apart(lambda: function(*copied))
        given = await call_in_thread(lambda: function(*copied), name)
        return await await_apart(lambda: given) if inspect.isawaitable(given) else given

    return hook


def _nothing(function: Callable[..., Any]) -> list[Any]:
    """The arguments for a function that is told nothing: an empty map if it wants one."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return [{}]
    except ValueError:
        return []
    return []


def copy_json(value: Any) -> Any:
    """A copy of a JSON value, all the way down."""
    if isinstance(value, dict):
        return {key: copy_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_json(item) for item in value]
    return value
