"""The events of a run, each with a line on when it comes. Logs, views and replays use nothing else.

An event is a JSON object and, as it is, a line of the log. Those who emit write ``type`` and its
own fields; the emitter puts ``seq``, ``t`` and, for a sub-agent, ``agent`` in front. `schemas/
log.schema.json` is generated from this module.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from runner.engine.message import Block, Message, StopReason, Usage
from runner.error import Status

FORMAT = "pi-run-log/1"
"""The name and major number of the log's format."""


class _Event(TypedDict):
    """What every event begins with."""

    seq: NotRequired[int]
    """Counts the lines of a log from 0, without a gap."""
    t: NotRequired[float]
    """Seconds since the run's start."""
    agent: NotRequired[str]
    """A path such as ``main/reviewer#1``; only on a sub-agent's events."""


class SpecRef(TypedDict):
    """The spec that a run was made from."""

    name: str
    path: NotRequired[str]
    sha256: str
    """Of the file's bytes."""


class ForkedFrom(TypedDict):
    """The run that a run was forked from."""

    run_id: str
    turn: int
    overrides: list[str]
    """Ids of the messages and calls that were replaced."""


class RunStart(_Event):
    """First of all."""

    type: Literal["run_start"]
    format: str
    run_id: NotRequired[str]
    runner_version: NotRequired[str]
    started_at: NotRequired[str]
    """ISO 8601, UTC."""
    spec: SpecRef
    plan: dict[str, Any]
    """The spec as resolved, rendered and defaulted, with all that a replay needs and no secret."""
    inputs: dict[str, Any]
    forked_from: NotRequired[ForkedFrom]


class AgentStart(_Event):
    """An agent begins to work: once a run, and again after an error that the run outlives."""

    type: Literal["agent_start"]


class Queued(TypedDict):
    """A message that no turn took."""

    queue: str
    """``steering`` or ``follow_up``."""
    message: dict[str, Any]


class AgentEnd(_Event):
    """The agent rests: done, failed, stopped or at a limit."""

    type: Literal["agent_end"]
    stop_reason: StopReason | None
    """The last answer's; null where there was none."""
    message_ids: list[str]
    """All that joined the history since the agent's start."""
    queued: list[Queued]
    """What was not taken, in its queue's order."""


class TaskStart(_Event):
    """A task of the chain begins; a repeated task begins once an iteration."""

    type: Literal["task_start"]
    task_id: str
    iteration: int
    """Counted from 1."""
    item: NotRequired[Any]
    """The item of a ``for_each``."""


class TaskEnd(_Event):
    """A task ended, or was skipped."""

    type: Literal["task_end"]
    task_id: str
    iteration: int
    item: NotRequired[Any]
    status: str
    """``skipped``, or a status as of a run."""
    text: str
    output: Any
    skipped: NotRequired[str]
    """Why it was skipped."""
    warning: NotRequired[str]


class TurnStart(_Event):
    """Before a turn's messages: a turn is one model call with its tools."""

    type: Literal["turn_start"]
    turn: int


class TurnEnd(_Event):
    """After the last result of a turn joined the history."""

    type: Literal["turn_end"]
    turn: int
    stop_reason: StopReason
    message_id: str | None
    """The answer's; null where a hook failed before there was one."""
    tool_result_ids: list[str]


class MessageStart(_Event):
    """A message begins: an answer with its first content, any other just before its end."""

    type: Literal["message_start"]
    message: dict[str, Any]
    """The message; an answer is empty but for ``id``, ``role``, ``model`` and ``provider``."""


class Delta(TypedDict):
    """A piece of an answer."""

    kind: Literal["text", "thinking", "tool_call"]
    index: int
    """The place of its block in the answer's content."""
    text: NotRequired[str]
    arguments: NotRequired[str]
    id: NotRequired[str]
    """With the first piece of a tool call."""
    name: NotRequired[str]
    """With the first piece of a tool call."""


class MessageUpdate(_Event):
    """A delta arrived."""

    type: Literal["message_update"]
    message_id: str
    delta: Delta


class MessageEnd(_Event):
    """A message is whole."""

    type: Literal["message_end"]
    message: Message


class ToolExecutionStart(_Event):
    """Before anything of a call is done; on disk before its tool runs."""

    type: Literal["tool_execution_start"]
    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any] | str


class ToolExecutionUpdate(_Event):
    """A running tool tells how far it is."""

    type: Literal["tool_execution_update"]
    tool_call_id: str
    tool_name: str
    update: Any


class Result(TypedDict):
    """What a call came to."""

    content: list[Block]
    details: NotRequired[Any]


class ToolExecutionEnd(_Event):
    """A call is done, as each finishes; also one that was not run."""

    type: Literal["tool_execution_end"]
    tool_call_id: str
    tool_name: str
    result: Result
    is_error: bool
    seconds: NotRequired[float]
    terminate: NotRequired[bool]
    """True where it says that the model need not be asked again."""
    stopped: NotRequired[str]
    """Why it was stopped, or not begun, where the run or its own time was up."""


class ContextChange(TypedDict):
    """How a request's messages differ from those of the agent's request before, by id."""

    added: list[str]
    dropped: list[str]


class ModelRequest(_Event):
    """Just before a request is sent, once an attempt."""

    type: Literal["model_request"]
    model: str
    provider: str
    attempt: int
    """Counts the requests of one model call from 1."""
    context_digest: str
    """SHA-256 of the canonical JSON of all that is sent, in its redacted form, without the key."""
    system_digest: str
    tools_digest: str
    context_change: ContextChange


class ModelRetry(_Event):
    """A request failed, and another will be made."""

    type: Literal["model_retry"]
    attempt: int
    """The one that failed."""
    delay: float
    """Seconds; the longest that is waited, of which a random part is left out."""
    error: str
    fallback: NotRequired[str]
    """The model that is asked next, where it is another."""


class HookDecision(_Event):
    """A hook did something other than let pass."""

    type: Literal["hook_decision"]
    hook: str
    """The extension point's name."""
    tool_call_id: NotRequired[str]
    action: Literal["block", "rewrite", "replace", "fail"]
    reason: NotRequired[str]
    arguments: NotRequired[dict[str, Any]]
    stop: NotRequired[bool]
    """True where a block also ends the run."""
    on_error: NotRequired[str]
    """With ``fail``: what became of it."""


class MessageQueued(_Event):
    """A message joined a queue."""

    type: Literal["message_queued"]
    queue: Literal["steering", "follow_up"]
    source: str
    """``spec``, ``api``, or ``hook``."""
    message: dict[str, Any]


class LimitReached(_Event):
    """The run would go on and may not."""

    type: Literal["limit_reached"]
    limit: str
    value: float
    allowed: float | None


class Expectation(_Event):
    """An expectation was held against a task (or, after the agent's end, against the run)."""

    type: Literal["expectation"]
    task_id: str
    kind: str
    passed: bool
    detail: str


class ToolUnavailable(_Event):
    """A tool that the run can do without could not be had."""

    type: Literal["tool_unavailable"]
    tool: str
    reason: str


class RunResume(_Event):
    """The run goes on in the same log. The lists are of tool call ids."""

    type: Literal["run_resume"]
    at_seq: int
    """The last line before it."""
    reason: str
    """How the run had ended: ``killed``, or its status."""
    kept: list[str]
    rerun: list[str]
    unknown: list[str]
    not_started: list[str]
    plan: NotRequired[dict[str, Any]]
    """The plan that the run goes on by, where it is another."""


class RunEnd(_Event):
    """Last of all, exactly once, however the run ended."""

    type: Literal["run_end"]
    status: Status
    exit_code: int
    text: str
    output: Any
    turns: int
    tool_calls: int
    usage: Usage
    cost_usd: float | None
    seconds: NotRequired[float]
    error: NotRequired[str]
    """Why the run did not end as ``ok``, in one line."""
    redactions: NotRequired[int]
    """How many values were taken out of this log; there where it is not 0."""


Event = (
    RunStart
    | AgentStart
    | AgentEnd
    | TaskStart
    | TaskEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | ModelRequest
    | ModelRetry
    | HookDecision
    | MessageQueued
    | LimitReached
    | Expectation
    | ToolUnavailable
    | RunResume
    | RunEnd
)

VOLATILE: dict[str, frozenset[str]] = {
    "run_start": frozenset(("run_id", "started_at", "runner_version")),
    "tool_execution_end": frozenset(("seconds",)),
    "run_end": frozenset(("seconds",)),
}
"""The fields, besides ``t`` and ``spec.path``, that differ between two runs of the same thing."""
