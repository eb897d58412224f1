"""Calling a person's code, so that neither the loop nor the end of the process suffers from it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

GRACE = 0.5
"""Seconds that tasks have to end after they were cancelled."""

left_behind: set[Any] = set()
"""Tasks, and what else never ended. They are kept, since freeing a task calls into it, which may
not return."""

at_loop_end: list[Callable[[asyncio.AbstractEventLoop], set[Any]]] = []
"""Called when a loop of `run_in_loop` ends. Each gives what takes no notice of that."""


async def call_in_thread(call: Callable[[], _T], name: str, *, patient: bool = False) -> _T:
    """Call something in a thread of its own, with the context variables of here.

    A pool would let calls wait for each other, and the end of the process for all of them; this
    thread is a daemon. When this is cancelled the thread is left behind, and what it gives is
    dropped.

    Args:
        call: What to call.
        name: The thread's.
        patient: Whether to wait on at a first cancellation, of which the call learns by itself.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_T] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        deliver: Callable[[Any], None]
        try:
            value: Any = context.run(call)
            deliver = outcome.set_result
        except BaseException as error:
            value = passable(error)
            deliver = outcome.set_exception
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_unless_done, outcome, deliver, value)

    threading.Thread(target=work, name=name, daemon=True).start()
    try:
        await asyncio.wait([outcome])
    except asyncio.CancelledError:
        if not patient:
            raise
        await asyncio.wait([outcome])
    finally:
        outcome.cancel()
    return outcome.result()


def run_in_loop(work: Coroutine[Any, Any, _T]) -> _T:
    """As `asyncio.run`, but what a person's code left behind can't keep it from returning.

    Tasks that are left are cancelled, and waited for `GRACE` seconds at most: one that takes no
    notice would be waited for for ever.
    """
    runner = asyncio.Runner()
    loop = runner.get_loop()
    try:
        return runner.run(work)
    finally:
        for end in at_loop_end:
            left_behind.update(end(loop))
        if left := loop.run_until_complete(end_loop()):
            left_behind.update(left)
            asyncio.set_event_loop(None)
            loop.close()
        else:
            runner.close()


async def end_loop() -> set[asyncio.Task[Any]]:
    """End all that is left in this loop, and in the threads that it has for what blocks.

    Gives the tasks that take no notice, each of which had `GRACE` seconds.
    """
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, left = await asyncio.wait(left, timeout=GRACE)
    rest = asyncio.ensure_future(_let_go())
    # Not by its cancellation, which would wait for the threads.
    return left | (await asyncio.wait([rest], timeout=GRACE))[1]


async def _let_go() -> None:
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


async def await_safely(given: Awaitable[_T]) -> _T:
    """Await what a person's code gave, which may not end the loop by ``sys.exit()``."""
    try:
        return await given
    except SystemExit as error:
        raise passable(error) from error


def _unless_done(outcome: asyncio.Future[Any], deliver: Callable[[Any], None], value: Any) -> None:
    if not outcome.done():
        deliver(value)


def passable(error: BaseException) -> Exception:
    """An exception that can pass through the loop without ending it."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    return RuntimeError(f"it raised {said}")
