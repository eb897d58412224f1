"""The eight extension points, and how a hook that fails is treated."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

OnError = Literal["block", "warn", "fail"]

BY_DEFAULT: dict[str, OnError] = {"before_tool_call": "block", "after_tool_call": "block"}
"""What becomes of a hook's failure; ``fail`` for the extension points that are not here.

``block`` before a call answers it with an error, after a call it turns the result into one.
"""


@dataclass(slots=True)
class Hook:
    """A callable at an extension point."""

    call: Callable[..., Any]
    """Sync or async; what it gets and gives stands in `Hooks`. If it raises, it has failed."""
    on_error: OnError | None = None
    """What becomes of its failure; None for the extension point's default."""
    has_last_word: bool = False
    """Before a call: whether it is asked again where a hook after it rewrote the arguments."""

    async def __call__(self, *args: Any) -> Any:
        """Call it, and await what is to be awaited."""
        try:
            given = self.call(*args)
            return await given if inspect.isawaitable(given) else given
        except SystemExit as error:
            # It would end the event loop, and with it every run.
            raise RuntimeError(f"it tried to end the program, exit code {error.code}") from error


class HookStopped(Exception):  # noqa: N818 - it did not fail: nobody let it come to its end
    """A hook was stopped by an abort."""


HookList = Callable[..., Any] | Sequence[Hook | Callable[..., Any]]
"""One callable, or several in the order in which they are called."""


@dataclass(slots=True)
class Hooks:
    """All hooks of an agent, each list in the order in which they are called."""

    transform_context: HookList = ()
    """Messages → messages: the history that a model call starts from. Changes no history."""
    convert_to_llm: HookList = ()
    """Messages → messages that a model knows. Without one, ``custom`` messages are left out."""
    before_tool_call: HookList = ()
    """``{tool_name, tool_call_id, arguments}`` → None, ``{block: true, reason}``, ``{arguments}``.

    A block with ``stop: true`` also ends the run, as denied; ``{allow: true}`` lets the call pass
    without asking the hooks that follow.
    """
    after_tool_call: HookList = ()
    """The same with ``result {content, details, is_error}`` → None, or any of ``content`` (blocks
    or a text), ``details``, ``is_error`` and ``terminate``."""
    stop_after_turn: HookList = ()
    """``{turn, text, stop_reason, message}`` → whether the run ends here, as done."""
    steering_messages: HookList = ()
    """Nothing → a list of texts, ``{role, text}`` or messages; polled at each turn's end."""
    follow_up_messages: HookList = ()
    """The same; polled when the run is about to stop."""
    api_key: HookList = ()
    """The provider's name and the model's id → a key, or None to ask the next."""

    def by_point(self) -> dict[str, list[Hook]]:
        """The hooks of each extension point, made ready."""
        return {point: _as_hooks(getattr(self, point)) for point in self.__slots__}


def _as_hooks(given: HookList) -> list[Hook]:
    several = given if isinstance(given, Sequence) else [given]
    return [hook if isinstance(hook, Hook) else Hook(hook) for hook in several]
