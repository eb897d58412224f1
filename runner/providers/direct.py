"""The part of an HTTP client that a model's server needs: no cookies, no redirects, no login.

httpx's own looks for all three in each request and answer, and puts their URL together anew, which
takes as long as the loop takes for a turn.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from runner.providers.transport import Transport


class Direct:
    """The `Client` of a transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def build_request(
        self,
        method: str,
        url: str,
        *,
        content: bytes,
        headers: Mapping[str, str],
        timeout: httpx.Timeout,
    ) -> httpx.Request:
        """See `Client.build_request`."""
        extensions = {"timeout": timeout.as_dict()}
        return httpx.Request(method, url, content=content, headers=headers, extensions=extensions)

    async def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        """See `Client.send`."""
        response = await self._transport.handle_async_request(request)
        response.request = request
        return response

    async def aclose(self) -> None:
        """See `Client.aclose`."""
        await self._transport.aclose()
