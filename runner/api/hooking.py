"""The hooks of a spec, made of what it says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.api.live import Live, Names
from runner.api.static import POINTS
from runner.engine.hook import Hook, Hooks
from runner.hooks import declarative
from runner.python_file import load_callable
from runner.spec.loaded import Loaded
from runner.spec.model import hook as model
from runner.spec.template import Expression, Template

if TYPE_CHECKING:
    from runner.hooks.permission import Answer


def make_hooks(live: Live, loaded: Loaded, names: Names, answer: Answer | None = None) -> Hooks:
    """The hooks of a spec: its permissions, then the rest in the order in which they are written.

    Args:
        live: Makes what they reach out with.
        loaded: The spec.
        names: What its templates see.
        answer: Decides of what permissions ask for, instead of a person or what the spec says.

    Raises:
        UsageError: where Python that it names can't be had.
    """
    hooks = {
        point: [
            live.hook(loaded, f"hooks.{point}[{n}]", entry, names)
            for n, entry in enumerate(getattr(loaded.spec.hooks, point))
        ]
        for point in POINTS
    }
    permission = live.permission(loaded, answer)
    if permission is not None:
        hooks["before_tool_call"].insert(0, permission)
    return Hooks(**hooks)


def make_hook(live: Live, loaded: Loaded, path: str, entry: model.Hook, names: Names) -> Hook:
    """One hook of a spec.

    Raises:
        UsageError: where Python that it names can't be had.
    """
    call = declared(loaded, path, entry, names)
    if call is None and entry.python is not None:
        from runner.hooks.function import function_hook

        function = load_callable(entry.python, Path(loaded.folder_of(f"{path}.python")))
        call = function_hook(function, path)
    elif call is None and entry.command is not None:
        from runner.api.value import environment_of
        from runner.hooks.command import command_hook

        items, where = entry.command, loaded.where(f"{path}.command")
        call = command_hook(
            lambda: [Template(item, where).render(names) for item in items],
            folder=Path(loaded.folder_of(f"{path}.command")),
            workspace=live.workspace,
            environment=environment_of(live, loaded, f"{path}.env", entry.env, names),
            timeout=entry.timeout,
        )
    if call is None:
        raise AssertionError(f"{path} says nothing")
    return Hook(call, entry.on_error)


def declared(
    loaded: Loaded, path: str, entry: model.Hook, names: Names
) -> Callable[..., Any] | None:
    """What a hook does that is written as data; None for Python and programs."""

    def holds(key: str, text: str | None) -> Callable[[Mapping[str, Any]], bool] | None:
        if text is None:
            return None
        expression = Expression(text, loaded.where(f"{path}.{key}"))
        return lambda seen: expression.holds({**names, **seen})

    match entry:
        case model.ContextHook(trim=model.Trim() as trim):
            return declarative.trim(trim.max_tokens)
        case model.BeforeHook(deny=model.Deny() as deny):
            return declarative.deny(deny.tool, deny.reason, holds("deny.when", deny.when))
        case model.BeforeHook(allow=model.Allow() as allow):
            return declarative.allow(allow.tool, holds("allow.when", allow.when))
        case model.BeforeHook(set=model.Set() as laid):
            return declarative.set_arguments(laid.tool, laid.args, holds("set.when", laid.when))
        case model.AfterHook(redact=model.Redact() as redact):
            return declarative.redact(redact.pattern, redact.with_)
        case model.AfterHook(truncate=model.Truncate() as cut):
            return declarative.truncate(cut.max_chars)
        case model.StopHook(when=str() as when):
            condition = holds("when", when)
            return None if condition is None else declarative.stop_when(condition)
    return None
