"""Messages, in the one form that they have everywhere: in a run, in its events and in its log.

They are plain JSON objects, so that nothing is converted between the loop, a hook in another
process and the log. They are values: once in a history, a message is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast

from runner.error import ErrorKind

StopReason = Literal["stop", "tool_use", "length", "error", "aborted"]
"""Why an answer ended."""


class TextBlock(TypedDict):
    """Text that a person, a model or a tool said."""

    type: Literal["text"]
    text: str
    signature: NotRequired[str]
    """Opaque data that the provider needs back with this block."""


class ThinkingBlock(TypedDict):
    """What a model thought before it answered."""

    type: Literal["thinking"]
    text: str
    signature: NotRequired[str]
    """Opaque data that the provider needs back with this block."""
    redacted: NotRequired[bool]
    """True where the provider shows no text, and the signature is all there is."""


class ImageBlock(TypedDict):
    """An image."""

    type: Literal["image"]
    mime_type: str
    """Such as ``image/png``."""
    data: str
    """The image's bytes in base64."""


class ToolCallBlock(TypedDict):
    """A tool that a model wants to be run."""

    type: Literal["tool_call"]
    id: str
    """Unique in its agent; the result carries the same."""
    name: str
    arguments: dict[str, Any] | str
    """An object, or the raw text where that is not one."""
    signature: NotRequired[str]
    """Opaque data that the provider needs back with this block."""


class ProviderBlock(TypedDict):
    """Something only one provider understands; sent back to that provider alone."""

    type: Literal["provider"]
    provider: str
    data: Any


Block = TextBlock | ThinkingBlock | ImageBlock | ToolCallBlock | ProviderBlock


class Usage(TypedDict):
    """Tokens of one model call, or of several."""

    input: int
    """Read by the model, without those of the cache."""
    output: int
    """Written by the model, its reasoning included."""
    cache_read: int
    cache_write: int
    reasoning: int
    """The part of ``output`` that was reasoning."""


class ErrorInfo(TypedDict):
    """Why an answer is an error."""

    message: str
    """The provider's own words, at most 300 characters."""
    kind: ErrorKind
    status: NotRequired[int]
    """The HTTP status, where there was one."""


class UserMessage(TypedDict):
    """What a person, a task or a queue says to the model."""

    id: str
    role: Literal["user"]
    content: list[Block]


class AssistantMessage(TypedDict):
    """An answer of the model."""

    id: str
    role: Literal["assistant"]
    content: list[Block]
    provider: str
    model: str
    stop_reason: StopReason
    usage: Usage
    error: NotRequired[ErrorInfo]
    """There when ``stop_reason`` is ``error``."""
    paused: NotRequired[bool]
    """True where the provider paused a turn that is to be continued."""


class ToolResultMessage(TypedDict):
    """What a tool call came to."""

    id: str
    role: Literal["tool_result"]
    tool_call_id: str
    tool_name: str
    is_error: bool
    content: list[Block]
    details: NotRequired[Any]
    """For people and programs; the model doesn't see it."""


class CustomMessage(TypedDict):
    """A message of the application's own, which no model sees unless ``convert_to_llm`` says so."""

    id: str
    role: Literal["custom"]
    content: list[Block]


Message = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage


def text_of(content: Iterable[Mapping[str, Any]]) -> str:
    """The text blocks of a content, joined."""
    return "".join(block["text"] for block in content if block["type"] == "text")


def text_block(text: str) -> TextBlock:
    """A text as a block."""
    return {"type": "text", "text": text}


def user_message(text: str) -> UserMessage:
    """A text as a user's message. Its id is given when it joins a history."""
    return {"id": "", "role": "user", "content": [text_block(text)]}


def tool_calls_of(message: AssistantMessage) -> list[ToolCallBlock]:
    """The tool calls of an answer, in the model's order."""
    return [block for block in message["content"] if block["type"] == "tool_call"]


def no_usage() -> Usage:
    """A usage of nothing."""
    return {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "reasoning": 0}


def add_usage(total: Usage, more: Usage) -> None:
    """Add a usage to a running total, in place."""
    for key in ("input", "output", "cache_read", "cache_write", "reasoning"):
        total[key] += more[key]


def usage_since(before: Usage, now: Usage) -> Usage:
    """What was used between two states of a running total."""
    since = no_usage()
    for key in ("input", "output", "cache_read", "cache_write", "reasoning"):
        since[key] = now[key] - before[key]
    return since


def tokens_of(usage: Usage) -> int:
    """All tokens that were read or written, those of the cache included."""
    return usage["input"] + usage["output"] + usage["cache_read"] + usage["cache_write"]


ROLES = ("user", "assistant", "tool_result", "custom")

_FIELDS = {
    "text": ("text",),
    "thinking": ("text",),
    "image": ("mime_type", "data"),
    "tool_call": ("id", "name", "arguments"),
    "provider": ("provider", "data"),
}
"""What a block of each type has."""


def as_message(item: Any) -> Message:
    """A message from a text, from ``{role, text}``, or from a message in the log's form.

    Raises:
        ValueError: where it is none of them.
    """
    if isinstance(item, str):
        return user_message(item)
    if not isinstance(item, Mapping):
        raise ValueError(f"a text, {{role, text}} or a message is needed, not {item!r:.80}")
    role = item.get("role", "user")
    if role not in ROLES:
        raise ValueError(f"a message's role is one of {', '.join(ROLES)}, not {role!r:.80}")
    if isinstance(item.get("text"), str):
        content = [text_block(item["text"])]
        return cast("Message", {"id": item.get("id", ""), "role": role, "content": content})
    check_content(item.get("content"))
    return cast("Message", {"id": "", "role": role, **item})


def check_content(content: Any) -> None:
    """Make sure that something is a list of blocks.

    Raises:
        ValueError: where it is not.
    """
    if not isinstance(content, list):
        raise ValueError(f"a content is a list of blocks, not {content!r:.80}")
    for block in content:
        kind = block.get("type") if isinstance(block, Mapping) else None
        fields = _FIELDS.get(kind) if isinstance(kind, str) else None
        if fields is None:
            known = ", ".join(_FIELDS)
            raise ValueError(f"a block has a type, one of {known}; this has none: {block!r:.80}")
        if missing := [field for field in fields if field not in block]:
            raise ValueError(f'a block of type {kind} needs "{missing[0]}": {block!r:.80}')
        if not isinstance(block.get("text", ""), str):
            raise ValueError(f"a block's text is a string: {block!r:.80}")
