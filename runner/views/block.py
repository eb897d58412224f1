"""Messages and results as indented lines of text, whole, with their control codes shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from runner.views.escape import one_line, visible

SHOWN = 4000
"""Characters of a call's arguments or result that are shown unless all are asked for."""


def indented(text: str, indent: str = "    ", limit: int | None = None) -> Iterator[str]:
    """The lines of a text.

    Args:
        text: What a person, a model or a tool said.
        indent: What each line begins with.
        limit: How many characters are shown; what is left out is counted. None: all.
    """
    cut = text if limit is None else text[:limit]
    for line in cut.split("\n"):
        yield indent + visible(line)
    if len(cut) < len(text):
        yield f"{indent}… {len(text) - len(cut):,} more characters; --verbose shows them"


def compact(value: Any) -> str:
    """Arguments as JSON on one line, or the raw text where they are none."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(text.replace("\n", "␊"))


def content(blocks: Any, indent: str = "    ", limit: int | None = None) -> Iterator[str]:
    """All of a message's or a result's content but its tool calls.

    Args:
        blocks: As they stand in the log. Of a role that is not known they can be anything; what is
            no block is left out, and kinds that are not known are named.
        indent: What each line begins with.
        limit: How many characters of each text are shown. None: all.
    """
    for block in _blocks(blocks):
        kind, text = block["type"], block.get("text")
        if kind == "thinking" and block.get("redacted"):
            yield f"{indent}thinking: (not shown by the provider)"
        elif kind in ("text", "thinking") and isinstance(text, str):
            yield from indented(text if kind == "text" else f"thinking: {text}", indent, limit)
        elif kind == "image":
            size = len(str(block.get("data", ""))) * 3 // 4
            yield f"{indent}({one_line(str(block.get('mime_type')))}, {size:,} bytes)"
        elif kind != "tool_call":
            yield f"{indent}({one_line(kind)})"


def calls(blocks: Any, indent: str = "    ") -> Iterator[str]:
    """The tool calls of an answer, a line each."""
    for block in _blocks(blocks):
        if block["type"] == "tool_call":
            call = f"{one_line(str(block.get('name')))} {compact(block.get('arguments'))}"
            yield f"{indent}calls {call} ({one_line(str(block.get('id')))})"


def _blocks(blocks: Any) -> Iterator[Mapping[str, Any]]:
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, Mapping) and isinstance(block.get("type"), str):
            yield block
