"""Calling hooks: an abort stops them, and one that fails is told and treated as it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from runner.engine.event import Event
from runner.engine.hook import BY_DEFAULT, Hook, HookStopped, OnError
from runner.engine.message import as_message
from runner.engine.queue import MessageQueue
from runner.engine.session import Session
from runner.error import HookError, describe


async def call_hook(session: Session, hook: Hook, *args: Any) -> Any:
    """Call a hook; an abort stops it.

    Raises:
        HookStopped: if an abort stopped it.
        Exception: whatever it raises.
    """
    work = asyncio.ensure_future(hook(*args))
    if await session.attend(work, patient=True) and not work.cancelled():
        return work.result()
    if session.cancellation.cancelled:
        raise HookStopped(f"it was stopped: {session.cancellation.reason}")
    raise RuntimeError("it was cancelled")


async def run_hook(
    session: Session,
    point: str,
    hook: Hook,
    *args: Any,
    read: Callable[[Any], Any] = lambda given: given,
) -> Any:
    """Call a hook where failing ends the run, unless its ``on_error`` is ``warn``.

    Args:
        session: The agent.
        point: The extension point.
        hook: The hook.
        args: What it gets.
        read: Makes what is used of what it gave, and raises where it can't.

    Returns:
        What it gave; None where it failed.

    Raises:
        HookError: if it failed.
    """
    try:
        return read(await call_hook(session, hook, *args))
    except HookStopped as error:
        raise HookError(f"the hook {point}: {error}") from error
    except Exception as error:
        if hook_failed(session, point, hook, error) == "warn":
            return None
        raise HookError(f"the hook {point} failed: {describe(error)}") from error


def hook_failed(
    session: Session, point: str, hook: Hook, error: Exception, tool_call_id: str | None = None
) -> OnError:
    """Tell that a hook failed; what becomes of it."""
    decided = hook.on_error or BY_DEFAULT.get(point, "fail")
    event: dict[str, Any] = {"type": "hook_decision", "hook": point}
    if tool_call_id is not None:
        event["tool_call_id"] = tool_call_id
    event |= {"action": "fail", "reason": describe(error), "on_error": decided}
    session.emit(cast("Event", event))
    return decided


async def poll(session: Session, queue: MessageQueue) -> None:
    """Ask a queue's suppliers for messages."""
    point = f"{queue.name}_messages"
    for hook in session.hooks[point]:
        for message in await run_hook(session, point, hook, read=_supplied) or ():
            queue.put(message, "hook")


def _supplied(given: Any) -> Any:
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise TypeError(f"a supplier gives a list of messages, not {given!r:.80}")
    return [as_message(item) for item in given]
