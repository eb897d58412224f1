"""What a model was given at a turn, and what changed in it between two turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from runner.views.block import calls, content, indented
from runner.views.escape import one_line

Message = Mapping[str, Any]


class Context(Protocol):
    """What the model was given at a turn; None is what the log does not have."""

    turn: int
    agent: str | None
    provider: str
    model: str
    system_prompt: str | None

    @property
    def tools(self) -> Sequence[Mapping[str, Any]] | None:
        """``{name, description, parameters}`` each."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """In the order in which they were given."""
        ...

    @property
    def missing(self) -> Sequence[str]:
        """Ids of messages that were given and are not in the log."""
        ...


class ContextChange(Protocol):
    """What changed between two turns."""

    @property
    def before(self) -> Context:
        """What was given at the one turn."""
        ...

    @property
    def after(self) -> Context:
        """What was given at the other."""
        ...

    @property
    def added(self) -> Sequence[Message]:
        """Given at the other turn alone."""
        ...

    @property
    def dropped(self) -> Sequence[Message]:
        """Given at the one turn alone."""
        ...


def context_lines(context: Context) -> Iterator[str]:
    """All that a model read at a turn."""
    whom = f"{one_line(context.provider)}/{one_line(context.model)}"
    yield f"turn {context.turn}{_of(context)}: what {whom} was given"
    if context.system_prompt is None:
        yield "system prompt: not in this log"
    elif context.system_prompt:
        yield "system prompt:"
        yield from indented(context.system_prompt)
    yield f"tools: {_tools(context)}"
    for message in context.messages:
        yield from _message(message)
    for given in context.missing:
        yield f"{one_line(given)}: made by a hook; not in this log"


def context_json(context: Context) -> dict[str, Any]:
    """All that a model read at a turn, as an object."""
    return {
        "turn": context.turn,
        "agent": context.agent,
        "provider": context.provider,
        "model": context.model,
        "system_prompt": context.system_prompt,
        "tools": context.tools,
        "messages": context.messages,
        "missing": context.missing,
    }


def change_lines(change: ContextChange) -> Iterator[str]:
    """What changed from one turn to another."""
    before, after = change.before, change.after
    yield f"turn {before.turn} to {after.turn}{_of(after)}: what changed in what was given"
    for name in ("provider", "model"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield f"{name}: {one_line(old)} to {one_line(new)}"
    if before.system_prompt != after.system_prompt:
        yield "system prompt, before:"
        yield from indented(_prompt(before))
        yield "system prompt, after:"
        yield from indented(_prompt(after))
    if before.tools != after.tools:
        yield f"tools, before: {_tools(before)}"
        yield f"tools, after: {_tools(after)}"
    for message in change.dropped:
        yield from _message(message, "- ")
    for message in change.added:
        yield from _message(message, "+ ")
    if not (change.dropped or change.added):
        yield "no message was added or dropped"


def change_json(change: ContextChange) -> dict[str, Any]:
    """What changed from one turn to another, as an object."""
    fields = ("turn", "agent", "provider", "model", "system_prompt", "tools")
    return {
        "before": {name: getattr(change.before, name) for name in fields},
        "after": {name: getattr(change.after, name) for name in fields},
        "added": change.added,
        "dropped": change.dropped,
    }


def _of(context: Context) -> str:
    return "" if context.agent is None else f" of {one_line(context.agent)}"


def _prompt(context: Context) -> str:
    return "(not in this log)" if context.system_prompt is None else context.system_prompt


def _tools(context: Context) -> str:
    if context.tools is None:
        return "not in this log"
    return ", ".join(one_line(str(tool.get("name"))) for tool in context.tools) or "none"


def _message(message: Message, sign: str = "") -> Iterator[str]:
    # What stood before the first prompt comes from the plan, in which nothing is sure.
    given, role, name, call = (
        one_line(str(message.get(key, ""))) for key in ("id", "role", "tool_name", "tool_call_id")
    )
    of = f" of {name} ({call})" if role == "tool_result" else ""
    error = ", an error" if message.get("is_error") else ""
    yield f"{sign}{given} {role}{of}{error}:"
    yield from content(message.get("content"), f"{sign}    ")
    yield from calls(message.get("content"), f"{sign}    ")
