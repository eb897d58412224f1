"""The stdin and stdout of a command as a pipe of messages.

Both may block for as long as the other side likes, so a thread each does it, which nobody waits for
at the end.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Callable

from runner.cli.streams import Streams
from runner.error import LogError

_CHUNK = 1 << 16


class Wire:
    """What is read is stdin, which is empty for all others from here on; what is written, stdout.

    Args:
        streams: Keeps stdout.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._loop = asyncio.get_running_loop()
        self._source = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._reads: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._writes: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        for work in (self._reads, self._writes):
            threading.Thread(target=_do_all, args=[work], daemon=True).start()

    async def read(self) -> bytes:
        """What comes next on stdin; empty at its end."""
        return await self._done_by(self._reads, lambda: os.read(self._source, _CHUNK))

    async def write(self, data: bytes) -> None:
        """Write to stdout.

        Raises:
            OSError: where nobody reads it.
        """
        await self._done_by(self._writes, lambda: self._write(data))

    async def end(self) -> None:
        """Nothing: both are the process's own."""

    def _write(self, data: bytes) -> bytes:
        try:
            self._streams.line(data.decode())
        except LogError as error:
            raise OSError(str(error)) from error
        if self._streams.closed:
            raise BrokenPipeError("nobody reads stdout")
        return b""

    async def _done_by(
        self, work: queue.SimpleQueue[Callable[[], None]], act: Callable[[], bytes]
    ) -> bytes:
        done: asyncio.Future[bytes] = self._loop.create_future()

        def deliver(outcome: bytes | OSError) -> None:
            if done.done():
                return
            if isinstance(outcome, OSError):
                done.set_exception(outcome)
            else:
                done.set_result(outcome)

        def do() -> None:
            outcome: bytes | OSError
            try:
                outcome = act()
            except OSError as error:
                outcome = error
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(deliver, outcome)

        work.put(do)
        return await done


def _do_all(work: queue.SimpleQueue[Callable[[], None]]) -> None:
    while True:
        work.get()()
