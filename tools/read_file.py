"""The built-in tool ``read_file``."""

from __future__ import annotations

import base64

from runner import ToolContext, ToolResult, tool

MAX_BYTES = 20_000_000
"""Of a file."""
MAX_CHARS = 48_000
"""Of one result: less than all results are cut at, so that its own note stays."""
IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}
"""The first bytes of images that models can look at."""


@tool(idempotent=True, read_only=True)
def read_file(
    path: str, context: ToolContext, offset: int = 1, limit: int | None = None
) -> ToolResult:
    """Read a text file, or look at an image (PNG, JPEG, GIF, WebP).

    A long text is cut in the middle; read it in pieces by offset and limit.

    Args:
        path: The file, relative to the workspace.
        context: The call.
        offset: The first line to read, counted from 1.
        limit: How many lines to read; all if left out.
    """
    try:
        data = context.files.read(path, MAX_BYTES)
        if kind := image_type(data):
            encoded = base64.b64encode(data).decode("ascii")
            return ToolResult([{"type": "image", "mime_type": kind, "data": encoded}])
        return ToolResult(shortened(chosen(text_of(data, path), path, offset, limit)))
    except ValueError as error:
        return ToolResult(str(error), is_error=True)


def image_type(data: bytes) -> str | None:
    """The MIME type of an image."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in IMAGES.items() if data.startswith(start)), None)


def text_of(data: bytes, path: str) -> str:
    """A file's text."""
    if b"\0" in data[:8192]:
        raise ValueError(f"{path} is neither text nor an image: {len(data)} bytes")
    return data.decode("utf-8-sig", "replace")


def chosen(text: str, path: str, offset: int, limit: int | None) -> str:
    """The lines that were asked for, with a note on what follows."""
    if offset < 1 or (limit is not None and limit < 1):
        raise ValueError("offset and limit are counted from 1")
    if offset == 1 and limit is None:
        return text
    lines = text.splitlines(keepends=True)
    if offset > max(len(lines), 1):
        raise ValueError(f"{path} has {len(lines)} lines, so none at offset {offset}")
    end = len(lines) if limit is None else min(offset - 1 + limit, len(lines))
    said = "".join(lines[offset - 1 : end])
    if end < len(lines):
        said += f"[{len(lines) - end} more lines; go on with offset {end + 1}]"
    return said


def shortened(text: str) -> str:
    """A text with its middle left out where it is too long."""
    if len(text) <= MAX_CHARS:
        return text
    head, tail = text[: MAX_CHARS // 2], text[-MAX_CHARS // 2 :]
    first = head.count("\n") + 1
    left = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left} characters are left out from line {first} on …]\n{tail}"
