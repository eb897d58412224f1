"""What was said, as the conventions have it: messages of parts, as JSON text.

Source: gen-ai-input-messages.json and gen-ai-output-messages.json beside the conventions. A span
has a text of them, and not a structure, since an attribute of a span can be none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runner.engine.digest import digest_of
from runner.telemetry import names
from runner.telemetry.asked import Asked
from runner.telemetry.span import as_json

_ROLES = {"tool_result": "tool"}


class Conversation:
    """The messages of one agent, of which each request names what was sent.

    Each message is turned into text once, however often it is sent.
    """

    def __init__(self, asked: Asked, *, main: bool) -> None:
        self._asked = asked
        self._texts: dict[str, str] = {}
        self._sent: dict[str, None] = {}
        for message in asked.messages() if main else ():
            self.add(message)

    def add(self, message: Mapping[str, Any]) -> None:
        """Keep a message that is whole."""
        key = message.get("id")
        if isinstance(key, str):
            self._texts[key] = as_json(_message(message))

    def request(self, event: Mapping[str, Any]) -> dict[str, str]:
        """The attributes of what a request sent. A message that a hook made up is in no log."""
        change = event.get("context_change") or {}
        for dropped in change.get("dropped", ()):
            self._sent.pop(dropped, None)
        self._sent.update(dict.fromkeys(change.get("added", ())))
        texts = [self._texts[key] for key in self._sent if key in self._texts]
        found = {names.INPUT_MESSAGES: f"[{','.join(texts)}]"}
        for prompt in self._asked.system_prompts():
            if prompt and digest_of(prompt) == event.get("system_digest"):
                found[names.SYSTEM_INSTRUCTIONS] = as_json([{"type": "text", "content": prompt}])
                break
        return found


def answer(message: Mapping[str, Any]) -> str:
    """An answer as a list of the one message that it is."""
    reason = message.get("stop_reason", "stop")
    finish = names.FINISHES.get(reason, reason)
    return as_json([{**_message(message), "finish_reason": finish}])


def arguments(value: Any) -> str:
    """The arguments of a call."""
    return value if isinstance(value, str) else as_json(value)


def result(value: Any) -> str:
    """The result of a call: its parts."""
    blocks = value.get("content") if isinstance(value, Mapping) else None
    return as_json(list(_parts(blocks)))


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    role = str(message.get("role", "user"))
    parts = list(_parts(message.get("content")))
    if role == "tool_result":
        texts = [part["content"] for part in parts if part["type"] == "text"]
        whole = "".join(texts) if len(texts) == len(parts) else parts
        call = message.get("tool_call_id")
        parts = [{"type": "tool_call_response", "id": call, "response": whole}]
    return {"role": _ROLES.get(role, role), "parts": parts}


def _parts(blocks: Any) -> Iterator[dict[str, Any]]:
    for block in blocks if isinstance(blocks, list) else ():
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "text":
            yield {"type": "text", "content": block.get("text", "")}
        elif kind == "thinking":
            yield {"type": "reasoning", "content": block.get("text", "")}
        elif kind == "tool_call":
            call = {key: block.get(key) for key in ("id", "name", "arguments")}
            yield {"type": "tool_call", **call}
        elif kind == "image":
            # Its bytes would be most of what is sent.
            size = len(block.get("data", "")) * 3 // 4
            yield {"type": "image", "mime_type": block.get("mime_type"), "bytes": size}
        elif kind is not None:
            yield {"type": str(kind)}
