"""One POST whose answer is a stream of events, over connections that runs share.

No redirect is followed, since it would take the key to where nobody sent it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Protocol
from urllib.parse import SplitResult, quote, urlsplit

from runner.error import ProviderError
from runner.providers import connection, proxied
from runner.providers.failure import failure_of_answer, short
from runner.providers.settings import ModelSettings
from runner.providers.sse import Event, SseReader

MOST_ERROR_BYTES = 64 * 1024
"""As much of an error's body is read."""
MOST_ERROR_SECONDS = 5.0
"""As long is an error's body waited for."""
MOST_DOCUMENT_BYTES = 64 * 1024 * 1024
"""The longest answer that is one JSON document."""
SETTLE_SECONDS = 0.02
"""How long the end of a stream is waited for after its terminal mark."""

_BLANK = b"\xef\xbb\xbf \t\r\n"
_IN_TARGET = "/?%:@!$&'()*+,;=~-._[]"


class Answer(Protocol):
    """An answer whose head is there."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """By lower-case name."""
        ...

    async def piece(self) -> bytes:
        """The next part of its body; ``b""`` at the end. Raises `ProviderError`."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


async def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    settings: ModelSettings,
    secret: str | None = None,
) -> AsyncGenerator[list[Event], None]:
    """Send a request and give the events of its answer, a list for each piece that came.

    An answer that is one JSON document in place of a stream is given as one event without a name.
    Use it within ``contextlib.aclosing``, and call `settle` when the terminal mark was seen.

    Args:
        url: An absolute http or https URL.
        body: JSON in UTF-8.
        headers: Besides those for the content and the user agent; the key stands in one of them.
        settings: For the timeouts.
        secret: The key, so that it can be kept out of errors.

    Raises:
        ProviderError: for a server that can't be reached, an answer with another status than 2xx,
            a connection that breaks or stalls, and an answer that is no stream.
    """
    answer = await _answer(url, body, {**_common_headers(), **_legal(headers)}, settings)
    try:
        if not 200 <= answer.status < 300:
            raise await _refusal(answer, settings, secret)
        decode = _decoder(answer)
        reader = SseReader()
        begun = False
        while piece := await answer.piece():
            if decode:
                piece = decode(piece)
            if not begun and (start := piece.lstrip(_BLANK)[:1]):
                if start in b"{[<":
                    yield [await _document(piece, answer, decode)]
                    return
                begun = True
            if events := reader.feed(piece):
                yield events
        if events := reader.end():
            yield events
    finally:
        await answer.close()


async def settle(events: AsyncGenerator[list[Event], None]) -> None:
    """Read what follows the terminal mark, if it comes at once: the connection can be used again.

    Servers that keep the connection open without ending the answer are not waited for.
    """
    with contextlib.suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(SETTLE_SECONDS):
            async for _ in events:
                pass


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    return host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost")


# --- the request ----------------------------------------------------------------------------------


async def _answer(
    url: str, body: bytes, headers: Mapping[str, str], settings: ModelSettings
) -> Answer:
    parts, origin = _address(url)
    if not is_loopback(url) and proxied.in_use():
        return await proxied.open_answer(url, body, headers, settings)
    request = _request(parts, origin, body, headers)
    pool = await connection.pool()
    return await _DirectAnswer.to(request, pool, origin, settings)


class _DirectAnswer:
    """An answer over a connection of the pool."""

    def __init__(self, pool: connection.Pool, origin: connection.Origin) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._pool = pool
        self._origin = origin

    @classmethod
    async def to(
        cls,
        request: bytes,
        pool: connection.Pool,
        origin: connection.Origin,
        settings: ModelSettings,
    ) -> _DirectAnswer:
        """The answer to a request, with its head."""
        self = cls(pool, origin)
        try:
            await self._ask(request, settings, fresh=False)
        except ProviderError as error:
            # A server may close a connection just when it is used again: nothing was done then.
            if error.kind != "network" or not self._connection.used:
                raise
            await self._ask(request, settings, fresh=True)
        return self

    async def _ask(self, request: bytes, settings: ModelSettings, *, fresh: bool) -> None:
        found = await self._pool.take(self._origin, settings.connect_timeout, fresh=fresh)
        self._connection = found
        try:
            found.send(request, settings.idle_timeout)
            head = await found.head()
        except BaseException:
            found.close()
            raise
        self.status, self.headers = head.status, head.headers
        self.piece = found.piece

    async def close(self) -> None:
        self._pool.give(self._origin, self._connection)


def _address(url: str) -> tuple[SplitResult, connection.Origin]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError as error:
        raise ProviderError(f"base_url is not usable: {error}", "bad_request") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ProviderError(f"base_url is no http or https URL: {short(url)}", "bad_request")
    secure = parts.scheme == "https"
    return parts, connection.Origin(host, port or (443 if secure else 80), secure)


def _request(
    parts: SplitResult, origin: connection.Origin, body: bytes, headers: Mapping[str, str]
) -> bytes:
    target = quote(parts.path or "/", _IN_TARGET)
    if parts.query:
        target += "?" + quote(parts.query, _IN_TARGET)
    host = parts.netloc.rpartition("@")[2].encode("idna").decode()
    lines = [f"POST {target} HTTP/1.1", f"host: {host}", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "\r\n")).encode("ascii") + body


def _legal(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers, if all can be sent. Their values are not shown: one of them is the key."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()) or value != value.strip():
            raise ProviderError(
                f"the API key can't be sent in the header {name}: it has a line break, a space at"
                " an end, or a character that is not ASCII",
                "auth",
            )
    return headers


@functools.cache
def _common_headers() -> Mapping[str, str]:
    from importlib.metadata import version

    return {
        "accept": "text/event-stream",
        # A coding saves little here and makes proxies hold deltas back.
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": f"pi-run/{version('pi-run')}",
    }


# --- the answer -----------------------------------------------------------------------------------


def _decoder(answer: Answer) -> Callable[[bytes], bytes] | None:
    """What undoes a coding that was not asked for and is there all the same."""
    coding = answer.headers.get("content-encoding", "identity").lower()
    if coding == "identity":
        return None
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ProviderError(f"the answer is coded as {coding}; no coding was asked for", "protocol")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)  # tells gzip from zlib by itself

    def decode(piece: bytes) -> bytes:
        try:
            return inflate.decompress(piece)
        except zlib.error as error:
            raise ProviderError(f"the answer's {coding} is broken: {error}", "protocol") from None

    return decode


async def _document(piece: bytes, answer: Answer, decode: Callable[[bytes], bytes] | None) -> Event:
    """An answer that can't be a stream, since none begins so: JSON, or a web page."""
    pieces = [piece]
    size = 0
    while piece := await answer.piece():
        pieces.append(decode(piece) if decode else piece)
        size += len(pieces[-1])
        if size > MOST_DOCUMENT_BYTES:
            raise ProviderError("the answer is no stream of events, and too long", "protocol")
    text = b"".join(pieces).decode("utf-8-sig", "replace").strip()
    if text.startswith("<"):
        text = short(text)[:200]
        raise ProviderError(
            f"the answer is no stream of events; is base_url right? {text}", "protocol"
        )
    return "", text


async def _refusal(answer: Answer, settings: ModelSettings, secret: str | None) -> ProviderError:
    """The error that an answer stands for whose status is not 2xx."""
    if answer.status < 400:
        where = answer.headers.get("location", "nowhere")
        return ProviderError(
            short(f"the server redirects to {where}; set base_url to where the API is", secret),
            "not_found",
            status=answer.status,
        )
    body = bytearray()
    # What can't be read of an error's body doesn't make another error of it.
    with contextlib.suppress(ProviderError, TimeoutError):
        decode = _decoder(answer)
        async with asyncio.timeout(min(settings.idle_timeout, MOST_ERROR_SECONDS)):
            while len(body) < MOST_ERROR_BYTES and (piece := await answer.piece()):
                body += decode(piece) if decode else piece
    text = bytes(body[:MOST_ERROR_BYTES])
    return failure_of_answer(answer.status, answer.headers, text, secret)
