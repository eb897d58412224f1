"""An answer as it grows from a provider's stream."""

from __future__ import annotations

from typing import Any, Protocol, cast

from runner.engine.contract import (
    BlockEnd,
    OpaqueBlock,
    Stop,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageReport,
)
from runner.engine.event import Delta
from runner.engine.message import AssistantMessage, Block, ErrorInfo, StopReason, no_usage
from runner.json_text import parse


class CallIds(Protocol):
    """The tool calls that an agent knows."""

    call_ids: set[str]
    """Of all calls in its history."""
    calls_made: int
    """How many calls its model made in this run."""


class _Growing:
    """A block of which pieces come."""

    __slots__ = ("arguments", "id", "kind", "name", "parts", "redacted", "signature")

    def __init__(self, kind: str, id_: str = "", name: str = "") -> None:
        self.kind = kind
        self.id = id_
        self.name = name
        self.parts: list[str] = []
        self.signature: str | None = None
        self.redacted = False
        self.arguments: dict[str, Any] | str | None = None

    def block(self) -> Block:
        block: dict[str, Any] = {"type": self.kind}
        if self.kind == "tool_call":
            block |= {"id": self.id, "name": self.name, "arguments": self._arguments()}
        else:
            block["text"] = "".join(self.parts)
        if self.signature is not None:
            block["signature"] = self.signature
        if self.redacted:
            block["redacted"] = True
        return cast("Block", block)

    def _arguments(self) -> dict[str, Any] | str:
        """The arguments as an object; the raw text where it is none: it is then never run."""
        if self.arguments is not None:
            return self.arguments
        raw = "".join(self.parts)
        try:
            value = parse(raw) if raw else {}
        except ValueError:
            return raw
        return value if isinstance(value, dict) else raw


class Answer:
    """Puts the pieces of an answer together. Cheap per piece; texts are joined at the end.

    Args:
        provider: Its provider's name.
        model: Its model's id.
        calls: The agent's tool calls so far. A call whose id is empty or among theirs gets a new
            one, so that every result belongs to one call.
    """

    def __init__(self, provider: str, model: str, calls: CallIds) -> None:
        self.id = ""
        """The message's id, once it has begun."""
        self.provider = provider
        self.model = model
        self.stop: Stop | None = None
        self._calls = calls
        self._own_ids: set[str] = set()
        self._usage = no_usage()
        self._blocks: dict[int, _Growing | Block] = {}

    def text(self, event: TextDelta) -> Delta | None:
        """Take a piece of text. Gives the delta to tell, if there is one."""
        if not event.text:
            return None
        block = self._blocks.get(event.index)
        if block is None:
            block = self._blocks[event.index] = _Growing("text")
        block.parts.append(event.text)  # type: ignore[union-attr]
        return {"kind": "text", "index": event.index, "text": event.text}

    def feed(self, event: StreamEvent) -> Delta | None:
        """Take any piece. Gives the delta to tell, if there is one."""
        match event:
            case ToolCallDelta(index, arguments):
                if not arguments:
                    return None
                cast("_Growing", self._blocks[index]).parts.append(arguments)
                return {"kind": "tool_call", "index": index, "arguments": arguments}
            case ThinkingDelta(index, text):
                if not text:
                    return None
                self._growing(index, "thinking").parts.append(text)
                return {"kind": "thinking", "index": index, "text": text}
            case TextDelta():
                return self.text(event)
            case ToolCallStart(index, id_, name):
                call_id = self._unique(id_)
                self._blocks[index] = _Growing("tool_call", call_id, name)
                return {
                    "kind": "tool_call",
                    "index": index,
                    "arguments": "",
                    "id": call_id,
                    "name": name,
                }
            case UsageReport(usage):
                self._usage = usage
            case BlockEnd():
                self._end_block(event)
            case OpaqueBlock(index, data):
                self._blocks[index] = {"type": "provider", "provider": self.provider, "data": data}
            case Stop():
                self.stop = event
        return None

    def _growing(self, index: int, kind: str) -> _Growing:
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = _Growing(kind)
        return cast("_Growing", block)

    def _end_block(self, event: BlockEnd) -> None:
        # A thinking block may have no text at all, only a signature.
        block = self._growing(event.index, "thinking")
        block.signature = event.signature if event.signature is not None else block.signature
        block.redacted = event.redacted or block.redacted
        block.arguments = event.arguments if event.arguments is not None else block.arguments

    def _unique(self, id_: str) -> str:
        taken = self._calls.call_ids
        if not id_ or id_ in taken or id_ in self._own_ids:
            number = self._calls.calls_made + len(self._own_ids) + 1
            while (id_ := f"call_{number}") in taken or id_ in self._own_ids:
                number += 1
        self._own_ids.add(id_)
        return id_

    def so_far(self) -> AssistantMessage:
        """The message, as far as it has come."""
        return self.message(None, aborted=False)

    def message(self, error: ErrorInfo | None, aborted: bool) -> AssistantMessage:
        """The whole message."""
        content = [
            block.block() if isinstance(block, _Growing) else block
            for _, block in sorted(self._blocks.items())
        ]
        message: AssistantMessage = {
            "id": self.id,
            "role": "assistant",
            "content": content,
            "provider": self.provider,
            "model": self.model,
            "stop_reason": self._stop_reason(content, error, aborted),
            "usage": self._usage,
        }
        if error is not None:
            message["error"] = error
        if self.stop is not None and self.stop.paused:
            message["paused"] = True
        return message

    def _stop_reason(
        self, content: list[Block], error: ErrorInfo | None, aborted: bool
    ) -> StopReason:
        if error is not None:
            return "error"
        if aborted or self.stop is None or self.stop.reason == "aborted":
            return "aborted"
        if self.stop.reason == "length":
            return "length"
        # Whatever a server says of it: an answer with calls wants them run.
        return "tool_use" if any(b["type"] == "tool_call" for b in content) else "stop"
