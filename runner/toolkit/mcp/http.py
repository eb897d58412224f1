"""MCP over streamable HTTP, by the SDK's transport, with bounds on what a server may send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from runner.toolkit.mcp.stdio import MAX_MESSAGE

_CONNECT_SECONDS = 10.0
_SEND_SECONDS = 30.0


class HttpPeer:
    """A server at a URL.

    Args:
        url: Its endpoint.
        headers: Sent with every request.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = dict(headers)
        self.ended = asyncio.Event()
        """Never set: only a request shows whether it is there."""
        self.problem: str | None = None
        """Why the last request failed, where its answer says it."""

    def last_words(self) -> str:
        """Why it can't be talked to."""
        return self.problem or ""

    def kill(self) -> None:
        """Nothing: it is not ours to end."""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """The messages that come and those that go."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        peer = self

        class Bounded(httpx2.AsyncByteStream):
            def __init__(self, inner: Any) -> None:
                self._inner = inner

            async def __aiter__(self) -> AsyncIterator[bytes]:
                total = 0
                async for data in self._inner:
                    total += len(data)
                    if total > MAX_MESSAGE:
                        peer.problem = f"it sent a message of more than {MAX_MESSAGE} bytes"
                        raise httpx2.ReadError(peer.problem)
                    yield data

            async def aclose(self) -> None:
                await self._inner.aclose()

        async def bound(response: httpx2.Response) -> None:
            if response.status_code >= 400:
                said = f"{response.status_code} {response.reason_phrase}".strip()
                peer.problem = f"it answered with {said}"
            # Events are bounded one by one.
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                response.stream = Bounded(response.stream)

        client = httpx2.AsyncClient(
            headers=self._headers,
            # A call may take its time: what bounds it is its tool's timeout.
            timeout=httpx2.Timeout(_SEND_SECONDS, connect=_CONNECT_SECONDS, read=None),
            event_hooks={"response": [bound]},
        )
        async with (
            client,
            streamable_http_client(
                self._url, http_client=client, max_sse_event_size=MAX_MESSAGE
            ) as streams,
        ):
            yield streams
