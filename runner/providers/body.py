"""Values as the bytes of a request.

UTF-8 can't carry half of a surrogate pair, which models and tools do send: two halves that meet
become their character, and a lone one becomes U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runner.error import ProviderError

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def whole(text: str) -> str:
    """A text with its surrogates paired, and U+FFFD for those that have no other half."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def to_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8.

    Raises:
        ProviderError: where it is not JSON (NaN, or an object of Python's own).
    """
    try:
        text = _encode(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise ProviderError(
            f"the request can't be written as JSON: {error}", "bad_request"
        ) from None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return whole(text).encode()


def spliced(fields: Mapping[str, Any], parts: Mapping[str, bytes]) -> bytes:
    """An object as JSON: fields, then parts, which are arrays and JSON already.

    A field with the name of a part, which a spec's options may bring, adds its items to it (a tool
    that the server runs itself), or stands in its place where it is no list.
    """
    rest = dict(fields)
    added = {
        name: _longer(part, rest.pop(name)) if name in rest else part
        for name, part in parts.items()
    }
    pieces = [to_bytes(rest)[:-1]]
    for name, part in added.items():
        comma = b"," if rest or len(pieces) > 1 else b""
        pieces += (comma, to_bytes(name), b":", part)
    return b"".join((*pieces, b"}"))


def _longer(part: bytes, items: Any) -> bytes:
    if not isinstance(items, list):
        return to_bytes(items)
    more = to_bytes(items)[1:]
    return part[:-1] + (b"," if len(part) > 2 and len(more) > 1 else b"") + more


def merged(fields: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """A body's fields with a spec's options: those win, and maps in both are one map."""
    result = dict(fields)
    for name, value in options.items():
        known = result.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            value = {**known, **value}
        result[name] = value
    return result
