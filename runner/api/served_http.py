"""Specs served as an MCP server over streamable HTTP: on this machine alone, unless a token is set.

A page in a browser must not reach it: the names in ``Host`` and ``Origin`` are held against the
address that it listens on.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

from runner.api.served import SpecServer
from runner.error import UsageError

PATH = "/mcp"
_LOCAL = ("127.0.0.1", "localhost", "[::1]")

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


def listen(address: str, token: str | None) -> socket.socket:
    """A socket that listens on ``HOST:PORT``.

    Raises:
        UsageError: where that is no address, is taken, or is one for others and no token is set.
    """
    host, colon, number = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not colon or not number.isdecimal() or int(number) > 65535:
        raise UsageError(f"--http {address}: write HOST:PORT, such as 127.0.0.1:8000")
    if not _is_local(host) and not token:
        raise UsageError(
            f"--http {address}: others can reach that address, so a token is needed; "
            "set PI_RUN_TOKEN"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, int(number)))
    except (OSError, UnicodeError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or "it is no host"
        raise UsageError(f"--http {address}: can't listen there: {reason.lower()}") from None
    return listening


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def url_of(listening: socket.socket) -> str:
    """The endpoint of a socket that listens."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


class HttpServer:
    """Serves specs by HTTP.

    Args:
        server: What is served.
        listening: See `listen`.
        token: What a client has to send as ``Authorization: Bearer TOKEN``; None for nothing.
    """

    def __init__(self, server: SpecServer, listening: socket.socket, token: str | None) -> None:
        import uvicorn
        from mcp.server.transport_security import TransportSecuritySettings

        names = [*_LOCAL, url_of(listening).removeprefix("http://").rpartition(":")[0]]
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=_is_local(listening.getsockname()[0]),
            allowed_hosts=[f"{name}:*" for name in names],
            allowed_origins=[f"http://{name}:*" for name in names],
        )
        app: App = server.sdk_server().streamable_http_app(
            streamable_http_path=PATH, transport_security=security
        )
        config = uvicorn.Config(
            app if token is None else guarded(app, token),
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=2,
            ws="none",
        )

        class Quiet(uvicorn.Server):
            """Leaves signals to those who serve."""

            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield

        self._listening = listening
        self._server = Quiet(config)

    async def serve(self) -> None:
        """Serve until `stop`."""
        try:
            await self._server.serve(sockets=[self._listening])
        finally:
            self._listening.close()

    def stop(self) -> None:
        """End it: runs that are going on are aborted."""
        self._server.should_exit = True


def guarded(app: App, token: str) -> App:
    """An app that only those reach who send a token."""
    wanted = f"Bearer {token}".encode()

    async def guard(scope: Scope, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers") or ())
        given = headers.get(b"authorization", b"")
        if scope["type"] == "lifespan" or hmac.compare_digest(given, wanted):
            await app(scope, receive, send)
            return
        head = {
            "type": "http.response.start",
            "status": 401,
            "headers": [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")],
        }
        await send(head)
        await send({"type": "http.response.body", "body": b""})

    return guard
