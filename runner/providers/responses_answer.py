"""Reads the answer of a server that speaks the Responses format.

Source: the OpenAI API reference, "Responses", streaming events; what Azure, Copilot, llama.cpp and
vLLM leave out of it or do otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from runner.engine.contract import (
    BlockEnd,
    OpaqueBlock,
    Stop,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from runner.engine.message import Usage
from runner.error import ProviderError
from runner.providers.blocks import Blocks, Call, as_count, as_list, as_object, as_text, usage
from runner.providers.failure import failure, short

_TERMINAL = {
    "response.cancelled": "cancelled",
    "response.completed": "completed",
    "response.done": "completed",
    "response.failed": "failed",
    "response.incomplete": "incomplete",
}
MOST_AHEAD = 100
"""A place in the output so much further than the number of items is not believed."""

_BLOCKS = {"function_call": "call", "message": "text", "reasoning": "thinking"}
_decode = json.JSONDecoder().raw_decode


class _Item:
    """An item of the output, which makes one block."""

    __slots__ = ("call", "done", "index", "kind", "part", "pieces")

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind
        """``text``, ``thinking``, ``call``, or ``other``."""
        self.call: Call | None = None
        self.pieces: list[str] = []
        """Of text or thinking."""
        self.part: Any = None
        """The part of its thinking that the last piece belonged to."""
        self.done = False


class ResponsesAnswer:
    """One answer, from the events of its stream to those of the engine."""

    def __init__(self, secret: str | None = None) -> None:
        self.done = False
        """Whether the terminal event came."""
        self.finish = ""
        """Never a reason: the terminal event has it."""
        self._secret = secret
        self._items: dict[int | str, _Item] = {}  # by place and by id
        self._all: list[_Item] = []
        self._count = 0  # one more than the last index
        self._newest: _Item | None = None
        self._blocks = Blocks()
        self._refusal = ""
        self._cut = False
        self._error: ProviderError | None = None

    def read(self, name: str, data: str) -> list[StreamEvent]:
        """What one event of the stream says. One of a kind that is not known says nothing.

        Raises:
            ProviderError: where it is an error, or no event of this format.
        """
        events: list[StreamEvent] = []
        if self.done:
            return events
        event = self._event(name, data)
        kind = event.get("type")
        if kind == "response.output_text.delta":
            self._say(self._item(event, "text"), as_text(event.get("delta")), events)
        elif kind == "response.function_call_arguments.delta":
            if call := self._item(event, "call").call:
                events.extend(call.add(as_text(event.get("delta"))))
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self._think(event, events)
        elif kind in _TERMINAL:
            self._end(_TERMINAL[kind], as_object(event.get("response")), events)
        elif isinstance(kind, str):
            self._other(kind, event, events)
        return events

    def end(self) -> Iterator[StreamEvent]:
        """The last events, when the stream is over.

        Raises:
            ProviderError: where the answer is not whole, or is a refusal.
        """
        if not self.done:
            raise ProviderError(
                "the stream ended before the answer was whole: no terminal event came", "network"
            )
        if self._error:
            raise self._error
        if self._refusal:
            raise ProviderError(short(self._refusal, self._secret), "refused")
        called = False
        for item in self._all:
            if item.call:
                called = True
                if not item.done:
                    yield from item.call.end()
        yield Stop("length" if self._cut else "tool_use" if called else "stop")

    # --- one event --------------------------------------------------------------------------------

    def _event(self, name: str, data: str) -> dict[str, Any]:
        try:
            event, end = _decode(data)
        except (ValueError, RecursionError):
            return self._no_json(name, data)
        if end != len(data) and data[end:].strip():
            return self._no_json(name, data)
        found = as_object(event)
        error = found.get("error")
        if error or name == "error" or found.get("type") == "error":
            raise failure(error or event, secret=self._secret)
        if isinstance(found.get("type"), str):
            return found
        if found.get("object") == "response":
            # A server that doesn't stream sends the response itself.
            kind = f"response.{found.get('status') or 'completed'}"
            return {"type": kind, "response": found}
        if name and found:
            return {**found, "type": name}
        if found and not found.keys() & {"message", "detail", "code", "msg"}:
            return found
        raise failure(event, secret=self._secret, default="protocol")

    def _no_json(self, name: str, data: str) -> dict[str, Any]:
        text = data.strip()
        # Gateways add the mark of the older format; here it means nothing by itself.
        if not text or text.upper().startswith("[DONE]"):
            return {}
        if text[0] in "{[" and text != data:
            return self._event(name, text)
        if name == "error":
            raise failure(text, secret=self._secret)
        raise ProviderError(
            short(f"the stream has an event that is not JSON: {text}", self._secret), "protocol"
        )

    def _other(self, kind: str, event: dict[str, Any], events: list[StreamEvent]) -> None:
        """An event that comes once an item."""
        match kind:
            case "response.output_item.added":
                self._begin(event)
            case "response.output_item.done":
                item = as_object(event.get("item"))
                self._finish(self._item(event, _kind(item)), item, events)
            case "response.output_text.done":
                found = self._item(event, "text")
                if not found.pieces:
                    self._say(found, as_text(event.get("text")), events)
            case "response.function_call_arguments.done":
                if call := self._item(event, "call").call:
                    call.name = call.name or as_text(event.get("name"))
                    events.extend(call.complete(as_text(event.get("arguments"))))
            case "response.refusal.delta":
                self._refusal += as_text(event.get("delta"))
            case "response.refusal.done":
                self._refusal = as_text(event.get("refusal")) or self._refusal

    # --- items ------------------------------------------------------------------------------------

    def _begin(self, event: dict[str, Any]) -> _Item:
        """An item is announced. Its place in the output is its block's, where the server tells."""
        content = as_object(event.get("item"))
        kind, item_id = _kind(content), as_text(content.get("id"))
        place = event.get("output_index")
        key = place if type(place) is int and place >= 0 else len(self._all)
        known = self._items.get(key)
        if known and not known.done and known.kind == kind and known is self._items.get(item_id):
            return known  # announced twice
        # Where all items claim one place, each gets the next that is free.
        index = key if known is None and key < len(self._all) + MOST_AHEAD else self._count
        self._count = max(self._count, index + 1)
        item = self._items[key] = self._newest = _Item(index, kind)
        self._all.append(item)
        if item_id:
            self._items[item_id] = item
        if kind == "call":
            call_id = as_text(content.get("call_id")) or item_id
            item.call = Call(index, call_id, as_text(content.get("name")))
        return item

    def _item(self, event: dict[str, Any], kind: str) -> _Item:
        """The item that an event is about, by its place, else by its id, else the newest one.

        Some servers give it another id in each event, and some give no place.
        """
        content = as_object(event.get("item"))
        place = event.get("output_index")
        if type(place) is int:
            item = self._items.get(place)
        else:
            item = self._items.get(as_text(event.get("item_id")) or as_text(content.get("id")))
            if item is None and self._newest and not self._newest.done:
                item = self._newest
        if item is None or item.kind != kind:
            item = self._begin({**event, "item": {"type": _TYPES.get(kind), **content}})
        return item

    def _finish(self, item: _Item, content: dict[str, Any], events: list[StreamEvent]) -> None:
        """An item is whole: what its deltas left out is in it."""
        item.done = True
        if item.kind == "text":
            self._finish_text(item, content, events)
        elif item.kind == "thinking":
            parts = as_list(content.get("summary")) or as_list(content.get("content"))
            text = "\n\n".join(as_text(as_object(part).get("text")) for part in parts)
            self._rest(item, text, events)
            signature = as_text(content.get("encrypted_content")) or None
            if signature:
                redacted = not any(item.pieces)
                events.append(BlockEnd(item.index, signature=signature, redacted=redacted))
        elif item.call:
            item.call.name = item.call.name or as_text(content.get("name"))
            events.extend(item.call.complete(as_text(content.get("arguments"))))
            events.extend(item.call.end())
        elif content:
            events.append(OpaqueBlock(item.index, content))

    def _finish_text(self, item: _Item, content: dict[str, Any], events: list[StreamEvent]) -> None:
        parts = list(map(as_object, as_list(content.get("content"))))
        self._rest(item, "".join(as_text(part.get("text")) for part in parts), events)
        for part in parts:
            self._refusal = self._refusal or as_text(part.get("refusal"))
        # Newer models tell a comment on what they do from the final answer, and want it back.
        if item.pieces and (phase := as_text(content.get("phase"))):
            events.append(BlockEnd(item.index, signature=phase))

    def _rest(self, item: _Item, whole: str, events: list[StreamEvent]) -> None:
        text = "".join(item.pieces)
        if len(whole) > len(text) and whole.startswith(text):
            self._say(item, whole[len(text) :], events)

    def _say(self, item: _Item, text: str, events: list[StreamEvent]) -> None:
        if not text:
            return
        item.pieces.append(text)
        if text := self._blocks.joined(item.index, text):
            events.append(
                TextDelta(item.index, text)
                if item.kind == "text"
                else ThinkingDelta(item.index, text)
            )

    def _think(self, event: dict[str, Any], events: list[StreamEvent]) -> None:
        item = self._item(event, "thinking")
        part = (event["type"], event.get("summary_index", event.get("content_index")))
        if item.part is not None and part != item.part:
            if part[0] != item.part[0]:
                return  # the summary of what came already, or the other way round
            self._say(item, "\n\n", events)
        item.part = part
        self._say(item, as_text(event.get("delta")), events)

    # --- the end ----------------------------------------------------------------------------------

    def _end(self, status: str, response: dict[str, Any], events: list[StreamEvent]) -> None:
        """The terminal event, which has the whole response, or next to nothing of it."""
        self.done = True
        if counted := as_object(response.get("usage")):
            events.append(UsageReport(_usage(counted)))
        error = response.get("error")
        if error or status in ("failed", "cancelled"):
            told = error or {"message": f"the response ended as {status}"}
            self._error = failure(told, secret=self._secret)
        if not self._all:
            for place, item in enumerate(map(as_object, as_list(response.get("output")))):
                self._finish(self._begin({"output_index": place, "item": item}), item, events)
        if status == "incomplete" or response.get("status") == "incomplete":
            reason = as_text(as_object(response.get("incomplete_details")).get("reason"))
            if reason == "content_filter":
                self._error = ProviderError("the content filter stopped the answer", "refused")
            self._cut = True


_TYPES = {kind: item_type for item_type, kind in _BLOCKS.items()}


def _kind(item: dict[str, Any]) -> str:
    return _BLOCKS.get(as_text(item.get("type")), "other")


def _usage(counted: dict[str, Any]) -> Usage:
    read, details = counted.get("input_tokens"), as_object(counted.get("input_tokens_details"))
    thought = as_object(counted.get("output_tokens_details")).get("reasoning_tokens")
    return usage(
        as_count(read),
        as_count(counted.get("output_tokens")),
        as_count(details.get("cached_tokens")),
        as_count(details.get("cache_write_tokens")),
        as_count(thought),
    )
