"""Reads the answer of a server that speaks Gemini's format, and of those that nearly do.

Source: the Gemini API reference, ``GenerateContentResponse``, and its guide "Thought signatures".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
from runner.error import ErrorKind, ProviderError
from runner.providers.blocks import (
    Blocks,
    Call,
    as_count,
    as_list,
    as_object,
    as_text,
    loads,
    usage,
)
from runner.providers.failure import failure, short

_FAILURES: dict[str, ErrorKind] = {
    "BLOCKLIST": "refused",
    "IMAGE_OTHER": "server",
    "IMAGE_PROHIBITED_CONTENT": "refused",
    "IMAGE_RECITATION": "refused",
    "IMAGE_SAFETY": "refused",
    "LANGUAGE": "refused",
    "MALFORMED_FUNCTION_CALL": "protocol",
    "MALFORMED_RESPONSE": "protocol",
    "MISSING_THOUGHT_SIGNATURE": "bad_request",
    "OTHER": "server",
    "PROHIBITED_CONTENT": "refused",
    "RECITATION": "refused",
    "SAFETY": "refused",
    "SPII": "refused",
    "TOO_MANY_TOOL_CALLS": "protocol",
    "UNEXPECTED_TOOL_CALL": "protocol",
}


class GeminiAnswer:
    """One answer, from its chunks to events."""

    def __init__(self, secret: str | None = None) -> None:
        self.finish = ""
        """The finish reason, once there is one."""
        self.done = False
        """Never: no mark says that nothing follows, and usage may."""
        self._secret = secret
        self._blocks = Blocks()
        self._speaking = ""  # "text" or "thought", while a block of it is open
        self._signature = ""  # that of the open block
        self._calls = 0
        self._blocked = ""
        self._message = ""

    def read(self, name: str, data: str) -> Iterator[StreamEvent]:
        """What one event of the stream says.

        Raises:
            ProviderError: where it is an error, or no chunk.
        """
        value = loads(data)
        # Without alt=sse, and from some gateways all the same, the answer is one list.
        for chunk in value if isinstance(value, list) else (value,):
            if type(chunk) is not dict:
                self._odd(name, data.strip())
            elif chunk.get("error") or name == "error":
                raise failure(chunk, secret=self._secret)
            else:
                yield from self._chunk(chunk)

    def end(self) -> Iterator[StreamEvent]:
        """The last events, when the stream is over.

        Raises:
            ProviderError: where the answer is not whole, or none.
        """
        yield from self._silence()
        if kind := _FAILURES.get(self.finish):
            why = f"the model's answer was ended with {self.finish}"
            raise ProviderError(self._said(why), kind)
        if self._blocked and not self.finish:
            raise ProviderError(self._said(f"the prompt was blocked: {self._blocked}"), "refused")
        if not self.finish:
            raise ProviderError(
                "the stream ended before the answer was whole: no finish reason came", "network"
            )
        if self.finish == "MAX_TOKENS":
            yield Stop("length")
        else:
            yield Stop("tool_use" if self._calls else "stop")

    def _said(self, text: str) -> str:
        return short(f"{text}: {self._message}" if self._message else text, self._secret)

    def _odd(self, name: str, text: str) -> None:
        if name == "error":
            raise failure(text, secret=self._secret)
        if text and text.upper() != "[DONE]":
            raise ProviderError(
                short(f"the stream has an event that is no chunk: {text}", self._secret), "protocol"
            )

    def _chunk(self, chunk: Mapping[str, Any]) -> Iterator[StreamEvent]:
        for candidate in map(as_object, as_list(chunk.get("candidates"))):
            # One answer was asked for; a server that gives several gives the first one here.
            if candidate.get("index"):
                continue
            for part in as_list(as_object(candidate.get("content")).get("parts")):
                yield from self._part(as_object(part))
            if finish := as_text(candidate.get("finishReason")).upper():
                self.finish = finish
                self._message = as_text(candidate.get("finishMessage"))
        if feedback := as_object(chunk.get("promptFeedback")):
            self._blocked = as_text(feedback.get("blockReason"))
            self._message = self._message or as_text(feedback.get("blockReasonMessage"))
        if counted := as_object(chunk.get("usageMetadata")):
            yield UsageReport(_usage(counted))

    # --- parts ------------------------------------------------------------------------------------

    def _part(self, part: dict[str, Any]) -> Iterator[StreamEvent]:
        signature = as_text(part.get("thoughtSignature"))
        if isinstance(call := part.get("functionCall"), dict):
            yield from self._silence()
            yield from self._call(call, signature)
        elif part.keys() <= {"text", "thought", "thoughtSignature"}:
            kind = "thought" if part.get("thought") else "text"
            yield from self._say(kind, as_text(part.get("text")), signature)
        elif part:
            # What the server's own tools did, an image …: it goes back as it came.
            yield from self._silence()
            yield OpaqueBlock(self._blocks.open("part"), part)

    def _say(self, kind: str, text: str, signature: str) -> Iterator[StreamEvent]:
        if not text and kind != self._speaking:
            return
        if kind != self._speaking:
            yield from self._silence()
            self._blocks.open(kind)
            self._speaking = kind
        self._signature = signature or self._signature
        index = self._blocks.of(kind)
        if text := self._blocks.joined(index, text):
            yield TextDelta(index, text) if kind == "text" else ThinkingDelta(index, text)

    def _silence(self) -> Iterator[StreamEvent]:
        """The open block of text or thinking ends."""
        if self._speaking and self._signature:
            yield BlockEnd(self._blocks.of(self._speaking), signature=self._signature)
        self._speaking = self._signature = ""

    def _call(self, call: Mapping[str, Any], signature: str) -> Iterator[StreamEvent]:
        index = self._blocks.open(self._calls)
        self._calls += 1
        made = Call(index, as_text(call.get("id")), as_text(call.get("name")))
        arguments = call.get("args")
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        yield from made.add(arguments or "{}")
        yield from made.end(signature or None)


def _usage(counted: Mapping[str, Any]) -> Any:
    def count(name: str) -> int:
        return as_count(counted.get(name))

    thoughts = count("thoughtsTokenCount")
    return usage(
        count("promptTokenCount") + count("toolUsePromptTokenCount"),
        count("candidatesTokenCount") + thoughts,
        count("cachedContentTokenCount"),
        0,
        thoughts,
    )
