"""Connections to servers, kept for the next request of any run in the same event loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, NamedTuple, cast

from runner.error import ErrorKind, ProviderError
from runner.providers.http1 import ResponseReader

if TYPE_CHECKING:
    import ssl

KEEP_SECONDS = 30.0
"""How long a connection is kept that nobody uses."""
KEEP_CONNECTIONS = 100
"""How many of them are kept, for each server."""
MOST_WAITING_BYTES = 1024 * 1024
"""When so much of an answer waits to be taken, no more of it is read."""


class Origin(NamedTuple):
    """What a connection leads to."""

    host: str
    port: int
    secure: bool


class Connection(asyncio.Protocol):
    """A connection, with one request and its answer at a time."""

    def __init__(self) -> None:
        self.closed = False
        """Whether it can't be used any more."""
        self.used = False
        """Whether an answer came over it before."""
        self.since = 0.0
        """The loop's time at which it came free."""
        self._loop = asyncio.get_running_loop()
        self._reader: ResponseReader | None = None
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._paused = False
        self._error: ProviderError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._idle = 0.0
        self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # --- what a request does with it --------------------------------------------------------------

    def send(self, request: bytes, idle: float) -> None:
        """Send a request; ``idle`` is how many seconds may pass without a byte of its answer."""
        self._reader = ResponseReader()
        self._error = None
        self._idle = idle
        self._heard = self._loop.time()
        self._timer = self._loop.call_at(self._heard + idle, self._check)
        self._transport.write(request)

    async def head(self) -> ResponseReader:
        """The answer, as soon as its status and headers are there.

        Raises:
            ProviderError: where none comes.
        """
        reader = cast("ResponseReader", self._reader)
        while not reader.status:
            if self._error:
                raise self._error
            await self._wait()
        return reader

    async def piece(self) -> bytes:
        """The part of the body that came since the last time; ``b""`` at its end.

        Raises:
            ProviderError: where it breaks off or stalls.
        """
        reader = cast("ResponseReader", self._reader)
        while not self._pieces:
            if reader.done:
                return b""
            if self._error:
                raise self._error
            await self._wait()
        piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._waiting = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return piece

    def finish(self) -> bool:
        """The request is over. Gives whether another can follow it; otherwise this is closed."""
        reader = self._reader
        self._reader = None
        if self._timer:
            self._timer.cancel()
        self._pieces.clear()
        free = bool(
            reader
            and reader.done
            and reader.keep
            and not self.closed
            and not self._paused
            and not self._transport.get_write_buffer_size()
        )
        if not free:
            self.close()
        self.used = True
        self.since = self._loop.time()
        return free

    def close(self) -> None:
        """Let go of it at once."""
        self.closed = True
        self._transport.abort()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def _check(self) -> None:
        """The answer may have stalled: only where someone waits for it, and no byte came."""
        now = self._loop.time()
        if not self._waiter:
            self._heard = now
        if now - self._heard < self._idle:
            self._timer = self._loop.call_at(self._heard + self._idle, self._check)
        else:
            self._fail(ProviderError(f"the server sent nothing for {self._idle:g} s", "timeout"))

    def _fail(self, error: ProviderError) -> None:
        self._error = self._error or error
        self._wake()

    # --- what asyncio does with it ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._reader is None or self._error:
            self.close()  # nobody asked for it
            return
        self._heard = self._loop.time()
        try:
            body = self._reader.feed(data)
        except ProviderError as error:
            self._fail(error)
            return
        if body:
            self._pieces.append(body)
            self._waiting += len(body)
            if self._waiting > MOST_WAITING_BYTES and not self._paused:
                self._paused = True
                self._transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.closed = True
        if self._reader is None:
            return
        try:
            if error:
                raise ProviderError(f"the connection broke: {error}", "network")
            self._reader.end()
        except ProviderError as lost:
            self._fail(lost)
        self._wake()


class Pool:
    """The free connections of one event loop. It closes with its loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._free: dict[Origin, list[Connection]] = {}
        self._keeper = self._keep()

    async def take(self, origin: Origin, within: float, *, fresh: bool = False) -> Connection:
        """A connection to a server; a free one where there is one.

        Args:
            origin: The server.
            within: Seconds until it must have taken a new connection.
            fresh: Whether it must be a new one.

        Raises:
            ProviderError: where the server can't be reached.
        """
        free = self._free.get(origin, [])
        while free and not fresh:
            connection = free.pop()
            if not connection.closed and self.loop.time() - connection.since < KEEP_SECONDS:
                return connection
            connection.close()
        return await _connected(origin, within)

    def give(self, origin: Origin, connection: Connection) -> None:
        """Take a connection back whose request is over."""
        if connection.finish():
            free = self._free.setdefault(origin, [])
            if len(free) < KEEP_CONNECTIONS:
                free.append(connection)
            else:
                connection.close()

    async def _keep(self) -> AsyncGenerator[None, None]:
        """A loop that ends shuts down the generators that were begun in it: this is one of them."""
        try:
            yield
        finally:
            _pools.pop(id(self.loop), None)
            for free in self._free.values():
                for connection in free:
                    connection.close()
            self._free.clear()
            await asyncio.sleep(0)  # in which the sockets are closed

    async def begin(self) -> None:
        """Have this closed when the loop ends."""
        await anext(self._keeper)


_pools: dict[int, Pool] = {}


async def pool() -> Pool:
    """The running loop's pool."""
    loop = asyncio.get_running_loop()
    found = _pools.get(id(loop))
    if found is None or found.loop is not loop:
        for old in [key for key, pool in _pools.items() if pool.loop.is_closed()]:
            _pools.pop(old, None)
        found = _pools[id(loop)] = Pool()
        await found.begin()
    return found


async def _connected(origin: Origin, within: float) -> Connection:
    loop = asyncio.get_running_loop()
    at = f"{origin.host}:{origin.port}"
    kind: ErrorKind = "network"
    try:
        async with asyncio.timeout(within):
            _, connection = await loop.create_connection(
                Connection,
                origin.host,
                origin.port,
                ssl=_tls() if origin.secure else None,
                happy_eyeballs_delay=0.25,
            )
            return connection
    except TimeoutError:
        text, kind = f"{at} took no connection within {within:g} s", "timeout"
        raise ProviderError(text, kind) from None
    except OSError as error:
        # A certificate that is wrong now will be wrong in a second.
        certain = type(error).__name__ == "SSLCertVerificationError"
        text = f"can't connect to {at}: {error}"
        raise ProviderError(text, kind, retryable=False if certain else None) from None


@functools.cache
def _tls() -> ssl.SSLContext:
    """Made when the first server needs it: to load the certificates takes some 20 ms."""
    import os
    import ssl

    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        file = certifi.where()
    context = ssl.create_default_context(cafile=file, capath=folder)
    context.set_alpn_protocols(["http/1.1"])
    return context
