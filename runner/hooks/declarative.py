"""Hooks that a spec writes down as data. Each function makes what the loop calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from runner.json_text import line

Call = Mapping[str, Any]
"""``{tool_name, tool_call_id, arguments}``, after a call also ``result``."""
Decision = dict[str, Any] | None
Holds = Callable[[Mapping[str, Any]], bool]
"""A condition, over the names that it sees."""
Messages = list[dict[str, Any]]

CHARS_PER_TOKEN = 4
"""About how many characters a token has; models differ, and none says without being asked."""
IMAGE_TOKENS = 1500
"""About what an image costs, whose size in base64 says nothing of it."""


def trim(max_tokens: int) -> Callable[[Messages], Messages]:
    """Leave out the oldest messages of a context until about ``max_tokens`` are left.

    The newest always stays, the first prompt as long as it fits, and a call only together with its
    results.
    """

    def hook(messages: Messages) -> Messages:
        groups = _groups(messages)
        if not groups:
            return messages
        sizes = [sum(map(_tokens, group)) for group in groups]
        room = max_tokens - sizes[-1]
        keeps_first = len(groups) > 1 and _is_prompt(groups[0]) and sizes[0] <= room
        room -= sizes[0] if keeps_first else 0
        first = len(groups) - 1
        while first > int(keeps_first) and sizes[first - 1] <= room:
            first -= 1
            room -= sizes[first]
        kept = groups[first:]
        while not keeps_first and len(kept) > 1 and not _is_prompt(kept[0]):
            kept = kept[1:]
        kept = [groups[0], *kept] if keeps_first else kept
        return [message for group in kept for message in group]

    return hook


def _groups(messages: Messages) -> list[Messages]:
    """Messages that stay or go together: an answer and the results of its calls."""
    groups: list[Messages] = []
    for message in messages:
        if message["role"] == "tool_result" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def _is_prompt(group: Messages) -> bool:
    return bool(group[0]["role"] == "user")


def _tokens(message: Mapping[str, Any]) -> int:
    size = images = 0
    for block in message["content"]:
        if block["type"] == "image":
            images += 1
        else:
            size += len(block["text"] if "text" in block else line(block))
    return images * IMAGE_TOKENS - (-size // CHARS_PER_TOKEN)


def deny(tool: str, reason: str | None, holds: Holds | None) -> Callable[[Call], Decision]:
    """Block the calls of a tool, or of all whose names fit a pattern, where a condition holds."""

    def hook(call: Call) -> Decision:
        if not _meant(tool, holds, call):
            return None
        return {"block": True, "reason": reason or f"{call['tool_name']} is denied"}

    return hook


def allow(tool: str, holds: Holds | None) -> Callable[[Call], Decision]:
    """Let a call pass without asking the hooks after this one."""

    def hook(call: Call) -> Decision:
        return {"allow": True} if _meant(tool, holds, call) else None

    return hook


def set_arguments(
    tool: str, arguments: Mapping[str, Any], holds: Holds | None
) -> Callable[[Call], Decision]:
    """Lay arguments over those of a call."""

    def hook(call: Call) -> Decision:
        if not _meant(tool, holds, call):
            return None
        laid = {**call["arguments"], **arguments}
        return {"arguments": laid} if laid != call["arguments"] else None

    return hook


def _meant(tool: str, holds: Holds | None, call: Call) -> bool:
    if not fnmatchcase(call["tool_name"], tool):
        return False
    names = {
        "args": call["arguments"],
        "tool_name": call["tool_name"],
        "tool_call_id": call["tool_call_id"],
    }
    return holds is None or holds(names)


def redact(pattern: str, replacement: str) -> Callable[[Call], Decision]:
    """Replace what matches, in all texts of a result and of its details."""
    compiled = re.compile(pattern)

    def redacted(value: Any) -> Any:
        if isinstance(value, str):
            return compiled.sub(lambda _: replacement, value)
        if isinstance(value, Mapping):
            return {key: redacted(item) for key, item in value.items()}
        if isinstance(value, list):
            return [redacted(item) for item in value]
        return value

    def hook(call: Call) -> Decision:
        result = call["result"]
        content = [
            {**block, "text": redacted(block["text"])} if block["type"] == "text" else block
            for block in result["content"]
        ]
        details = redacted(result["details"])
        if content == result["content"] and details == result["details"]:
            return None
        return {"content": content, "details": details}

    return hook


def truncate(max_chars: int) -> Callable[[Call], Decision]:
    """Cut the text of a result, and say how much was left out."""

    def hook(call: Call) -> Decision:
        content: Sequence[Mapping[str, Any]] = call["result"]["content"]
        size = sum(len(block["text"]) for block in content if block["type"] == "text")
        if size <= max_chars:
            return None
        kept, room = [], max_chars
        for block in content:
            if block["type"] != "text":
                kept.append(block)
            elif room:
                kept.append({**block, "text": block["text"][:room]})
                room -= len(kept[-1]["text"])
        note = f"\n[… {size - max_chars} characters are left out]"
        return {"content": [*kept, {"type": "text", "text": note}]}

    return hook


def stop_when(holds: Holds) -> Callable[[Mapping[str, Any]], bool]:
    """End the run after a turn where a condition holds."""
    return lambda turn: holds({"turn": turn})
