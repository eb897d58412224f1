"""A recorded answer as the stream that it was: its deltas, what they didn't tell, its fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runner.engine.contract import (
    BlockEnd,
    OpaqueBlock,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageReport,
)
from runner.error import ProviderError
from runner.json_text import parse
from runner.log.tape import Line


def delta_events(delta: Line, told: dict[int, list[str]]) -> Iterator[StreamEvent]:
    """The stream events of a recorded delta."""
    index = delta["index"]
    parts = told.setdefault(index, [])
    if delta["kind"] == "tool_call":
        if "id" in delta:
            yield ToolCallStart(index, delta["id"], delta.get("name", ""))
        if delta.get("arguments"):
            parts.append(delta["arguments"])
            yield ToolCallDelta(index, delta["arguments"])
        return
    parts.append(delta["text"])
    make = TextDelta if delta["kind"] == "text" else ThinkingDelta
    yield make(index, delta["text"])


def rest_events(message: Line, told: Mapping[int, list[str]]) -> Iterator[StreamEvent]:
    """What of a message its deltas did not tell."""
    for index, block in enumerate(message["content"]):
        kind = block["type"]
        if kind == "provider":
            yield OpaqueBlock(index, block["data"])
            continue
        arguments = None
        if index not in told:
            if kind == "tool_call":
                yield ToolCallStart(index, block["id"], block["name"])
            elif block["text"]:
                make = TextDelta if kind == "text" else ThinkingDelta
                yield make(index, block["text"])
        if kind == "tool_call" and arguments_of("".join(told.get(index, []))) != block["arguments"]:
            arguments = block["arguments"]
        signature, redacted = block.get("signature"), bool(block.get("redacted"))
        if arguments is not None or signature is not None or redacted or index not in told:
            yield BlockEnd(index, signature, redacted, arguments)
    yield UsageReport(message["usage"])


def arguments_of(raw: str) -> Any:
    """A call's arguments from their text; the text itself where it is no object."""
    try:
        value = parse(raw) if raw else {}
    except ValueError:
        return raw
    return value if isinstance(value, dict) else raw


def fault_of(error: Line, after: Line | None) -> ProviderError:
    """The fault of an answer that failed; whether the model was asked again shows after it.

    Where nothing is after it, since the run was killed, it is decided anew.
    """
    message, kind, status = error["message"], error["kind"], error.get("status")
    if after is None:
        return ProviderError(message, kind, status=status)
    same = after["type"] == "model_retry" and "fallback" not in after
    delay = after["delay"] or None if same else None
    return ProviderError(message, kind, status=status, retryable=same, retry_after=delay)
