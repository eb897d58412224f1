"""JSON text as pi-run writes it: for a log's lines, and in canonical form for comparing.

Lines: compact, UTF-8, no NaN, and none of the characters that some readers take for the end of a
line stands raw in them. A lone surrogate, which UTF-8 can't carry, stands as a JSON escape.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_sorted = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
).encode
# The C0 controls are escaped by json itself; these are the other line breaks of Unicode, DEL, and
# lone surrogates.
_ODD = re.compile("[\x7f\x85\u2028\u2029\ud800-\udfff]")


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def line(value: Any) -> str:
    """A value as one line of JSON, without its line break.

    Raises:
        ValueError: for NaN and the infinities.
        TypeError: for what is not JSON.
    """
    text = _encode(value)
    # Most texts are ASCII, for which this answers at once.
    return text if text.isascii() and "\x7f" not in text else _ODD.sub(_escape, text)


def canonical(value: Any) -> bytes:
    """The one byte string that all equal values have: keys sorted, as `line` otherwise."""
    text = _encode_sorted(value)
    return (text if text.isascii() else _ODD.sub(_escape, text)).encode()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text:.40} is too large")
    return number


_decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def parse(text: str) -> Any:
    """A value from its JSON text, strictly: no NaN, no Infinity, and no number that reads as it.

    Raises:
        ValueError: where it is not JSON, or nested too deeply to be read.
    """
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
