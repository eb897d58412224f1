"""Who may come in: by the token, from a page of the server itself, under a name that it has."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Collection, Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

_LOCAL = frozenset(("127.0.0.1", "::1", "localhost"))


class Access:
    """Holds requests against the token and the names that the server goes by.

    Args:
        token: What a client has to know.
        host: The address that the server listens on.
        port: Its port.
        names: More names by which it may be called, such as that of a proxy in front of it.
    """

    def __init__(self, token: str, host: str, port: int, names: Collection[str] = ()) -> None:
        self._token = token.encode()
        # A cookie goes to every port of its host. It tells none of them the token.
        self._pass = hmac.new(self._token, b"pi-run cookie", hashlib.sha256).hexdigest()
        self.cookie = f"pi_run_{port}"
        """The cookie's name: another server on this machine has another."""
        self._names = _LOCAL | {host.lower(), *(name.lower() for name in names)}
        self._any_address = not is_local(host)

    def knows(self, token: str) -> bool:
        """Whether this is the token; tells nothing by the time that it takes."""
        return hmac.compare_digest(token.encode(errors="surrogateescape"), self._token)

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Whether a request comes with the token, or with the cookie of who logged in."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.knows(token.strip()):
            return True
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._pass.encode())

    def set_cookie(self, *, secure: bool) -> str:
        """The header by which a browser that logged in keeps the cookie."""
        also = "; Secure" if secure else ""
        return f"{self.cookie}={self._pass}; Path=/; HttpOnly; SameSite=Strict{also}"

    def clear_cookie(self) -> str:
        """The header by which it forgets it."""
        return f"{self.cookie}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"

    def is_own_name(self, host: str) -> bool:
        """Whether a ``Host`` is the server's: by DNS a page of another name may lead here."""
        name = _name_of(host)
        if name is None:
            return False
        return name in self._names or (self._any_address and _is_address(name))

    def is_own_page(self, headers: Mapping[str, str]) -> bool:
        """Whether what changes something is asked for by a page of the server's own, or by none."""
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site")
        if origin is None:
            return site in (None, "none", "same-origin")
        if origin == "null":
            # So a browser calls a page that sends no referrer, when a form of it is sent.
            return site == "same-origin"
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https"):
            return False
        # Under another port of the same host stands another server, which is not trusted.
        return parts.netloc.lower() == headers.get("host", "").lower()


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _name_of(host: str) -> str | None:
    """A ``Host`` without its port; None where it is none."""
    if not host or not host.isascii():
        return None
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
