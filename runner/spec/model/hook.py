"""``hooks``: what looks at a run at its extension points, and may change its course."""

from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from runner.spec.mark import Expression, Private, Program, Regex, Target
from runner.spec.model.map import Map
from runner.spec.model.scalar import Count, Seconds, Text, Whole
from runner.spec.model.tool import HeaderSecret

Condition = Annotated[str, Expression("args", "tool_name", "tool_call_id")]


class Hook(Map):
    """What stands at an extension point: Python, or a program."""

    one_of: ClassVar[tuple[str, ...]] = ("python", "command")

    python: Annotated[str, Target()] | None = None
    """A function of one argument: `PATH.py:NAME`, or `package.module:NAME`."""
    command: Annotated[list[Text], Program()] | None = None
    """A program with its arguments: it gets JSON on stdin, and answers with JSON on stdout."""
    timeout: Seconds | None = None
    """Seconds after which it has failed."""
    env: dict[str, Text | Annotated[HeaderSecret, Private()]] | None = None
    """Variables of a program's environment, the only ones besides the few that all get: templates,
    or where a secret comes from. Without it the environment is that of pi-run, less what is
    secret."""
    on_error: Literal["block", "warn", "fail"] | None = None
    """What its failure does: blocks the call, is told and passed over, or ends the run."""


class Trim(Map):
    """Leave out the oldest messages of what the model sees."""

    max_tokens: Count
    """About how many tokens may be left."""


class Deny(Map):
    """Block a call."""

    tool: str
    """The tool's name, or a pattern such as `*`."""
    when: Condition | None = None
    """Only if this holds; it sees `args`, `tool_name` and `tool_call_id`."""
    reason: str | None = None
    """What the model is told."""


class Allow(Map):
    """Let a call pass without asking the hooks after this one."""

    tool: str
    """The tool's name, or a pattern such as `*`."""
    when: Condition | None = None
    """Only if this holds; it sees `args`, `tool_name` and `tool_call_id`."""


class Set(Map):
    """Lay arguments over those of a call."""

    tool: str
    """The tool's name, or a pattern such as `*`."""
    args: dict[str, Any]
    """The arguments; each replaces the one of its name."""
    when: Condition | None = None
    """Only if this holds; it sees `args`, `tool_name` and `tool_call_id`."""


class Redact(Map):
    """Replace what matches in a result."""

    pattern: Annotated[str, Regex()]
    """A regular expression."""
    with_: str = "[redacted]"
    """What stands in its place."""


class Truncate(Map):
    """Cut a long result."""

    max_chars: Whole
    """How many characters are left."""


class ContextHook(Hook):
    """Changes what the model sees, not the history."""

    one_of: ClassVar = ("python", "command", "trim")

    trim: Trim | None = None
    """Leave out the oldest messages."""


class BeforeHook(Hook):
    """Looks at a call before it runs: blocks it, rewrites it, or lets it pass."""

    one_of: ClassVar = ("python", "command", "deny", "allow", "set")

    deny: Deny | None = None
    """Block it."""
    allow: Allow | None = None
    """Let it pass at once."""
    set: Set | None = None
    """Lay arguments over its own."""


class AfterHook(Hook):
    """Looks at a result before anyone else does."""

    one_of: ClassVar = ("python", "command", "redact", "truncate")

    redact: Redact | None = None
    """Replace what matches."""
    truncate: Truncate | None = None
    """Cut it."""


class StopHook(Hook):
    """Ends the run after a turn, as done."""

    one_of: ClassVar = ("python", "command", "when")

    when: Annotated[str, Expression("turn")] | None = None
    """Stop if this holds; it also sees `turn`, with the answer's `text`."""


class Hooks(Map):
    """The extension points. What stands at one is asked in the order of the list."""

    transform_context: list[ContextHook] = field(default_factory=list)
    """Before each model call: messages in, messages out."""
    convert_to_llm: list[Hook] = field(default_factory=list)
    """What a model sees of messages whose role it doesn't know."""
    before_tool_call: list[BeforeHook] = field(default_factory=list)
    """Before a call runs."""
    after_tool_call: list[AfterHook] = field(default_factory=list)
    """Before a result is seen by anyone."""
    stop_after_turn: list[StopHook] = field(default_factory=list)
    """At each turn's end: whether the run is done."""
    steering_messages: list[Hook] = field(default_factory=list)
    """Asked at each turn's end for messages that redirect the run."""
    follow_up_messages: list[Hook] = field(default_factory=list)
    """Asked for more messages when the run is about to stop."""
