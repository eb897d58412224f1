"""Where a request goes, and with which right."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from runner.error import ProviderError, UsageError
from runner.providers.settings import ModelSettings


def endpoint(base_url: str, path: str) -> str:
    """A server's address with a format's own path, which it may have already.

    Args:
        base_url: As a person wrote it; a query (``?api-version=…``) stays.
        path: Begins with a slash.

    Raises:
        UsageError: for what is no http or https URL.
    """
    try:
        url = urlsplit(base_url.strip())
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(
            f'base_url "{base_url}" is no address of a server; it begins with http:// or https://,'
            " as in http://127.0.0.1:8080/v1"
        )
    base = url.path.rstrip("/")
    # A base that ends as the path begins (…/v1 and /v1/messages) is not made longer by that.
    parts = path.split("/")
    common = next(
        (start for n in range(len(parts), 1, -1) if base.endswith(start := "/".join(parts[:n]))), ""
    )
    return urlunsplit(url._replace(path=base.removesuffix(common) + path, fragment=""))


def need_key(settings: ModelSettings, key: str | None) -> str | None:
    """The key, or none for a server that a spec names itself.

    Raises:
        ProviderError: where there is no key for a provider's public server.
    """
    if key or settings.base_url:
        return key or None
    raise ProviderError(
        f"there is no API key for {settings.provider}; set model.api_key, or model.base_url for a"
        " server that needs none",
        "auth",
    )
