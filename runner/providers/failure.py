"""What a server's words and numbers mean: from an error of any shape to a `ProviderError`.

Sources: the error pages of OpenAI, Anthropic and Google's APIs; RFC 9110 for Retry-After; the
bodies that vLLM, llama.cpp, Ollama, OpenRouter, Groq and FastAPI servers send.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from runner.error import ErrorKind, ProviderError

MOST_CHARACTERS = 300
"""The longest message of an error."""
SHORTEST_KEY = 6
"""A shorter key is a placeholder, for a server that asks for none."""

_BY_STATUS: dict[int, ErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server",
    410: "not_found",
    413: "context_overflow",
    425: "server",
    429: "rate_limit",
    498: "overloaded",
    503: "overloaded",
    529: "overloaded",
}
# The `type`, `code` and `status` values of error objects, in lower case.
_BY_NAME: dict[str, ErrorKind] = {
    "api_error": "server",
    "authentication_error": "auth",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "bad_request": "bad_request",
    "content_filter": "refused",
    "content_policy_violation": "refused",
    "context_length_exceeded": "context_overflow",
    "deadline_exceeded": "timeout",
    "engine_overloaded": "overloaded",
    "engine_overloaded_error": "overloaded",
    "exceed_context_size_error": "context_overflow",
    "failed_precondition": "bad_request",
    "insufficient_balance": "quota",
    "insufficient_quota": "quota",
    "internal": "server",
    "internal_error": "server",
    "internal_server_error": "server",
    "invalid_api_key": "auth",
    "invalid_argument": "bad_request",
    "invalid_prompt": "refused",
    "invalid_request_error": "bad_request",
    "model_not_found": "not_found",
    "moderation_blocked": "refused",
    "not_found": "not_found",
    "not_found_error": "not_found",
    "overloaded": "overloaded",
    "overloaded_error": "overloaded",
    "permission_denied": "auth",
    "permission_error": "auth",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "request_too_large": "context_overflow",
    "resource_exhausted": "rate_limit",
    "responsibleaipolicyviolation": "refused",
    "server_error": "server",
    "server_overloaded": "overloaded",
    "service_unavailable": "overloaded",
    "slow_down": "overloaded",
    "timeout": "timeout",
    "timeout_error": "timeout",
    "too_many_requests": "rate_limit",
    "unauthenticated": "auth",
    "unavailable": "overloaded",
    "unavailable_error": "overloaded",
}
_OVERFLOW = re.compile(
    r"context.?(length|window|size)|maximum (context|prompt) length|(prompt|input|request).{0,40}"
    r"too (long|large|many tokens)|too many (input |total )?tokens|reduce the length of the"
    r"|input token count.{0,40}exceeds|exceed\w* .{0,20}(token limit|max_model_len|context)",
    re.IGNORECASE | re.DOTALL,
)
_QUOTA = re.compile(
    r"insufficient.{0,10}(quota|balance|credit|funds)|billing|credit balance|out of credits"
    r"|exceeded your (current |monthly )?quota|spend(ing)? limit|payment required",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"content.?(filter|policy|management policy)|moderation|was flagged|safety (system|filter)"
    r"|usage polic(y|ies)|responsible.?ai",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(r"api.?key.{0,20}(not valid|invalid|expired)|invalid api.?key", re.IGNORECASE)
_PAGE = re.compile(r"<(!doctype|html|head|body|title|h\d|p|div|center|pre)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


def failure(
    error: Any,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    secret: str | None = None,
    default: ErrorKind = "server",
) -> ProviderError:
    """The error that an error object of a stream, or the body of an error answer, stands for.

    Args:
        error: What the server sent: an object, a list of them, a text, or nothing.
        status: The answer's HTTP status where it was one of an error. Without it, a number in
            the error itself may stand for one.
        headers: Those of the answer; Retry-After is read from them.
        secret: The API key, which is taken out of the message.
        default: The kind of an error that says nothing about itself.
    """
    found = _flat(error)
    status = status or _status_in(found)
    text = words(error) or (f"HTTP status {status}" if status else "the server reported an error")
    wait = _wait(headers or {}, found)
    kind = _kind(status, _names(found), text, wait, default)
    retryable = True if status == 409 else None
    if headers and (told := headers.get("x-should-retry")) in ("true", "false"):
        retryable = told == "true"
    return ProviderError(
        short(text, secret), kind, status=status, retry_after=wait, retryable=retryable
    )


def failure_of_answer(
    status: int, headers: Mapping[str, str], body: bytes, secret: str | None
) -> ProviderError:
    """The error that an HTTP answer with a status of 400 or more stands for."""
    text = body.decode("utf-8", "replace")
    error: Any = text
    with contextlib.suppress(ValueError, RecursionError):
        error = json.loads(text)
    return failure(error, status=status, headers=headers, secret=secret, default="bad_request")


def short(text: str, secret: str | None = None) -> str:
    """A message as it may be shown: one line, no HTML, no key, at most 300 characters."""
    if secret and len(secret) >= SHORTEST_KEY:
        text = text.replace(secret, "[key]")
    if _PAGE.search(text):
        title = _TITLE.search(text)
        text = (title and _TAG.sub(" ", title[1])) or _TAG.sub(" ", text)
        text = f"{text.strip() or 'no text'} (a web page)"
    text = " ".join(text.split())
    if len(text) > MOST_CHARACTERS:
        text = text[: MOST_CHARACTERS - 1] + "…"
    return text


def words(error: Any) -> str:
    """What an error says for a person, wherever it says it; ``""`` where it says nothing."""
    if isinstance(error, str):
        return error.strip()
    if isinstance(error, list):
        return "; ".join(filter(None, map(words, error)))
    if not isinstance(error, dict):
        return ""
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and (raw := words(_decoded(metadata.get("raw")))):
        return raw  # a gateway's own message is only "Provider returned error"
    for name in ("error", "message", "detail", "msg", "errors", "error_description", "response"):
        if text := words(error.get(name)):
            return text
    return next((v for v in map(error.get, ("code", "type")) if isinstance(v, str)), "")


def _decoded(text: Any) -> Any:
    if isinstance(text, str):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def _flat(error: Any, depth: int = 6) -> list[Mapping[str, Any]]:
    """The objects that an error is made of, the outer ones first."""
    if depth and isinstance(error, list):
        return [found for item in error[:8] for found in _flat(item, depth - 1)]
    if not depth or not isinstance(error, dict):
        return []
    inner = (error.get(name) for name in ("error", "details", "response"))
    return [error, *(found for item in inner for found in _flat(item, depth - 1))]


def _names(found: list[Mapping[str, Any]]) -> Iterator[str]:
    for item in found:
        for name in ("code", "status", "type", "reason"):
            if isinstance(value := item.get(name), str):
                yield value.lower()


def _status_in(found: list[Mapping[str, Any]]) -> int | None:
    for item in found:
        for name in ("code", "status", "status_code"):
            value = item.get(name)
            if isinstance(value, str) and value.isascii() and value.isdigit():
                value = int(value[:4])
            if type(value) is int and 400 <= value <= 599:
                return value
    return None


def _kind(
    status: int | None, names: Iterator[str], text: str, wait: float | None, default: ErrorKind
) -> ErrorKind:
    """The kind: by what the error calls itself, then by its status, then by its words.

    A name is more exact than a status; words only divide what both leave open.
    """
    named = [_BY_NAME[name] for name in names if name in _BY_NAME]
    for exact in ("context_overflow", "refused", "quota"):
        if exact in named:
            return exact
    kind = _of_status(status) or (named[0] if named else default)
    if kind == "bad_request" or (status is None and kind == default):
        if _OVERFLOW.search(text):
            return "context_overflow"
        if _BAD_KEY.search(text):
            return "auth"
        if kind == "bad_request" and named and named[0] not in ("bad_request", "server"):
            return named[0]
    if kind in ("bad_request", "auth") and _REFUSED.search(text):
        return "refused"
    # A server that says how long to wait means a rate, whatever it calls it.
    if kind in ("rate_limit", "bad_request") and wait is None and _QUOTA.search(text):
        return "quota"
    return kind


def _of_status(status: int | None) -> ErrorKind | None:
    if status is None:
        return None
    if known := _BY_STATUS.get(status):
        return known
    return "server" if status >= 500 else "bad_request"


def _wait(headers: Mapping[str, str], found: list[Mapping[str, Any]]) -> float | None:
    """Seconds that the server asks to wait, in whichever form it says so."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    if told := headers.get("retry-after"):
        seconds = _number(told)
        return _until(told) if seconds is None else seconds
    for item in found:
        delay = item.get("retryDelay")
        if isinstance(delay, str) and (match := _SECONDS.fullmatch(delay)):
            return float(match[1])
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(date: str) -> float | None:
    """Seconds until an HTTP date; 0 where it has passed."""
    import email.utils

    try:
        then = email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, then - time.time())
