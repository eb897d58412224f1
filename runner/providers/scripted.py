"""The scripted model: its replies stand in the spec. No key, no network, the same answer always.

An entry of a script is a map; what it may have:

=============  =====================================================================================
``thinking``   a text, in one piece
``text``       a template; it sees ``inputs``, ``messages`` and ``last``
``deltas``     how many pieces the text comes in; default 1
``tool_calls`` ``{name, arguments, id}`` each; ``arguments`` is an object (the default: ``{}``), or
               the raw text that the model sent, well formed or not
``delay``      seconds before each piece
``usage``      tokens, such as ``{input: 20, output: 6}``
``stop``       ``stop``, ``tool_use``, ``length``, ``error`` or ``aborted``
``error``      the message of a failure that comes after the content, if there is any
``status``     the HTTP status of that failure
``repeat``     how many requests the entry answers, or ``forever``; ``times`` is the same
=============  =====================================================================================
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
import json
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, overload

from runner.engine.contract import (
    ModelRequest,
    Provider,
    Stop,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageReport,
)
from runner.engine.message import Message, Usage, no_usage, text_of
from runner.error import ErrorKind, ProviderError, RunError
from runner.providers.failure import failure, short
from runner.providers.settings import ModelSettings

Entry = Mapping[str, Any]

_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)
_STOPS: dict[str, Literal["stop", "tool_use", "length", "aborted"]] = {
    "stop": "stop",
    "tool_use": "tool_use",
    "length": "length",
    "aborted": "aborted",
}
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def create(settings: ModelSettings) -> Provider:
    """The model that answers from ``settings.script``."""
    return ScriptedProvider(settings)


class ScriptedProvider:
    """Answers the n-th request with the script's n-th reply, whatever was asked."""

    name = "scripted"

    def __init__(self, settings: ModelSettings) -> None:
        self._script = settings.script
        self._render = settings.render
        # The number of the first request that an entry no longer answers.
        self._ends = list(itertools.accumulate(map(_times, settings.script)))

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Give the reply that is due.

        Raises:
            ProviderError: where the reply is an error, where its text can't be rendered, and where
                there is no reply left.
        """
        entry = self._entry(request.number)
        delay = entry.get("delay") or 0
        for events in _content(entry, self._text(entry, request)):
            if delay:
                await asyncio.sleep(delay)
            for event in events:
                yield event
        if usage := entry.get("usage"):
            yield UsageReport(_usage(usage))
        if error := _failure(entry):
            raise error
        yield Stop(_STOPS[entry.get("stop") or _usual_stop(entry)])

    async def close(self) -> None:
        """Nothing is held."""

    def _entry(self, number: int) -> Entry:
        place = bisect.bisect_right(self._ends, number)
        if place == len(self._ends):
            has = int(self._ends[-1]) if self._ends else 0
            raise ProviderError(
                f"the script has no more replies: it has {has}, and this is request {number + 1}; "
                "add one, or give its last `repeat: forever`",
                "exhausted",
            )
        return self._script[place]

    def _text(self, entry: Entry, request: ModelRequest) -> str:
        text: str = entry.get("text") or ""
        if self._render is None or not _is_template(text):
            return text
        messages = MessageViews(request.messages)
        values: dict[str, Any] = {"messages": messages}
        if messages:
            values["last"] = messages[-1]
        try:
            return self._render(text, values)
        except RunError as error:
            raise ProviderError(short(f"the script's text: {error}"), "bad_request") from error


class MessageView:
    """A message as the text of a script sees it."""

    __slots__ = ("_message",)

    def __init__(self, message: Message) -> None:
        self._message = message

    @property
    def role(self) -> str:
        """``user``, ``assistant``, ``tool_result`` or ``custom``."""
        return self._message["role"]

    @property
    def text(self) -> str:
        """The texts of its content, joined."""
        return text_of(self._message["content"])


class MessageViews(Sequence[MessageView]):
    """Messages as the text of a script sees them, each looked at only when it is asked for."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    @overload
    def __getitem__(self, index: int) -> MessageView: ...
    @overload
    def __getitem__(self, index: slice) -> list[MessageView]: ...
    def __getitem__(self, index: int | slice) -> MessageView | list[MessageView]:
        if isinstance(index, slice):
            return [MessageView(message) for message in self._messages[index]]
        return MessageView(self._messages[index])

    def __len__(self) -> int:
        return len(self._messages)


def _times(entry: Entry) -> float:
    """How many requests an entry answers."""
    times = entry.get("repeat", entry.get("times"))
    if times is None:
        return 1
    return math.inf if times == "forever" else times


def _is_template(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def _content(entry: Entry, text: str) -> Iterator[Sequence[StreamEvent]]:
    """The pieces of a reply, each with the events that come at once."""
    index = 0
    if thinking := entry.get("thinking"):
        yield (ThinkingDelta(index, thinking),)
        index += 1
    if text:
        for piece in pieces(text, entry.get("deltas") or 1):
            yield (TextDelta(index, piece),)
        index += 1
    for call in entry.get("tool_calls") or ():
        # Without an id here, the loop gives the next of its own.
        start = ToolCallStart(index, call.get("id") or "", call["name"])
        yield (start, ToolCallDelta(index, _arguments(call.get("arguments"))))
        index += 1


def pieces(text: str, count: int) -> Iterator[str]:
    """A text in pieces of equal length, as nearly as can be; none is empty."""
    length = len(text)
    count = max(1, min(count, length))
    for number in range(count):
        yield text[number * length // count : (number + 1) * length // count]


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return _encode({} if arguments is None else arguments)


def _usage(given: Mapping[str, int]) -> Usage:
    usage = no_usage()
    usage.update({name: given[name] for name in usage if name in given})  # type: ignore[typeddict-item]
    return usage


def _usual_stop(entry: Entry) -> str:
    return "tool_use" if entry.get("tool_calls") else "stop"


def _failure(entry: Entry) -> ProviderError | None:
    """The error that a reply ends with, if it does."""
    text, status, stop = entry.get("error"), entry.get("status"), entry.get("stop")
    if text is None and stop != "error":
        return None
    text = text or "the script ends this reply with an error"
    if status is None and text in _KINDS:
        error = ProviderError(text, text)
    else:
        error = failure({"message": text, "code": text}, status=status)
    if stop == "error":
        error.retryable = False
    return error
