"""Reads the answer of a server that speaks Chat Completions, and of those that nearly do.

Source: the OpenAI API reference, "Chat Completions", the chunk object; what DeepSeek, Groq, Kimi,
llama.cpp, LiteLLM, Mistral, Ollama, OpenRouter, vLLM and xAI add to it, or do otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
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
from runner.engine.message import Usage
from runner.error import ErrorKind, ProviderError
from runner.providers.blocks import Blocks, as_count, as_list, as_object, as_text, usage
from runner.providers.chat_calls import ChatCalls
from runner.providers.failure import failure, short
from runner.providers.reasoning_details import ReasoningDetails
from runner.providers.think_tags import OPENING, ThinkTags

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Where servers put thinking. One that fills several says the same in each."""

_REASONS: dict[str, Literal["stop", "tool_use", "length"]] = {
    "function_call": "tool_use",
    "length": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "model_length": "length",
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
}
_FAILURES: dict[str, ErrorKind] = {
    "abort": "server",
    "blocklist": "refused",
    "content_filter": "refused",
    "error": "server",
    "insufficient_system_resource": "overloaded",
    "malformed_function_call": "protocol",
    "network_error": "network",
    "prohibited_content": "refused",
    "recitation": "refused",
    "refusal": "refused",
    "safety": "refused",
    "sensitive": "refused",
    "timeout": "timeout",
}
_decode = json.JSONDecoder().raw_decode


class ChatAnswer:
    """One answer, from its chunks to events."""

    def __init__(self, secret: str | None = None) -> None:
        self.done = False
        """Whether the stream said that nothing follows."""
        self.finish = ""
        """The finish reason, in lower case, once there is one."""
        self._secret = secret
        self._blocks = Blocks()
        self._tags = ThinkTags()
        self._speaking = ""  # what the open block of text or thinking is: "text", or where it stood
        self._calls = ChatCalls(self._blocks)
        self._details = ReasoningDetails()
        self._refusal = ""
        self._failed: Any = None

    def read(self, name: str, data: str) -> list[StreamEvent]:
        """What one event of the stream says.

        Raises:
            ProviderError: where it is an error, or no chunk.
        """
        chunk = self._chunk(name, data)
        events: list[StreamEvent] = []
        for choice in as_list(chunk.get("choices")):
            # One answer was asked for; a server that gives several gives the first one here.
            if isinstance(choice, dict) and not choice.get("index"):
                self._choice(choice, events)
        if counted := chunk.get("usage") or as_object(chunk.get("x_groq")).get("usage"):
            events.append(UsageReport(_usage(as_object(counted))))
        return events

    def end(self) -> Iterator[StreamEvent]:
        """The last events, when the stream is over.

        Raises:
            ProviderError: where the answer is not whole, or none.
        """
        yield from self._rest()
        if self._failed is not None or self.finish in _FAILURES:
            raise self._failure()
        if self._refusal:
            raise ProviderError(short(self._refusal, self._secret), "refused")
        if not self.finish and not (self.done and self._blocks.count):
            raise ProviderError(
                "the stream ended before the answer was whole: no finish reason came", "network"
            )
        for call in self._calls.calls:
            yield from call.end(self._calls.signatures.get(call.index))
        if details := self._details.joined():
            yield OpaqueBlock(self._blocks.open("details"), {"reasoning_details": details})
        reason = _REASONS.get(self.finish, "stop")
        if reason != "length":
            # Some say "stop" after calls, and some "tool_calls" after none.
            reason = "tool_use" if self._calls.calls else "stop"
        yield Stop(reason)

    def _failure(self) -> ProviderError:
        told = self._failed or {"message": f"the answer ended with finish_reason {self.finish}"}
        return failure(told, secret=self._secret, default=_FAILURES.get(self.finish, "server"))

    # --- one event --------------------------------------------------------------------------------

    def _chunk(self, name: str, data: str) -> dict[str, Any]:
        """The chunk in an event; an empty one where there is nothing in it."""
        try:
            chunk, end = _decode(data)
        except (ValueError, RecursionError):
            return self._no_json(name, data)
        if end != len(data) and data[end:].strip():
            return self._no_json(name, data)
        if type(chunk) is dict and "choices" in chunk and "error" not in chunk and name != "error":
            return chunk
        return self._odd(name, chunk)

    def _no_json(self, name: str, data: str) -> dict[str, Any]:
        text = data.strip()
        if text.upper().startswith("[DONE]"):
            self.done = True
            return {}
        if not text:
            return {}
        if text[0] in "{[" and text != data:
            return self._chunk(name, text)
        if name == "error":
            raise failure(text, secret=self._secret)
        raise ProviderError(
            short(f"the stream has an event that is not JSON: {text}", self._secret), "protocol"
        )

    def _odd(self, name: str, chunk: Any) -> dict[str, Any]:
        """A chunk that may be an error, in one of the forms in which servers send it."""
        found = as_object(chunk)
        error = found.get("error")
        if error or name == "error" or "error" in (found.get("object"), found.get("type")):
            raise failure(error or chunk, secret=self._secret)
        if "choices" in found or "usage" in found or chunk is None:
            return found
        if found and not found.keys() & {"message", "detail", "code", "msg"}:
            return found
        # A list, a text or an object with a message is an error without a name.
        raise failure(chunk, secret=self._secret, default="protocol")

    def _choice(self, choice: dict[str, Any], events: list[StreamEvent]) -> None:
        # A server that doesn't stream sends one whole message, which has the fields of a delta.
        delta = choice.get("delta") or choice.get("message")
        if type(delta) is dict:
            self._delta(delta, events)
        if finish := choice.get("finish_reason"):
            self._finish(as_text(finish).lower())
        if error := choice.get("error"):
            self._failed = error
        if counted := choice.get("usage"):
            events.append(UsageReport(_usage(as_object(counted))))

    def _delta(self, delta: dict[str, Any], events: list[StreamEvent]) -> None:
        for field in REASONING_FIELDS:
            if thinking := delta.get(field):
                self._say(field, as_text(thinking), events)
                break
        if "reasoning_details" in delta:
            self._detail(delta, events)
        if content := delta.get("content"):
            if type(content) is str:
                self._text(content, events)
            else:
                self._parts(content, events)
        if calls := delta.get("tool_calls"):
            for piece in as_list(calls):
                self._call(as_object(piece), events)
        if old := delta.get("function_call"):
            self._call({"index": 0, "function": old}, events)
        if refusal := delta.get("refusal"):
            self._refusal += as_text(refusal)

    def _finish(self, reason: str) -> None:
        # The first one that says more than a normal end holds.
        if self.finish not in _FAILURES and _REASONS.get(self.finish) != "length":
            self.finish = reason or self.finish

    # --- text and thinking ------------------------------------------------------------------------

    def _text(self, text: str, events: list[StreamEvent]) -> None:
        if self._tags.state == "plain":
            self._say("text", text, events)
            return
        for thinking, part in self._tags.split(text):
            self._say(OPENING if thinking else "text", part, events)

    def _say(self, kind: str, text: str, events: list[StreamEvent]) -> None:
        if not text:
            return
        if kind != self._speaking:
            self._silence(events)
            self._speaking = kind
        index = self._blocks.of(kind)
        if text := self._blocks.joined(index, text):
            events.append(TextDelta(index, text) if kind == "text" else ThinkingDelta(index, text))

    def _silence(self, events: list[StreamEvent]) -> None:
        """The open block of text or thinking ends; a thought notes where it has to go back to."""
        if self._speaking:
            index = self._blocks.of(self._speaking)
            self._blocks.close(self._speaking)
            if self._speaking != "text":
                events.append(BlockEnd(index, signature=self._speaking))
            self._speaking = ""

    def _parts(self, content: Any, events: list[StreamEvent]) -> None:
        """Content as a list of parts, of which Mistral makes one ``thinking``."""
        for part in map(as_object, as_list(content)):
            if part.get("type") == "thinking":
                for inner in map(as_object, as_list(part.get("thinking"))):
                    self._say(REASONING_FIELDS[0], as_text(inner.get("text")), events)
            elif text := as_text(part.get("text")):
                self._text(text, events)

    def _detail(self, delta: dict[str, Any], events: list[StreamEvent]) -> None:
        shown = any(delta.get(field) for field in REASONING_FIELDS)
        for piece in map(as_object, as_list(delta["reasoning_details"])):
            text = self._details.add(piece)
            if not shown:
                self._say("reasoning", text, events)

    def _rest(self) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for thinking, part in self._tags.rest():
            self._say(OPENING if thinking else "text", part, events)
        self._silence(events)
        return events

    def _call(self, piece: dict[str, Any], events: list[StreamEvent]) -> None:
        if self._calls.begins(piece):
            self._silence(events)
        events.extend(self._calls.add(piece))


def _usage(counted: dict[str, Any]) -> Usage:
    read = as_count(counted.get("prompt_tokens"))
    written = as_count(counted.get("completion_tokens"))
    of_read = as_object(counted.get("prompt_tokens_details"))
    of_written = as_object(counted.get("completion_tokens_details"))
    # DeepSeek and Kimi count the cache's part beside the details.
    places = (of_read.get("cached_tokens"), counted.get("prompt_cache_hit_tokens"))
    cached = next(filter(None, map(as_count, (*places, counted.get("cached_tokens")))), 0)
    reasoning = as_count(of_written.get("reasoning_tokens"))
    if reasoning and as_count(counted.get("total_tokens")) == read + written + reasoning:
        written += reasoning  # xAI counts it apart
    return usage(read, written, cached, as_count(of_read.get("cache_write_tokens")), reasoning)
