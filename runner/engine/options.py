"""What an agent is, and how its work can end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from runner.engine.contract import Model, Tool
from runner.engine.hook import Hooks
from runner.engine.limit import Limits, Reached
from runner.engine.message import Message
from runner.engine.queue import QueueMode
from runner.error import Status


@dataclass(slots=True)
class Ending:
    """How an agent's work ended."""

    status: Status
    error: str | None = None
    """Why, in one line, where it is not ``ok``."""
    limit: Reached | None = None
    signal: int | None = None
    """The signal that aborted it."""
    bug: Exception | None = None
    """What escaped where nothing should."""


def limit_ending(reached: Reached) -> Ending:
    """The ending of a run that may not go on."""
    allowed = "" if reached.allowed is None else f" of {reached.allowed:g}"
    return Ending("limit", f"the limit {reached.limit}{allowed} is reached", reached)


@dataclass(slots=True)
class Scheduled:
    """A steering message that is queued at a known point."""

    text: str
    after_turn: int | None = None
    """When this turn ended; 0 is before the start."""
    after_tool: str | None = None
    """When a call of this tool first ended."""


@dataclass(slots=True)
class AgentOptions:
    """What an agent is."""

    model: Model
    fallback: Sequence[Model] = ()
    system_prompt: str = ""
    tools: Sequence[Tool] = ()
    messages: Sequence[Message] = ()
    """The history that it begins with."""
    hooks: Hooks = field(default_factory=Hooks)
    limits: Limits = field(default_factory=Limits)
    tool_execution: Literal["parallel", "sequential"] = "parallel"
    max_parallel_tools: int = 8
    steering_mode: QueueMode = "all"
    interrupt: bool = False
    """Whether steering skips the calls of the turn that have not begun."""
    follow_up_mode: QueueMode = "one_at_a_time"
    scheduled: Sequence[Scheduled] = ()
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema that answers are to fit, for providers that can be told so."""
    grace: float = 2.0
    """Seconds that a tool has to end after it was cancelled."""
