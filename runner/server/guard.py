"""What stands before the app: nobody passes without the token, and no answer leaves unprotected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from runner.json_text import line
from runner.server.access import Access
from runner.server.refusal import Refusal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        # No text becomes markup, whoever tries.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""The Content-Security-Policy of all pages: scripts and styles are files of the server's own."""

_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """An app that only those reach who may.

    Args:
        app: What is guarded.
        access: Tells who may.
        public: Paths that all may reach: the login page's own.
        login: Answers a browser that has not logged in.
    """

    def __init__(self, app: App, access: Access, public: Iterable[str], login: App) -> None:
        self._app = app
        self._access = access
        self._public = frozenset(public)
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        headers = _headers_of(scope)
        try:
            self._hold(scope, headers)
        except Refusal as refusal:
            await refuse(refusal, protected)
            return
        if scope["path"] in self._public or self._access.admits(headers):
            await self._app(scope, receive, protected)
        elif scope["method"] in ("GET", "HEAD") and "text/html" in headers.get("accept", ""):
            await self._login(scope, receive, protected)
        else:
            why = "send the token as `Authorization: Bearer TOKEN`; it was printed at the start"
            no = Refusal(401, "no_token", why, {"WWW-Authenticate": "Bearer"})
            await refuse(no, protected)

    def _hold(self, scope: Scope, headers: dict[str, str]) -> None:
        host = headers.get("host", "")
        if not self._access.is_own_name(host):
            raise Refusal(
                421, "unknown_host", f'this server is not called "{host:.80}"; see --allow-host'
            )
        if scope["method"] not in ("GET", "HEAD") and not self._access.is_own_page(headers):
            raise Refusal(403, "foreign_origin", "pages of other origins may change nothing here")


async def refuse(refusal: Refusal, send: Send) -> None:
    """Answer with a refusal."""
    body = line(refusal.body).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **refusal.headers,
    }
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def _headers_of(scope: Scope) -> dict[str, str]:
    """By lower-case name. Of a name that comes twice, what holds is neither."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers
