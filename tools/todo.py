"""The built-in tool ``todo``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from runner import ToolContext, ToolResult, tool

SIGNS = {"open": "[ ]", "in_progress": "[>]", "done": "[x]"}


@dataclass
class Item:
    """Something to do."""

    text: str
    """What is to be done."""
    status: Literal["open", "in_progress", "done"] = "open"
    """How far it is."""


@tool(idempotent=True, read_only=True, execution="sequential")
def todo(context: ToolContext, items: list[Item] | None = None) -> ToolResult:
    """Keep a list of what is to be done. Gives the whole list.

    Args:
        context: The call.
        items: The list as it is now, all of it; left out to read it.
    """
    kept: list[dict[str, Any]] = (context.earlier or {}).get("items", [])
    if items is not None:
        kept = [{"text": item.text, "status": item.status} for item in items]
    lines = [f"{SIGNS[item['status']]} {item['text']}" for item in kept]
    return ToolResult("\n".join(lines) or "The list is empty.", {"items": kept})
