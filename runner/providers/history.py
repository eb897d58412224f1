"""From a history to what a wire format can take, at the cost of the new messages only.

Servers refuse calls without results, results without calls, ids and names that they don't like,
and thinking that another model thought. Histories have all of these: after an abort, a change of
the model, or a hook that leaves messages out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from runner.engine.message import AssistantMessage, Block, Message, ToolCallBlock, text_block
from runner.providers.body import to_bytes

NO_RESULT = "There is no result: this call was not run to its end."
"""What a call says that has none."""

_BAD_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_BAD_IN_ID = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(slots=True, eq=False)
class CallResult:
    """What a call came to."""

    id: str
    """The call's, as the format allows it."""
    name: str
    content: list[Block]
    """Texts and images; empty where there was nothing to say."""
    is_error: bool


@dataclass(slots=True, eq=False)
class Entry:
    """A message of a user, or an answer together with the results of its calls.

    ``content`` is clean: no empty text; only the model's own thinking, signatures and provider
    blocks; each call with an id that is legal and used once, a legal name, and an object as its
    arguments. Entries without content don't come up.
    """

    role: Literal["user", "assistant"]
    content: list[Block]
    results: list[CallResult] = field(default_factory=list)
    """One a call, in the order of the calls."""


@dataclass(slots=True, frozen=True)
class Rules:
    """What a format allows."""

    provider: str
    """The provider's name: thinking that it and the same model made is kept."""
    model: str
    legal_id: re.Pattern[str]
    """What a call's id has to match as a whole; others are replaced by one of letters, digits,
    ``_`` and ``-``, which it has to allow."""
    longest_id: int = 40
    """The length of an id that is made up; at least 24."""
    blank_text: bool = True
    """Whether texts of nothing but white space may be sent."""


@dataclass(slots=True, eq=False)
class _Call:
    """A call that waits for its result."""

    entry: int
    position: int


class History:
    """What became of the messages of one conversation, kept from request to request."""

    def __init__(self, rules: Rules, encode: Callable[[Entry], Sequence[Any]]) -> None:
        """Make an empty one.

        Args:
            rules: What the format allows.
            encode: An entry's JSON values in the request's list of messages, in order; may be
                none. Called again for an answer whose result comes later.
        """
        self._rules = rules
        self._encode = encode
        self._clear()

    def _clear(self) -> None:
        self._seen: list[Message] = []
        self._ids: set[str] = set()
        self._open: dict[str, list[_Call]] = {}
        self._changed: set[int] = set()
        self._parts: list[bytes] = []
        self.entries: list[Entry] = []
        """What the messages came to."""

    def parts(self, messages: Sequence[Message]) -> list[bytes]:
        """The JSON of each entry: its values, joined by commas, without brackets.

        Entries that come to nothing are left out. Only what is new since the last time is
        converted, unless an earlier message has been changed or dropped.
        """
        messages = list(messages)
        known = len(self._seen)
        # Lists compare the same objects by identity first, which makes this quick.
        if messages[:known] != self._seen:
            self._clear()
            known = 0
        for message in messages[known:]:
            self._add(message)
        self._seen = messages
        for number in self._changed:
            values = self._encode(self.entries[number])
            self._parts[number] = b",".join(map(to_bytes, values))
        self._changed.clear()
        return [part for part in self._parts if part]

    def _add(self, message: Message) -> None:
        if message["role"] == "user":
            if content := self._clean(message["content"]):
                self._append(Entry("user", content))
        elif message["role"] == "tool_result":
            waiting = self._open.get(message["tool_call_id"])
            if not waiting:
                return
            call = waiting.pop(0)
            result = self.entries[call.entry].results[call.position]
            result.content = self._clean(message["content"])
            result.is_error = message["is_error"]
            self._changed.add(call.entry)
        elif message["role"] == "assistant" and message["stop_reason"] not in ("error", "aborted"):
            self._answer(message)

    def _append(self, entry: Entry) -> None:
        self._changed.add(len(self.entries))
        self.entries.append(entry)
        self._parts.append(b"")

    def _clean(self, content: Sequence[Block]) -> list[Block]:
        """The texts and images."""
        return [
            block
            for block in content
            if block["type"] == "image" or (block["type"] == "text" and self._says(block["text"]))
        ]

    def _says(self, text: str) -> bool:
        return bool(text) and (self._rules.blank_text or not text.isspace())

    def _answer(self, message: AssistantMessage) -> None:
        own = (message["provider"], message["model"]) == (self._rules.provider, self._rules.model)
        entry = Entry("assistant", [])
        for block in message["content"]:
            if block["type"] == "tool_call":
                entry.content.append(self._call(block, own, entry.results))
            elif block["type"] == "text":
                if self._says(block["text"]):
                    entry.content.append(block if own else text_block(block["text"]))
            elif block["type"] == "image" or (own and self._own(block)):
                entry.content.append(block)
        if entry.content:
            self._append(entry)

    def _own(self, block: Block) -> bool:
        return block["type"] != "provider" or block["provider"] == self._rules.provider

    def _call(self, block: ToolCallBlock, own: bool, results: list[CallResult]) -> Block:
        """A call as it can be sent; its result is made up until the real one comes."""
        call = _Call(len(self.entries), len(results))
        waiting = self._open.setdefault(block["id"], [])
        # A later answer may use an id again: what comes for it is its own.
        waiting[:] = [other for other in waiting if other.entry == call.entry]
        waiting.append(call)
        legal = self._legal_id(block["id"])
        name = legal_name(block["name"])
        results.append(CallResult(legal, name, [text_block(NO_RESULT)], is_error=True))
        arguments = block["arguments"]
        if not isinstance(arguments, dict):
            # Servers refuse what isn't an object; the model is to see what it wrote all the same.
            arguments = {"unparsed_arguments": arguments}
        sent: dict[str, Any] = {**block, "id": legal, "name": name, "arguments": arguments}
        if not own:
            sent.pop("signature", None)
        return cast("ToolCallBlock", sent)

    def _legal_id(self, given: str) -> str:
        """The id itself where it is legal and new, else one made from it, always the same."""
        legal = given if self._rules.legal_id.fullmatch(given) else ""
        number = 0
        while not legal or legal in self._ids:
            digest = hashlib.sha256(f"{number} {given}".encode("utf-8", "replace")).hexdigest()[:16]
            start = _BAD_IN_ID.sub("_", given)[: self._rules.longest_id - 17]
            legal = f"{start or 'call'}_{digest}"
            number += 1
        self._ids.add(legal)
        return legal


def legal_name(name: str) -> str:
    """A tool's name as every format allows it, for a name that a model may have invented."""
    return _BAD_IN_NAME.sub("_", name)[:64] or "unnamed"
