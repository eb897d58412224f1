"""Event loops apart from a run's own, for coroutines that a person wrote.

One that computes without awaiting, or calls what blocks, holds up the loop that it is in. Here that
is not the one which reads streams, counts the time and is told of signals: such a coroutine is left
behind like any other that takes no notice of its cancellation. All coroutines of a run share one
loop, so that what they made in it (a client, a lock) can be used again, unless it is held up.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from runner.thread import GRACE, at_loop_end, await_safely, end_loop, passable

_T = TypeVar("_T")

PATIENCE = 1.0
"""Seconds that a coroutine waits for a loop that is held up, before it gets another one."""


async def await_apart(make: Callable[[], Awaitable[_T]]) -> _T:
    """Await, in a loop apart, what a person's code makes there. Context variables are as here.

    When this is cancelled, so is that; it may still give something.
    """
    homes = _homes.setdefault(asyncio.get_running_loop(), [])
    if not homes:
        homes.append(_Home())
    call = _Call(make)
    home = homes[-1]
    call.ask(home)
    waiting = (call.outcome,)
    try:
        while not (await asyncio.wait(waiting, timeout=PATIENCE))[0] and not call.begun:
            if home is homes[-1]:
                homes.append(_Home())
            home = homes[-1]
            call.ask(home)
        await asyncio.wait(waiting)
    except asyncio.CancelledError:
        call.cancel()
        await asyncio.wait(waiting)
    finally:
        call.outcome.cancel()
    return call.outcome.result()


async def await_in(loop: asyncio.AbstractEventLoop, make: Callable[[], Awaitable[_T]]) -> _T:
    """Await something in another loop: from one apart, what belongs to the run's own."""
    if loop is asyncio.get_running_loop():
        return await make()

    async def work() -> _T:
        return await make()

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))


def _end_apart(loop: asyncio.AbstractEventLoop) -> set[Any]:
    """End the loops apart from one that has come to its end. Gives what takes no notice of that."""
    homes = _homes.pop(loop, [])
    ends = {home: home.end() for home in homes}
    concurrent.futures.wait(ends.values(), timeout=2 * GRACE)
    left: set[Any] = set()
    for home, end in ends.items():
        if not end.done():
            left.add(home)
        elif still := end.result():
            left |= still
        else:
            home.close()
    return left


class _Home:
    """A loop in a thread of its own, which keeps no process from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="coroutines", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closing:
            # A callback of a person's own may try to end the program.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self.loop.run_forever()

    def end(self) -> concurrent.futures.Future[set[asyncio.Task[Any]]]:
        """Cancel what is left in it."""
        return asyncio.run_coroutine_threadsafe(end_loop(), self.loop)

    def close(self) -> None:
        """Let go of it; nothing is left in it."""
        self._closing = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


_homes: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Home]] = WeakKeyDictionary()
"""By a run's loop: those apart from it. The last one is not known to be held up."""
at_loop_end.append(_end_apart)


class _Call(Generic[_T]):
    """Something to be awaited in the first loop that comes to it."""

    def __init__(self, make: Callable[[], Awaitable[_T]]) -> None:
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._home: _Home | None = None
        self._task: asyncio.Task[Any] | None = None
        self._withdrawn = False
        self.outcome: asyncio.Future[_T] = self._loop.create_future()

    @property
    def begun(self) -> bool:
        """Whether a loop came to it."""
        return self._home is not None

    def ask(self, home: _Home) -> None:
        """Have a loop do it, if none came to it before."""
        home.loop.call_soon_threadsafe(self._begin, home)

    def cancel(self) -> None:
        """Cancel it; one that has not begun never does."""
        with self._lock:
            self._withdrawn = True
        if self._home is None:
            self.outcome.cancel()
        else:
            self._home.loop.call_soon_threadsafe(self._cancel)

    # --- in the thread of the loop apart ----------------------------------------------------------

    def _begin(self, home: _Home) -> None:
        home.loop.create_task(self._work(home), context=self._context)

    async def _work(self, home: _Home) -> Any:
        # Not before this runs: a task that stands behind one which never awaits has not begun.
        with self._lock:
            if self._withdrawn or self._home is not None:
                return None
            self._home, self._task = home, asyncio.current_task()
        assert self._task is not None
        self._task.add_done_callback(self._tell)
        return await await_safely(self._make())

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _tell(self, task: asyncio.Task[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._take, task)

    # --- back in the run's own --------------------------------------------------------------------

    def _take(self, task: asyncio.Task[Any]) -> None:
        if self.outcome.done():
            return
        if task.cancelled():
            self.outcome.cancel()
        elif error := task.exception():
            self.outcome.set_exception(passable(error))
        else:
            self.outcome.set_result(task.result())
