"""The HTTP clients that all runs of one event loop share.

So hundreds of runs need few connections, and find them warm. The clients close with their loop.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl

    import httpx

KEEP_SECONDS = 30.0
"""How long a connection that nobody uses is kept."""
KEEP_CONNECTIONS = 100
"""How many of them are kept."""


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    return host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost")


class Client(Protocol):
    """What sends requests: httpx's own client, or what does the part of it that is needed here."""

    def build_request(
        self,
        method: str,
        url: str,
        *,
        content: bytes,
        headers: Mapping[str, str],
        timeout: httpx.Timeout,
    ) -> httpx.Request:
        """A request that can be sent."""
        ...

    async def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        """Send it; the answer's body is still to be read, and the answer to be closed."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class _Pool:
    """The HTTP clients of one event loop, one for each way to connect."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.clients: dict[str, Client] = {}
        self.keeper = self._keep()

    async def _keep(self) -> AsyncGenerator[None, None]:
        """Closes the clients when the loop ends, which shuts down the generators begun in it."""
        try:
            yield
        finally:
            _pools.pop(id(self.loop), None)
            for client in self.clients.values():
                await client.aclose()


_pools: dict[int, _Pool] = {}


async def client_for(url: str) -> Client:
    """The running loop's client for a URL."""
    loop = asyncio.get_running_loop()
    pool = _pools.get(id(loop))
    if pool is None:
        for other in [pool for pool in _pools.values() if pool.loop.is_closed()]:
            _pools.pop(id(other.loop), None)
        pool = _pools[id(loop)] = _Pool(loop)
        await anext(pool.keeper)
    way = _way(url)
    if way not in pool.clients:
        pool.clients[way] = _make_client(way)
    return pool.clients[way]


def _way(url: str) -> str:
    """How to connect: without TLS, with it, or as httpx does it where proxies are set."""
    import urllib.request

    if not is_loopback(url) and urllib.request.getproxies():
        return "proxies"
    return "plain" if url.startswith("http://") else "tls"


def _make_client(way: str) -> Client:
    if way == "proxies":
        import httpx

        limits = httpx.Limits(
            max_connections=None,
            max_keepalive_connections=KEEP_CONNECTIONS,
            keepalive_expiry=KEEP_SECONDS,
        )
        return httpx.AsyncClient(verify=_tls(), limits=limits)

    from runner.providers.direct import Direct
    from runner.providers.transport import Transport

    # Loading the certificates takes longer than all else that a run does before its request.
    tls = _tls() if way == "tls" else None
    transport = Transport(tls, keep=KEEP_CONNECTIONS, keep_seconds=KEEP_SECONDS)
    return Direct(transport)


@functools.cache
def _tls() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()
