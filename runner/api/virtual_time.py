"""Time that passes only while nothing else can happen, and then at once."""

from __future__ import annotations

import asyncio
import random
import selectors
import threading
import time
from typing import Any

from runner.engine.contract import Clock
from runner.log.drive import Drive, DrivenClock

_THREAD_SECONDS = 0.005
"""How long is really waited at a time while threads work."""
_ROUNDS = 500_000
"""Rounds of an event loop that no run needs without waiting for anything once."""
_PATIENCE = 10.0
"""Real seconds after which time passes all the same: a thread was left behind for good."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a time of its own, from 0.

    While a thread works that was begun after the loop, time stands still: nobody knows how long it
    would take.
    """

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._clock.now


class _Selector(selectors.DefaultSelector):
    """Lets time pass instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._threads = threading.active_count()
        self._waiting_since: float | None = None
        self._rounds = 0
        """How often nothing was waited for, one time after the other."""

    def select(self, timeout: float | None = None) -> Any:
        """See `selectors.BaseSelector.select`."""
        if timeout is not None and timeout <= 0:
            self._rounds += 1
            if self._rounds > _ROUNDS:
                raise RuntimeError("it goes round and round, and nothing waits for anything")
            return super().select(0)
        self._rounds = 0
        if self._waits_for_threads():
            return super().select(_THREAD_SECONDS)
        if timeout is None:
            raise RuntimeError("nothing is left that could happen")
        self.now += timeout
        return super().select(0)

    def _waits_for_threads(self) -> bool:
        if threading.active_count() <= self._threads:
            self._waiting_since = None
            return False
        if self._waiting_since is None:
            self._waiting_since = time.monotonic()
        return time.monotonic() - self._waiting_since < _PATIENCE


class VirtualClock(Clock):
    """The time of the event loop, and chance that is the same each time."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def now(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    def random(self) -> float:
        """A number in [0, 1), decided by the seed."""
        return self._random.random()


class VirtualDrivenClock(DrivenClock, VirtualClock):
    """Time as it was in a log, and the event loop's once the run goes on live."""

    def __init__(self, drive: Drive, seed: str) -> None:
        DrivenClock.__init__(self, drive)
        VirtualClock.__init__(self, seed)
