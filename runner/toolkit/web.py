"""HTTP for tools: bounded in size and time, and connected to no other address than was looked at.

Nothing is taken from the environment: no proxy, no ``.netrc``. No cookie is kept. Redirects are
followed by hand, each held against the same rules as the first address.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from runner.engine.contract import ToolResult
from runner.engine.message import Block
from runner.toolkit.address import AddressGuard, RefusedAddressError
from runner.toolkit.inflate import Inflated

if TYPE_CHECKING:
    import ssl

    import httpx

MAX_BYTES = 5_000_000
"""Of an answer's body, as it is when it is unpacked."""
MAX_REDIRECTS = 5
MAX_URL = 8_000
"""Characters."""
MAX_ERROR = 2_000
"""Characters of what a server says of an error."""
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 60.0
"""As long as nothing may come of an answer."""
_IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_TEXTS = frozenset(("json", "xml", "javascript", "yaml", "x-yaml", "toml", "x-www-form-urlencoded"))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_OWN = frozenset(("host", "content-length", "transfer-encoding", "connection", "accept-encoding"))
"""Headers that are the client's own."""
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET = frozenset(("authorization", "cookie", "proxy-authorization"))


class WebError(ValueError):
    """A request that was not made, or came to no answer; says why."""


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """What a server answered."""

    url: str
    """Where it came from, after all redirects."""
    status: int
    reason: str
    """The status in words."""
    content_type: str
    """In lower case, without its parameters; empty where there is none."""
    charset: str | None
    body: bytes
    is_whole: bool
    """Whether that is all of the body."""
    redirect: str | None = None
    """Where it redirects to, if that was not followed."""

    @property
    def text(self) -> str:
        """The body as text."""
        try:
            return self.body.decode(self.charset or "utf-8-sig", "replace")
        except LookupError:  # a charset that nobody knows
            return self.body.decode("utf-8-sig", "replace")

    def result(self) -> ToolResult:
        """The answer for a model: an image as one, a page as what a person reads of it, else text.

        An error's status is an error result, with the beginning of what the server said of it.
        """
        details: dict[str, Any] = {"status": self.status, "url": self.url}
        head = f"HTTP {self.status} {self.reason}".rstrip()
        if self.redirect is not None:
            where = f"{head}: it redirects to another host, which was not followed: {self.redirect}"
            return ToolResult(where, details, is_error=True)
        if self.status < 400 and self.content_type in _IMAGES:
            if not self.is_whole:
                return ToolResult(f"The image has more than {len(self.body)} bytes.", details, True)
            data = base64.b64encode(self.body).decode("ascii")
            image = {"type": "image", "mime_type": self.content_type, "data": data}
            return ToolResult([cast("Block", image)], details)
        if not self._is_text:
            what = f"{self.content_type or 'of no known type'}, {len(self.body)} bytes"
            return ToolResult(f"{head}: it is neither text nor an image: {what}", details, True)
        said = self._readable()
        if self.status >= 400:
            return ToolResult(f"{head}\n{said[:MAX_ERROR]}".rstrip(), details, is_error=True)
        if not self.is_whole:
            said += f"\n[… the rest of it, beyond {len(self.body)} bytes, was not read …]"
        return ToolResult(said or head, details)

    def _readable(self) -> str:
        if self.content_type in ("text/html", "application/xhtml+xml"):
            from runner.toolkit.html_text import html_text

            return html_text(self.text)
        return self.text

    @property
    def _is_text(self) -> bool:
        kind, _, sort = self.content_type.partition("/")
        if kind == "text" or sort in _TEXTS or sort.endswith(("+json", "+xml")):
            return True
        # Some servers name no type, or none that says anything: such a text has no NUL.
        return sort in ("", "octet-stream") and b"\0" not in self.body


class Web:
    """Makes requests.

    Args:
        guard: What may be connected to.
        same_host: Whether redirects to another host are told and not followed.
        max_bytes: Of a body; what is more is left out.
    """

    def __init__(
        self, guard: AddressGuard, *, same_host: bool = False, max_bytes: int = MAX_BYTES
    ) -> None:
        self._guard = guard
        self._same_host = same_host
        self._max_bytes = max_bytes

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> WebAnswer:
        """Make a request, and follow its redirects.

        Raises:
            WebError: where it can't be made, may not be, or breaks.
        """
        import httpx

        at, sent = _url(url), _legal(headers or {})
        for _ in range(MAX_REDIRECTS + 1):
            try:
                async with self._answer(method, at, sent, body) as response:
                    target = _target(response, at)
                    if target is None:
                        return await self._read(response, at)
                    if self._same_host and not _is_same_host(at, target):
                        return _redirecting(response, at, target)
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
                raise WebError(f"{at.host}: {_why(error)}") from error
            if response.status_code == 303 or (
                response.status_code in (301, 302) and method not in ("GET", "HEAD")
            ):
                method, body = "GET", None
            if not _is_same_host(at, target):
                sent = {k: v for k, v in sent.items() if k.lower() not in _SECRET}
            at = target
        raise WebError(f"{url:.200} redirects more than {MAX_REDIRECTS} times")

    @contextlib.asynccontextmanager
    async def _answer(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[httpx.Response]:
        """The answer to one request, from the very address that was looked at."""
        import httpx

        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            addresses = await self._guard.addresses(url.host, port)
        except RefusedAddressError as error:
            raise WebError(str(error)) from error
        timeout = httpx.Timeout(IDLE_SECONDS, connect=CONNECT_SECONDS)
        secure: Any = _tls() if url.scheme == "https" else False
        async with httpx.AsyncClient(verify=secure, trust_env=False, timeout=timeout) as client:
            for address in addresses:
                request = client.build_request(
                    method,
                    url.copy_with(host=address),
                    headers={
                        "Accept": "*/*",
                        "User-Agent": "pi-run",
                        **headers,
                        "Accept-Encoding": "gzip, deflate",
                        "Host": url.netloc.decode("ascii"),
                    },
                    content=body,
                    extensions={"sni_hostname": url.raw_host.decode("ascii")},
                )
                try:
                    response = await client.send(request, stream=True)
                except (httpx.ConnectError, httpx.ConnectTimeout):
                    if address == addresses[-1]:
                        raise
                    continue
                try:
                    yield response
                finally:
                    await response.aclose()
                return

    async def _read(self, response: httpx.Response, url: httpx.URL) -> WebAnswer:
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        try:
            inflated = Inflated(coding, self._max_bytes)
            async for piece in response.aiter_raw():
                if not inflated.feed(piece):
                    break
        except ValueError as error:
            raise WebError(f"{url.host}: {error}") from error
        return _whole(response, url, bytes(inflated.data), is_whole=not inflated.is_cut)


def _whole(response: httpx.Response, url: httpx.URL, body: bytes, *, is_whole: bool) -> WebAnswer:
    kind = response.headers.get("content-type", "")
    return WebAnswer(
        url=str(url),
        status=response.status_code,
        reason=response.reason_phrase,
        content_type=kind.partition(";")[0].strip().lower(),
        charset=response.charset_encoding,
        body=body,
        is_whole=is_whole,
    )


def _redirecting(response: httpx.Response, url: httpx.URL, target: httpx.URL) -> WebAnswer:
    return WebAnswer(
        str(url), response.status_code, response.reason_phrase, "", None, b"", True, str(target)
    )


def _url(text: str) -> httpx.URL:
    """A URL that may be asked for.

    Raises:
        WebError: for any other.
    """
    import httpx

    if len(text) > MAX_URL:
        raise WebError(f"a URL has at most {MAX_URL:,} characters, not {len(text):,}")
    try:
        url = httpx.URL(text)
        url.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise WebError(f"{text!r:.200} is no URL: {error}") from error
    if url.scheme not in ("http", "https"):
        raise WebError(f"{text!r:.200} is no http or https URL")
    if not url.host:
        raise WebError(f"{text!r:.200} names no host")
    if url.userinfo:
        raise WebError("a URL with a name or a password in it is not asked for; use headers")
    return url


def _target(response: httpx.Response, url: httpx.URL) -> httpx.URL | None:
    """Where an answer redirects to, if it does."""
    import httpx

    where = response.headers.get("location")
    if response.status_code not in _REDIRECTS or not where:
        return None
    try:
        joined = url.join(where).copy_with(fragment=None)
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise WebError(f"{url.host} redirects to what is no URL: {where!r:.200}") from error
    return _url(str(joined))


def _is_same_host(one: httpx.URL, other: httpx.URL) -> bool:
    """Whether two URLs lead to one server; a redirect to its TLS does."""
    if one.host != other.host:
        return False
    if one.scheme == "http" and other.scheme == "https":
        return one.port is None and other.port is None
    return one.scheme == other.scheme and one.port == other.port


def _legal(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that can be sent as they are.

    Raises:
        WebError: for others, whose values are not shown: one of them may be a secret.
    """
    for name, value in headers.items():
        if not name or not all(
            c.isascii() and (c.isalnum() or c in "!#$%&'*+-.^_`|~") for c in name
        ):
            raise WebError(f"{name!r:.100} is no name for a header")
        if name.lower() in _OWN:
            raise WebError(f"the header {name} is not for others to set")
        if not value.isascii() or not (value.isprintable() or not value) or value != value.strip():
            raise WebError(
                f"the header {name} has a line break, a blank at an end, or what is not ASCII"
            )
    return dict(headers)


@functools.cache
def _tls() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


def _why(error: Exception) -> str:
    import httpx

    if isinstance(error, httpx.ConnectTimeout):
        return f"it took no connection within {CONNECT_SECONDS:g} s"
    if isinstance(error, httpx.TimeoutException):
        return f"nothing came from it for {IDLE_SECONDS:g} s"
    said = str(error) or type(error).__name__
    return f"it can't be reached: {said}" if isinstance(error, httpx.ConnectError) else said
