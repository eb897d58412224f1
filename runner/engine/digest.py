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

    A list that is given again has grown, and is otherwise as it was: a request costs what is new in
    it, however long its history is. Any other list is compared with the one before.
    """

    def __init__(self) -> None:
        self._seen: list[Message] = []
        self._seen_in: Sequence[Message] | None = None
        self._hash = hashlib.sha256(b'{"messages":[')
        self._told: list[Message] = []
        self._told_in: Sequence[Message] | None = None

    def of(
        self, messages: Sequence[Message], rest: Mapping[str, Any], redactor: Redactor | None
    ) -> str:
        """The digest of a request with these messages; ``rest`` has the other fields."""
        known = len(self._seen)
        if messages is not self._seen_in and not _begins_with(messages, self._seen):
            self._seen, known = [], 0
            self._hash = hashlib.sha256(b'{"messages":[')
        self._seen_in = messages
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
        grew = messages is self._told_in or _begins_with(messages, before)
        self._told_in = messages
        if grew:
            new = messages[len(before) :]
            before.extend(new)
            return {"added": [m["id"] for m in new], "dropped": []}
        old, now = {m["id"] for m in before}, {m["id"] for m in messages}
        self._told = list(messages)
        return {
            "added": [m["id"] for m in messages if m["id"] not in old],
            "dropped": [m["id"] for m in before if m["id"] not in now],
        }


def _begins_with(messages: Sequence[Message], before: Sequence[Message]) -> bool:
    # Lists of the same objects are compared at C speed.
    return len(before) <= len(messages) and messages[: len(before)] == before
