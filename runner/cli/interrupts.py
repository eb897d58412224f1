"""SIGINT, SIGTERM and SIGHUP during runs: the first ends a run in order, another SIGINT at once.

Where there is no run, nothing has to be ended in order: SIGINT raises ``KeyboardInterrupt`` as
always, and if that is swallowed, as by a module that is being imported, ends the process.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class Stopped(BaseException):
    """A signal that ends what a command does; its number stands in `number`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals_raised() -> Iterator[None]:
    """Raise SIGINT, SIGTERM and SIGHUP as `Stopped`, for what has nothing to bring to an end."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


PATIENCE = 2.0
"""Seconds that what was interrupted has to come to its end, where there is no run."""


def end_by_interrupt() -> None:
    """Let SIGINT end this process whatever code it is in. Where it is ignored it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    import threading

    signal.signal(signal.SIGINT, lambda *_: _end_at_once())
    last = threading.Timer(PATIENCE, _end_at_once)
    last.daemon = True
    last.start()
    raise KeyboardInterrupt


def _end_at_once() -> None:
    if os.isatty(2):
        os.write(2, b"\x1b[?7h\x1b[?25h\n")  # as a live view may have left it
    os._exit(130)


class Abortable(Protocol):
    """What ends a run in order."""

    def abort(self, signal: int | None = None) -> None:
        """End it; in the loop's thread."""


class Interrupts:
    """Turns signals into the abort of the run that is going on.

    The handlers are Python's own and not the event loop's, since these work while a hook or an
    import keeps the loop busy.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        """The first signal that came."""
        self._abort: Callable[[int], object] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # A run under nohup is not to end with its terminal.
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def attach(self, loop: AbstractEventLoop, run: Abortable) -> None:
        """Let signals end this run from here on, also one that came before."""
        self._abort = lambda number: loop.call_soon_threadsafe(run.abort, number)
        if self.received is not None:
            self._abort(self.received)

    def detach(self) -> None:
        """The run is over."""
        self._abort = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = number
            if self._abort is not None:
                self._abort(number)
        elif number == signal.SIGINT:
            _end_at_once()
