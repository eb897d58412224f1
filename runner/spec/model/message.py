"""Messages that a spec writes down: short ones, and whole ones in the log's form."""

from typing import Any, ClassVar, Literal

from runner.spec.model.map import Map
from runner.spec.model.scalar import Text, Whole


class ContentBlock(Map):
    """A block of a message's content, as in a log."""

    needs: ClassVar = (
        "type",
        {
            "text": ("text",),
            "thinking": ("text",),
            "image": ("mime_type", "data"),
            "tool_call": ("id", "name"),
            "provider": ("provider", "data"),
        },
    )

    type: Literal["text", "thinking", "image", "tool_call", "provider"]
    """What it is."""
    text: str | None = None
    """Of `text` and `thinking`."""
    signature: str | None = None
    """Opaque data that the provider needs back with this block."""
    redacted: bool | None = None
    """Of `thinking` that has a signature and no text."""
    mime_type: str | None = None
    """Of an `image`."""
    data: Any = None
    """Of an `image`: base64; of a `provider`: what that provider needs back."""
    id: str | None = None
    """Of a `tool_call`: its result carries the same."""
    name: str | None = None
    """Of a `tool_call`: the tool's."""
    arguments: dict[str, Any] | str | None = None
    """Of a `tool_call`: an object, or the raw text where that was none."""
    provider: str | None = None
    """Of a `provider`: the one that understands it."""


class Message(Map):
    """A message of the history before the prompt."""

    one_of: ClassVar = ("text", "content")
    needs: ClassVar = ("role", {"tool_result": ("tool_call_id",)})

    role: Literal["user", "assistant", "tool_result", "custom"]
    """Who speaks."""
    text: Text | None = None
    """A template: what is said, where that is all."""
    content: list[ContentBlock] | None = None
    """The whole content, as in a log. It is data: no templates."""
    id: str | None = None
    """Kept; counting goes on after it."""
    provider: str | None = None
    """Of an `assistant`: the provider whose answer it was."""
    model: str | None = None
    """Of an `assistant`: the model whose answer it was."""
    stop_reason: Literal["stop", "tool_use", "length", "error", "aborted"] | None = None
    """Of an `assistant`: why the answer ended."""
    usage: dict[str, Whole] | None = None
    """Of an `assistant`: the tokens used."""
    error: dict[str, Any] | None = None
    """Of an `assistant` that failed."""
    paused: bool | None = None
    """Of an `assistant`: whether the provider paused a turn that is to be continued."""
    tool_call_id: str | None = None
    """Of a `tool_result`: the call's id."""
    tool_name: str | None = None
    """Of a `tool_result`: the tool's name."""
    is_error: bool | None = None
    """Of a `tool_result`: whether the call failed."""
    details: Any = None
    """Of a `tool_result`: for people and programs; no model sees it."""


class SteeringMessage(Map):
    """A message that redirects the run in its course, queued at a known point."""

    one_of: ClassVar = ("after_turn", "after_tool")

    after_turn: Whole | None = None
    """Queued when this turn ends; 0 is before the start."""
    after_tool: str | None = None
    """Queued when this tool has ended for the first time."""
    text: Text
    """A template: what is said."""


class FollowUpMessage(Map):
    """A message that waits until the run is about to stop."""

    text: Text
    """A template: what is said."""
