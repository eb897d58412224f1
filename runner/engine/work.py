"""Waiting for work that an abort stops: a request, a tool, a hook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from runner.engine.contract import Cancellation


async def outlast(work: asyncio.Future[Any], cancelled: Callable[[], object]) -> None:
    """Wait until some work is done, whatever is done to those who wait.

    Args:
        work: It is neither cancelled here, nor is its outcome looked at.
        cancelled: Is called when the waiting task is cancelled, and is to bring the work to its
            end soon.
    """
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError:
            cancelled()


class Attendance:
    """One wait for a task that is to end soon after it was cancelled, or is left behind.

    Args:
        work: The task.
        grace: Seconds that it has to end after it was cancelled.
        busy: Whether it is still ending by means of its own, which need no bound.
    """

    def __init__(self, work: asyncio.Task[Any], grace: float, busy: Callable[[], bool]) -> None:
        self._work = work
        self._grace = grace
        self._busy = busy
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._over: asyncio.Future[None] = self._loop.create_future()
        work.add_done_callback(self._end)

    async def last(
        self, cancellation: Cancellation, cancelled: Callable[[], object], *, patient: bool
    ) -> bool:
        """Wait; gives whether the task is done.

        Args:
            cancellation: Stops the task.
            cancelled: See `outlast`.
            patient: Whether a task that began after the cancellation has a grace time to do its
                work.
        """
        off = None
        if patient and cancellation.cancelled:
            self._timer = self._loop.call_later(self._grace, self._stop)
        else:
            off = cancellation.on_cancel(self._stop)
        await outlast(self._over, cancelled)
        if off is not None:
            off()
        if self._timer is not None:
            self._timer.cancel()
        if not self._work.done():
            self._work.add_done_callback(_look_at)
        return self._work.done()

    def _stop(self) -> None:
        self._work.cancel()
        self._timer = self._loop.call_later(self._grace, self._give_up)

    def _give_up(self) -> None:
        if self._busy():
            self._timer = self._loop.call_later(self._grace, self._give_up)
        else:
            self._end()

    def _end(self, _: object = None) -> None:
        if not self._over.done():
            self._over.set_result(None)


def _look_at(work: asyncio.Task[Any]) -> None:
    """Take note of how something ended that was left behind: nobody is to be told of it."""
    if not work.cancelled():
        work.exception()
