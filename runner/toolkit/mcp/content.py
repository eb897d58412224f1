"""What a server gives back, as blocks for the model, held against what providers take."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

from runner.engine.message import Block, text_block
from runner.json_text import line

MAX_TEXT = 1 << 20
"""Characters of text of one result."""
_MAX_BLOCKS = 1000


def blocks_of(content: Iterable[Any]) -> list[Block]:
    """Content of the SDK as blocks: text and images as they are, a note for what no model reads."""
    return _bounded(map(_block, content))


def resource_blocks(contents: Iterable[Any]) -> list[Block]:
    """What a resource holds, as blocks."""
    return _bounded(map(_resource, contents))


def _bounded(given: Iterable[Block]) -> list[Block]:
    blocks: list[Block] = []
    room = MAX_TEXT
    for block in given:
        if len(blocks) >= _MAX_BLOCKS:
            blocks.append(text_block("[the rest is left out: it has too many parts]"))
            break
        if block["type"] == "text":
            text = block["text"]
            if len(text) > room:
                text = f"{text[:room]}\n[… {len(text) - room} characters are left out here]"
                block = text_block(text)
            room = max(room - len(text), 0)
        blocks.append(block)
    return blocks


def structured_text(value: Any) -> str:
    """A structured result as text, for a server that gives no other."""
    try:
        return line(value)
    except (ValueError, RecursionError):
        return "[the structured result is no JSON]"


def _block(item: Any) -> Block:
    kind = getattr(item, "type", None)
    if kind == "text":
        return text_block(item.text)
    if kind == "image":
        return _image(item.mime_type, item.data)
    if kind == "audio":
        return text_block(f"[audio, {item.mime_type}: not shown]")
    if kind == "resource_link":
        return text_block(f"[resource {item.name}: {item.uri}]")
    if kind == "resource":
        return _resource(item.resource)
    return text_block(f"[{kind}: not shown]")


def _resource(resource: Any) -> Block:
    """The content of a resource: its text, an image, or a note."""
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return text_block(text)
    mime_type = resource.mime_type or "application/octet-stream"
    if mime_type.startswith("image/"):
        return _image(mime_type, resource.blob)
    return text_block(f"[{resource.uri}, {mime_type}: not shown]")


def _image(mime_type: str, data: str) -> Block:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return text_block(f"[an image, {mime_type:.100}, that is no base64]")
    if not mime_type.startswith("image/"):
        return text_block(f"[an image of the type {mime_type:.100}: not shown]")
    return {"type": "image", "mime_type": mime_type, "data": data}
