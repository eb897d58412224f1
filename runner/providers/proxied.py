"""Requests that go through a proxy, by httpx, which knows every kind of them."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, cast

from runner.error import ProviderError
from runner.providers.settings import ModelSettings

if TYPE_CHECKING:
    import httpx


def in_use() -> bool:
    """Whether the environment, or the system's settings, name a proxy for any address."""
    import os

    if sys.platform in ("darwin", "win32"):
        import urllib.request

        return bool(urllib.request.getproxies())
    return any(value and name.lower().endswith("_proxy") for name, value in os.environ.items())


class ProxiedAnswer:
    """An answer that came through a proxy."""

    def __init__(self, client: httpx.AsyncClient, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._client = client
        self._response = response
        self._pieces = cast("AsyncGenerator[bytes, None]", response.aiter_raw())

    async def piece(self) -> bytes:
        """See `Connection.piece`."""
        import httpx

        try:
            return await anext(self._pieces, b"")
        except httpx.TimeoutException:
            raise ProviderError("the server sent nothing for too long", "timeout") from None
        except httpx.HTTPError as error:
            raise ProviderError(f"the connection broke: {error}", "network") from None

    async def close(self) -> None:
        """Let go of it."""
        await self._response.aclose()
        await self._client.aclose()


async def open_answer(
    url: str, body: bytes, headers: Mapping[str, str], settings: ModelSettings
) -> ProxiedAnswer:
    """Send a request through the proxies that the environment names for it.

    Raises:
        ProviderError: where no answer comes.
    """
    import httpx

    idle = settings.idle_timeout
    timeout = httpx.Timeout(connect=settings.connect_timeout, read=idle, write=idle, pool=None)
    client = httpx.AsyncClient(timeout=timeout)
    try:
        request = client.build_request("POST", url, content=body, headers=dict(headers))
        return ProxiedAnswer(client, await client.send(request, stream=True))
    except httpx.TimeoutException as error:
        await client.aclose()
        raise ProviderError(f"no answer in time: {type(error).__name__}", "timeout") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        await client.aclose()
        raise ProviderError(f"can't connect by the proxy: {error}", "network") from None
    except BaseException:
        await client.aclose()
        raise
