"""Digests of what is sent to a model, kept up to date message by message."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from runner.engine.contract import Redactor, ToolSchema
from runner.engine.event import ContextChange
from runner.engine.message import Message
from runner.json_text import canonical

_SENT = ("content", "is_error", "role", "tool_call_id", "tool_name")


def digest_of(value: Any) -> str:
    """SHA-256 of a value's canonical JSON, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def tools_as_json(tools: Sequence[ToolSchema]) -> list[dict[str, Any]]:
    """Tools as they go into digests, in the order in which the model sees them."""
    return [
        {"description": t.description, "name": t.name, "parameters": t.parameters} for t in tools
    ]


class ContextDigest:
    """The digest of each request's context.

    What is hashed is the canonical JSON of ``{messages, model, parameters, provider, system,
    tools}``, with ``messages`` first, so that a history that only grows is hashed but once.
    """

    def __init__(self) -> None:
        self._seen: list[Message] = []
        self._hash = hashlib.sha256(b'{"messages":[')
        self._told: list[Message] = []

    def of(
        self, messages: Sequence[Message], rest: Mapping[str, Any], redactor: Redactor | None
    ) -> str:
        """The digest of a request with these messages; ``rest`` has the other fields."""
        known = len(self._seen)
        # Lists of the same objects compare at C speed.
        if known > len(messages) or messages[:known] != self._seen:
            self._seen, known = [], 0
            self._hash = hashlib.sha256(b'{"messages":[')
        for message in messages[known:]:
            sent: Any = {key: message[key] for key in _SENT if key in message}  # type: ignore[literal-required]
            if redactor is not None:
                sent = redactor.value(sent)
            text = canonical(sent)
            if self._seen:
                self._hash.update(b",")
            self._hash.update(text)
            self._seen.append(message)
        whole = self._hash.copy()
        whole.update(b"]," + canonical(rest)[1:])
        return whole.hexdigest()

    def change(self, messages: Sequence[Message]) -> ContextChange:
        """How messages differ from those of the request before."""
        before = self._told
        known = len(before)
        if known <= len(messages) and messages[:known] == before:
            new = messages[known:]
            before.extend(new)
            return {"added": [m["id"] for m in new], "dropped": []}
        old, now = {m["id"] for m in before}, {m["id"] for m in messages}
        self._told = list(messages)
        return {
            "added": [m["id"] for m in messages if m["id"] not in old],
            "dropped": [m["id"] for m in before if m["id"] not in now],
        }
