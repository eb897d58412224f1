"""Reads the answer of a server that speaks Messages, and of those that nearly do.

Source: the Claude API reference, "Streaming Messages" and "Handling stop reasons"; what gateways,
Kimi, MiniMax and llama.cpp do otherwise. Kinds of events, blocks and deltas that are not known are
no fault: the format's versioning rule says that new ones may come.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from runner.engine.contract import (
    BlockEnd,
    OpaqueBlock,
    Stop,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from runner.error import ProviderError
from runner.providers.blocks import Blocks, Call, as_count, as_list, as_object, as_text, loads
from runner.providers.failure import failure, short

_REASONS: dict[str, Literal["stop", "length"]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_COUNTS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}
_NO_BLOCKS = frozenset(("text", "thinking", "redacted_thinking", "tool_use"))


class MessagesAnswer:
    """One answer, from the stream's events to ours."""

    def __init__(self, secret: str | None = None) -> None:
        self.done = False
        """Whether the stream said that nothing follows."""
        self.finish = ""
        """The stop reason, once there is one."""
        self._secret = secret
        self._blocks = Blocks()
        self._open: dict[int | None, _Block] = {}
        self._calls = 0
        self._usage: dict[str, int] = {}
        self._why = ""  # what the server says of a refusal

    def read(self, name: str, data: str) -> list[StreamEvent]:
        """What one event of the stream says.

        Raises:
            ProviderError: where it is an error, or no JSON.
        """
        event = loads(data)
        if type(event) is not dict:
            return self._odd(name, data, event)
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(event)
        if event.get("error") or kind == "error" or name == "error":
            raise failure(event, secret=self._secret)
        match kind:
            case "content_block_start":
                return self._start(_key(event), as_object(event.get("content_block")))
            case "content_block_stop":
                return self._stop(_key(event))
            case "message_start":
                return self._count(as_object(event.get("message")).get("usage"))
            case "message_delta":
                return self._message_delta(event)
            case "message_stop":
                self.done = True
            case "message":
                return self._whole(event)
            case None:
                # No event of the format is without a type; what servers send so are errors.
                raise failure(event, secret=self._secret, default="protocol")
        return []

    def end(self) -> Iterator[StreamEvent]:
        """The last events, when the stream is over.

        Raises:
            ProviderError: where the answer is not whole, or none.
        """
        for key in list(self._open):
            yield from self._stop(key)
        if self.finish == "refusal":
            why = f": {self._why}" if self._why else ""
            raise ProviderError(short(f"the model refused to answer{why}", self._secret), "refused")
        if not self.finish and not (self.done and self._blocks.count):
            raise ProviderError(
                "the stream ended before the answer was whole: no stop reason came", "network"
            )
        if self.finish == "pause_turn":
            yield Stop("stop", paused=True)
        else:
            yield Stop(_REASONS.get(self.finish) or ("tool_use" if self._calls else "stop"))

    # --- the message ------------------------------------------------------------------------------

    def _odd(self, name: str, data: str, event: Any) -> list[StreamEvent]:
        """An event that is no object: an error, an end mark of another format, or nothing."""
        text = data.strip()
        if not text or text.upper() == "[DONE]":
            return []
        if name == "error" or isinstance(event, list):
            raise failure(event or text, secret=self._secret, default="protocol")
        raise ProviderError(
            short(f"the stream has an event that is not JSON: {text}", self._secret), "protocol"
        )

    def _message_delta(self, event: Mapping[str, Any]) -> list[StreamEvent]:
        delta = as_object(event.get("delta"))
        self.finish = as_text(delta.get("stop_reason")) or self.finish
        details = as_object(delta.get("stop_details") or event.get("stop_details"))
        self._why = as_text(details.get("explanation")) or as_text(details.get("category"))
        return self._count(event.get("usage"))

    def _whole(self, message: Mapping[str, Any]) -> list[StreamEvent]:
        """An answer that wasn't streamed."""
        events: list[StreamEvent] = []
        for index, block in enumerate(as_list(message.get("content"))):
            events += self._start(index, as_object(block))
            events += self._stop(index)
        self.done = True
        return events + self._message_delta({"delta": message, "usage": message.get("usage")})

    def _count(self, usage: Any) -> list[StreamEvent]:
        """Counts are of all so far: the last one holds, and one that is missing changes nothing."""
        counted = as_object(usage)
        found = {
            ours: as_count(counted[name]) for name, ours in _COUNTS.items() if counted.get(name)
        }
        details = as_object(counted.get("output_tokens_details"))
        if reasoning := details.get("thinking_tokens") or details.get("reasoning_tokens"):
            found["reasoning"] = as_count(reasoning)
        if not found:
            return []
        self._usage |= found
        get = self._usage.get
        return [
            UsageReport(
                {
                    "input": get("input", 0),
                    "output": get("output", 0),
                    "cache_read": get("cache_read", 0),
                    "cache_write": get("cache_write", 0),
                    "reasoning": get("reasoning", 0),
                }
            )
        ]

    # --- its blocks -------------------------------------------------------------------------------

    def _start(self, key: int | None, given: dict[str, Any]) -> list[StreamEvent]:
        events = self._stop(key) if key in self._open else []
        block = self._open[key] = _Block(as_text(given.get("type")), given)
        match block.kind:
            case "text":
                block.index = self._blocks.open(key)
                return events + self._text(block, as_text(given.get("text")))
            case "thinking":
                block.index = self._blocks.open(key)
                block.signature.append(as_text(given.get("signature")))
                return events + self._thinking(block, as_text(given.get("thinking")))
            case "redacted_thinking":
                index = self._blocks.open(key)
                data = as_text(given.get("data"))
                return [*events, BlockEnd(index, signature=data, redacted=True)]
            case "tool_use":
                index = self._blocks.open(key)
                self._calls += 1
                block.call = Call(index, as_text(given.get("id")), as_text(given.get("name")))
                return events + list(block.call.start())
        return events

    def _delta(self, event: Mapping[str, Any]) -> list[StreamEvent]:
        delta = as_object(event.get("delta"))
        kind = as_text(delta.get("type"))
        key = _key(event)
        block = self._open.get(key)
        if block is None:
            # Some gateways leave the start of a block out.
            implied = {"text_delta": "text", "thinking_delta": "thinking"}.get(kind)
            if implied is None:
                return []
            self._start(key, {"type": implied})
            block = self._open[key]
        if kind == "text_delta" and block.kind == "text":
            return self._text(block, as_text(delta.get("text")))
        if kind == "input_json_delta" and block.call:
            return list(block.call.add(as_text(delta.get("partial_json"))))
        if kind == "thinking_delta" and block.kind == "thinking":
            return self._thinking(block, as_text(delta.get("thinking")))
        if kind == "signature_delta":
            block.signature.append(as_text(delta.get("signature")))
        elif kind == "input_json_delta":
            block.input.append(as_text(delta.get("partial_json")))
        elif kind != "citations_delta":
            block.spoilt = True
        return []

    def _text(self, block: _Block, text: str) -> list[StreamEvent]:
        text = self._blocks.joined(block.index, text)
        return [TextDelta(block.index, text)] if text else []

    def _thinking(self, block: _Block, text: str) -> list[StreamEvent]:
        text = self._blocks.joined(block.index, text)
        return [ThinkingDelta(block.index, text)] if text else []

    def _stop(self, key: int | None) -> list[StreamEvent]:
        block = self._open.pop(key, None)
        if block is None:
            return []
        if block.call:
            return list(_end_of_call(block.call, block.given.get("input")))
        if block.kind == "thinking":
            signature = "".join(block.signature)
            return [BlockEnd(block.index, signature=signature)] if signature else []
        if block.kind in _NO_BLOCKS or block.spoilt or not block.kind:
            return []
        # The server's own tools and their results: they go back as they came.
        return [OpaqueBlock(self._blocks.open(key), block.whole())]


class _Block:
    """A block while it comes in."""

    __slots__ = ("call", "given", "index", "input", "kind", "signature", "spoilt")

    def __init__(self, kind: str, given: dict[str, Any]) -> None:
        self.kind = kind
        self.given = given
        self.index = 0
        self.call: Call | None = None
        self.signature: list[str] = []
        self.input: list[str] = []
        self.spoilt = False  # a piece of it could not be understood, so it can't go back

    def whole(self) -> dict[str, Any]:
        """A block of another kind, put together."""
        if not self.input:
            return self.given
        return {**self.given, "input": as_object(loads("".join(self.input)))}


def _key(event: Mapping[str, Any]) -> int | None:
    """What an event calls its block; None where it calls it nothing."""
    index = event.get("index")
    return index if type(index) is int else None


def _end_of_call(call: Call, given: Any) -> Iterator[StreamEvent]:
    """The end of a call, whose input may have come with its start."""
    if not call.size and given:
        yield from call.add(
            given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        )
    yield from call.end()
