"""The time that a tool call may take, which runs while its tool does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar

from runner.engine.contract import Clock


class CallTime:
    """The time of one call. It runs from the start; one who has the call wait stops it.

    Args:
        clock: What it is measured with.
        allowed: Seconds that the call may take; None for as many as it does.
        is_up: Called when they are over.
    """

    def __init__(self, clock: Clock, allowed: float | None, is_up: Callable[[], object]) -> None:
        self._clock = clock
        self._allowed = allowed
        self._is_up = is_up
        self._timer: asyncio.TimerHandle | None = None
        self._started = 0.0
        self.begin()

    def begin(self) -> None:
        """Count from here on: what was before was no more than waiting."""
        self.end()
        self._started = self._clock.now()
        if self._allowed is not None:
            self._timer = self._clock.call_later(self._allowed, self._is_up)

    def end(self) -> float:
        """Count no more, at least until it begins again; gives the seconds so far."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return self._clock.now() - self._started


call_time: ContextVar[CallTime | None] = ContextVar("call_time", default=None)
"""That of the tool call that is under way here."""
