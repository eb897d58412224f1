"""A server from its start to its end, which a signal brings about."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from runner.server.access import Access
from runner.server.app import make_app
from runner.server.hosting import Hosting

_LAST_ANSWERS = 2
"""Seconds that answers which are on their way have when all runs have ended."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Say = Callable[[str], None]
"""Tells a line to who started the server."""


class Signals:
    """The first signal ends the server in order, a second one at once: logs can be resumed."""

    def __init__(self) -> None:
        self.received: int | None = None
        """The first one that came."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._came: asyncio.Event | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        for number in _SIGNALS:
            # A server under nohup is not to end with its terminal.
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    async def wait(self) -> int:
        """The first signal, once it comes."""
        self._came = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self.received is None:
            await self._came.wait()
        assert self.received is not None
        return self.received

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            os._exit(128 + number)
        self.received = number
        if self._loop is not None and self._came is not None:
            self._loop.call_soon_threadsafe(self._came.set)


async def serve(
    hosting: Hosting,
    access: Access,
    listening: socket.socket,
    signals: Signals,
    *,
    grace: float,
    say: Say,
) -> None:
    """Serve until a signal comes, and end all in order.

    Args:
        hosting: What is served.
        access: Who may come in.
        listening: Where.
        signals: Tells when to end.
        grace: Seconds that runs have to end by themselves, before they are aborted.
        say: Is told what happens.
    """
    server = _server(make_app(hosting, access))
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    ending = asyncio.ensure_future(signals.wait())
    await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
    if ending.done():
        if hosting.running:
            count = hosting.running
            runs = "1 run" if count == 1 else f"{count} runs"
            say(f"stopping: {runs} may end by themselves for {grace:g} s; once more ends them now")
        await hosting.stop(ending.result(), grace)
        server.should_exit = True
    ending.cancel()
    await serving


def _server(app: Any) -> Any:
    import uvicorn

    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        # The other implementation, which is faster, takes headers of any size.
        http="h11",
        timeout_graceful_shutdown=_LAST_ANSWERS,
    )

    class Quiet(uvicorn.Server):
        """Leaves signals to who serves."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Quiet(config)
