"""Serving specs to MCP clients, until they go away or a signal comes."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from runner import api
from runner.cli.interrupts import Interrupts
from runner.cli.streams import Streams
from runner.error import UsageError
from runner.thread import run_in_loop

if TYPE_CHECKING:
    from runner.api.served import SpecServer


def serve(
    streams: Streams,
    specs: Sequence[str],
    options: api.RunOptions,
    http: str | None,
    token: str | None,
) -> int:
    """Serve specs; gives the exit code.

    Args:
        streams: Where words go; stdout is the protocol's.
        specs: Their files.
        options: How they are run.
        http: Where to listen; None for stdin and stdout.
        token: What clients have to send, by HTTP.

    Raises:
        SpecError: with all that is wrong with the specs; nothing is served.
        UsageError: where they can't be served like that.
    """
    if find_spec("mcp") is None:
        from runner.api.mcp import INSTALL

        raise UsageError(INSTALL)
    from runner.api.served import SpecServer

    # Nobody at a terminal is asked: who asks is the client.
    server = SpecServer(specs, dataclasses.replace(options, interactive=False))
    for name in ("mcp", "uvicorn"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    interrupts = Interrupts()
    with interrupts:
        if http is None:
            run_in_loop(_by_lines(streams, server, interrupts))
        else:
            run_in_loop(_by_http(streams, server, interrupts, http, token))
    return 0 if interrupts.received is None else 128 + interrupts.received


class _Ending:
    """What a signal ends."""

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end

    def abort(self, signal: int | None = None) -> None:
        """End it."""
        self._end()


async def _by_lines(streams: Streams, server: SpecServer, interrupts: Interrupts) -> None:
    from runner.api.served import serve_lines
    from runner.cli.wire import Wire

    names = ", ".join(server.specs)
    streams.say(f"serving {names} by stdin and stdout")
    serving = asyncio.ensure_future(serve_lines(server, Wire(streams)))
    interrupts.attach(asyncio.get_running_loop(), _Ending(serving.cancel))
    await asyncio.wait({serving})
    interrupts.detach()
    if not serving.cancelled():
        serving.result()


async def _by_http(
    streams: Streams, server: SpecServer, interrupts: Interrupts, http: str, token: str | None
) -> None:
    from runner.api.served_http import HttpServer, listen, url_of

    listening = listen(http, token)
    serving = HttpServer(server, listening, token)
    interrupts.attach(asyncio.get_running_loop(), _Ending(serving.stop))
    streams.say(f"serving {', '.join(server.specs)} at {url_of(listening)}")
    await serving.serve()
    interrupts.detach()
