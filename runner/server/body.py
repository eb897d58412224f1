"""What clients send: read up to a bound, as JSON of a known shape, or as a form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from runner import json_text
from runner.server.refusal import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_BODY = 4 << 20
"""Bytes of the body of a request."""
MAX_FORM = 16 << 10
"""Bytes of the form that logs in."""

_TAKEN = 8
"""How often as large a body may be and still be read to its end."""

_KINDS: dict[type, str] = {str: "a text", dict: "an object"}


async def read_object(request: Request) -> dict[str, Any]:
    """The body, which has to be one JSON object.

    Raises:
        Refusal: where it is not, or too large.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "not_json", "send JSON, with Content-Type: application/json")
    try:
        value = json_text.parse((await _read(request, MAX_BODY)).decode())
    except ValueError as error:
        raise Refusal(400, "invalid_json", f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refusal(422, "invalid_body", "the body has to be a JSON object")
    return value


async def read_form(request: Request) -> dict[str, str]:
    """The body of a page's form.

    Raises:
        Refusal: where it is too large.
    """
    text = (await _read(request, MAX_FORM)).decode("utf-8", "replace")
    return {name: values[0] for name, values in parse_qs(text, max_num_fields=10).items()}


def fields(value: dict[str, Any], known: dict[str, type], required: tuple[str, ...]) -> None:
    """Hold an object against the fields that it may have.

    Raises:
        Refusal: for one that is unknown, missing or of another type.
    """
    for name in required:
        if name not in value:
            raise Refusal(422, "invalid_body", f'"{name}" is missing')
    for name, given in value.items():
        if name not in known:
            listed = ", ".join(known)
            raise Refusal(422, "invalid_body", f'"{name:.80}" is unknown; known: {listed}')
        if not isinstance(given, known[name]):
            raise Refusal(422, "invalid_body", f'"{name}" has to be {_KINDS[known[name]]}')


def text_of(value: dict[str, Any], name: str) -> str:
    """A field that is a text with something in it.

    Raises:
        Refusal: where it is not.
    """
    fields(value, {name: str}, (name,))
    text: str = value[name]
    if not text.strip():
        raise Refusal(422, "invalid_body", f'"{name}" is empty')
    return text


async def _read(request: Request, most: int) -> bytes:
    """The body. Of one that is too large the rest is still taken, or the answer would be lost."""
    data, size = bytearray(), 0
    too_large = Refusal(413, "too_large", f"the body has more than {most:,} bytes")
    said = request.headers.get("content-length", "0")
    if said.isdecimal() and int(said[:20]) > _TAKEN * most:
        raise too_large
    async for piece in request.stream():
        size += len(piece)
        if size > _TAKEN * most:
            raise too_large
        if size <= most:
            data += piece
    if size > most:
        raise too_large
    return bytes(data)
