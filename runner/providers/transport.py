"""The way from httpx to a server: HTTP/1.1 over connections that are kept for the next request.

httpx's own transport hands out each chunk of a body by itself and through eight generators, which
takes 8 microseconds for one delta of a stream: more than all else that is done with it. Here one
read of the socket is one piece, whatever chunks it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple, cast

import httpx

from runner.providers.answer import AnswerReader

if TYPE_CHECKING:
    import ssl

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
        self.since = 0.0
        """The loop's time at which it came free."""
        self._loop = asyncio.get_running_loop()
        self._answer: AnswerReader | None = None
        self._waiting = 0
        self._paused = False
        self._error: httpx.TransportError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._idle = 0.0
        self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # --- what a request does with it --------------------------------------------------------------

    def send(self, request: bytes, idle: float) -> None:
        """Send a request; ``idle`` is how many seconds may pass without a byte of its answer."""
        self._answer = AnswerReader()
        self._error = None
        self._waiting = 0
        self._idle = idle
        self._heard = self._loop.time()
        self._timer = self._loop.call_at(self._heard + idle, self._check)
        self._transport.write(request)

    async def head(self) -> AnswerReader:
        """The answer, as soon as its status and headers are there.

        Raises:
            httpx.TransportError: where none comes.
        """
        answer = cast("AnswerReader", self._answer)
        while not answer.status:
            if self._error:
                raise self._error
            await self._wait()
        return answer

    async def piece(self) -> bytes:
        """The part of the body that came since the last time; ``b""`` at its end.

        Raises:
            httpx.TransportError: where it breaks off or stalls.
        """
        answer = cast("AnswerReader", self._answer)
        while not answer.pieces:
            if answer.done:
                return b""
            if self._error:
                raise self._error
            await self._wait()
        piece = answer.pieces[0] if len(answer.pieces) == 1 else b"".join(answer.pieces)
        answer.pieces.clear()
        self._waiting = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return piece

    def finish(self) -> bool:
        """The request is over. Gives whether another can follow it; otherwise this is closed."""
        answer = self._answer
        self._answer = None
        if self._timer:
            self._timer.cancel()
        free = bool(
            answer
            and answer.done
            and answer.keep
            and not self.closed
            and not self._paused
            and not self._transport.get_write_buffer_size()
        )
        if not free:
            self.close()
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
            self._fail(httpx.ReadTimeout(f"nothing came for {self._idle:g} s"))

    def _fail(self, error: httpx.TransportError) -> None:
        self._error = self._error or error
        self._wake()

    # --- what asyncio does with it ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._answer is None or self._error:
            self.close()  # nobody asked for it
            return
        self._heard = self._loop.time()
        try:
            self._answer.feed(data)
        except httpx.TransportError as error:
            self._fail(error)
            return
        self._waiting += len(data)
        if self._waiting > MOST_WAITING_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.closed = True
        if self._answer is None:
            return
        try:
            if error and not self._answer.done:
                raise httpx.ReadError(str(error) or type(error).__name__)
            self._answer.end()
        except httpx.TransportError as lost:
            self._fail(lost)
        self._wake()


class Body(httpx.AsyncByteStream):
    """The body of an answer; gives its connection back when it is closed."""

    def __init__(self, pool: Transport, origin: Origin, connection: Connection) -> None:
        self._pool = pool
        self._origin = origin
        self._connection: Connection | None = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._connection and (piece := await self._connection.piece()):
            yield piece

    async def aclose(self) -> None:
        """Read no more of it."""
        if connection := self._connection:
            self._connection = None
            self._pool.give(self._origin, connection)


class Transport(httpx.AsyncBaseTransport):
    """Connections to servers, without a proxy, for one event loop.

    Args:
        tls: What holds the certificates; asked for when the first URL needs them.
        keep: How many connections nobody uses are kept, for each server.
        keep_seconds: How long.
    """

    def __init__(self, tls: ssl.SSLContext | None, *, keep: int, keep_seconds: float) -> None:
        self._tls = tls
        self._keep = keep
        self._keep_seconds = keep_seconds
        self._free: dict[Origin, list[Connection]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """See `httpx.AsyncBaseTransport`. Tells ``extensions["trace"]`` of new connections."""
        origin = _origin(request.url)
        timeout = request.extensions["timeout"]
        connection = self._take(origin)
        if connection is None:
            if trace := request.extensions.get("trace"):
                await trace("connection.connect_tcp.started", {"origin": origin})
            connection = await self._connect(origin, timeout["connect"])
        try:
            connection.send(_head(request) + request.content, timeout["read"])
            answer = await connection.head()
        except BaseException:
            connection.finish()
            raise
        body = Body(self, origin, connection)
        return httpx.Response(answer.status, headers=answer.headers, stream=body)

    def give(self, origin: Origin, connection: Connection) -> None:
        """Take a connection back whose request is over."""
        if connection.finish():
            free = self._free.setdefault(origin, [])
            if len(free) < self._keep:
                free.append(connection)
            else:
                connection.close()

    async def aclose(self) -> None:
        """Close all that nobody uses."""
        for free in self._free.values():
            for connection in free:
                connection.close()
        self._free.clear()
        await asyncio.sleep(0)  # in which the sockets are closed

    def _take(self, origin: Origin) -> Connection | None:
        """A kept connection, the one that was used last."""
        free = self._free.get(origin, [])
        soonest = asyncio.get_running_loop().time() - self._keep_seconds
        while free:
            connection = free.pop()
            if not connection.closed and connection.since > soonest:
                return connection
            connection.close()
        return None

    async def _connect(self, origin: Origin, within: float | None) -> Connection:
        at = f"{origin.host}:{origin.port}"
        try:
            async with asyncio.timeout(within):
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection,
                    origin.host,
                    origin.port,
                    ssl=self._tls if origin.secure else None,
                    happy_eyeballs_delay=0.25,
                )
                return connection
        except TimeoutError:
            raise httpx.ConnectTimeout(f"{at} took no connection") from None
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error


def _origin(url: httpx.URL) -> Origin:
    secure = url.scheme == "https"
    if not secure and url.scheme != "http":
        raise httpx.UnsupportedProtocol(f"the scheme {url.scheme!r} is neither http nor https")
    return Origin(url.raw_host.decode("ascii"), url.port or (443 if secure else 80), secure)


def _head(request: httpx.Request) -> bytes:
    lines = [b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%s: %s" % header for header in request.headers.raw]
    return b"\r\n".join(lines) + b"\r\n\r\n"
