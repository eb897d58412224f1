"""One POST whose answer is a stream of events, over connections that runs share.

No redirect is followed, since it would take the key to where nobody sent it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from runner.error import ProviderError
from runner.providers.clients import Client, client_for
from runner.providers.failure import failure_of_answer, short
from runner.providers.settings import ModelSettings
from runner.providers.sse import Event, SseReader

if TYPE_CHECKING:
    import httpx

MOST_ERROR_BYTES = 64 * 1024
"""As much of an error's body is read."""
MOST_ERROR_SECONDS = 5.0
"""As long is an error's body waited for."""
MOST_DOCUMENT_BYTES = 64 * 1024 * 1024
"""The longest answer that is one JSON document."""
SETTLE_SECONDS = 0.02
"""How long the end of a stream is waited for after its terminal mark."""
_BLANK = b"\xef\xbb\xbf \t\r\n"


def post(
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
    return _post(url, body, headers, settings, secret)


async def settle(events: AsyncGenerator[list[Event], None]) -> None:
    """Read what follows the terminal mark, if it comes at once: the connection can be used again.

    Servers that keep the connection open without ending the answer are not waited for.
    """
    with contextlib.suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(SETTLE_SECONDS):
            async for _ in events:
                pass


async def _post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    settings: ModelSettings,
    secret: str | None,
) -> AsyncGenerator[list[Event], None]:
    try:
        client = await client_for(url)
        request = client.build_request(
            "POST",
            url,
            content=body,
            headers={**_headers(), **_legal(headers)},
            timeout=_timeout(settings.connect_timeout, settings.idle_timeout),
        )
        response = await _send(client, request)
        try:
            if response.status_code >= 300:
                raise await _refusal(response, settings, secret)
            async with contextlib.aclosing(_chunks(response)) as chunks:
                async for events in _events(chunks):
                    yield events
        finally:
            await response.aclose()
    except _faults() as error:
        raise _transport_error(error, url, settings, secret) from None


async def _send(client: Client, request: httpx.Request) -> httpx.Response:
    """Send a request; over a new connection, where a kept one turns out to have ended.

    Servers close connections that they promised to keep (llama.cpp does after each stream), and a
    request may be on its way by then. It was not answered, so this is no attempt that failed.
    """
    import httpx

    fresh = False

    async def trace(event: str, _: Any) -> None:
        nonlocal fresh
        fresh = fresh or ".connect_" in event

    request.extensions["trace"] = trace
    while True:
        try:
            return await client.send(request, stream=True)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            if fresh:
                raise


def _chunks(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    # What is not coded needs no pass through a decoder.
    coded = response.headers.get("content-encoding", "identity") != "identity"
    chunks = response.aiter_bytes() if coded else response.aiter_raw()
    return cast("AsyncGenerator[bytes, None]", chunks)


async def _events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[list[Event], None]:
    reader = SseReader()
    async for chunk in chunks:
        if not chunk.strip(_BLANK):
            reader.feed(chunk)
            continue
        if chunk.lstrip(_BLANK)[:1] in (b"{", b"[", b"<"):
            yield [await _document(chunk, chunks)]
            return
        if events := reader.feed(chunk):
            yield events
        break
    async for chunk in chunks:
        if events := reader.feed(chunk):
            yield events
    if events := reader.end():
        yield events


async def _document(first: bytes, rest: AsyncIterator[bytes]) -> Event:
    """An answer that can't be a stream, since none begins so: JSON, or a web page."""
    pieces = [first]
    size = len(first)
    async for piece in rest:
        size += len(piece)
        if size > MOST_DOCUMENT_BYTES:
            raise ProviderError("the answer is no stream of events, and too long", "protocol")
        pieces.append(piece)
    text = b"".join(pieces).decode("utf-8-sig", "replace").strip()
    if text.startswith("<"):
        raise ProviderError(
            f"the answer is no stream of events; is base_url right? {short(text)[:200]}", "protocol"
        )
    return "", text


async def _refusal(
    response: httpx.Response, settings: ModelSettings, secret: str | None
) -> ProviderError:
    """The error that an answer stands for whose status is not 2xx."""
    status = response.status_code
    if status < 400:
        where = response.headers.get("location", "nowhere")
        return ProviderError(
            short(f"the server redirects to {where}; set base_url to where the API is", secret),
            "not_found",
            status=status,
        )
    body = bytearray()
    # What can't be read of an error's body doesn't make another error of it.
    with contextlib.suppress(*_faults()):
        async with asyncio.timeout(min(settings.idle_timeout, MOST_ERROR_SECONDS)):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) >= MOST_ERROR_BYTES:
                    break
    headers = {name.lower(): value for name, value in response.headers.items()}
    return failure_of_answer(status, headers, bytes(body[:MOST_ERROR_BYTES]), secret)


@functools.cache
def _faults() -> tuple[type[Exception], ...]:
    """All that httpx raises over a request, a connection or an answer."""
    import httpx

    return (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError)


def _transport_error(
    error: Exception, url: str, settings: ModelSettings, secret: str | None
) -> ProviderError:
    import httpx

    host = urlsplit(url).netloc.rpartition("@")[2]
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectTimeout):
        return ProviderError(
            f"{host} took no connection within {settings.connect_timeout:g} s", "timeout"
        )
    if isinstance(error, httpx.TimeoutException):
        return ProviderError(f"nothing came from {host} for {settings.idle_timeout:g} s", "timeout")
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | UnicodeError):
        return ProviderError(short(f"base_url is not usable: {text}", secret), "bad_request")
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        return ProviderError(short(f"can't connect to {host}: {text}", secret), "network")
    if isinstance(error, httpx.DecodingError):
        return ProviderError(short(f"the answer can't be decoded: {text}", secret), "protocol")
    return ProviderError(short(f"the connection to {host} broke: {text}", secret), "network")


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
def _headers() -> Mapping[str, str]:
    from importlib.metadata import version

    return {
        "accept": "text/event-stream",
        # A coding saves little here and makes proxies hold deltas back.
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": f"pi-run/{version('pi-run')}",
    }


@functools.cache
def _timeout(connect: float, idle: float) -> httpx.Timeout:
    import httpx

    return httpx.Timeout(connect=connect, read=idle, write=idle, pool=None)
