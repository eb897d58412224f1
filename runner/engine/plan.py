"""A plan: a whole workflow, ready to be run. Whatever text it was made of is compiled away."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from runner.engine.limit import MadeCall, Meter
from runner.engine.message import Message, Usage
from runner.engine.options import AgentOptions, Ending
from runner.error import Fault


@dataclass(slots=True)
class TaskResult:
    """What a task came to, as templates and later tasks see it."""

    text: str = ""
    output: Any = None
    status: str = "ok"
    """``skipped``, or a status as of a run."""


Scope = Mapping[str, Any]
"""What a condition or a template of a task sees besides what the plan has bound: ``tasks`` (by id,
`TaskResult` each), ``task`` (in ``until``), ``item`` (in ``for_each``)."""


@dataclass(slots=True)
class Finished:
    """What an expectation is held against: a task, or a run."""

    task_id: str
    status: str
    text: str
    output: Any
    turns: int
    calls: Sequence[MadeCall]
    """In the order of their starts, those of sub-agents included."""
    usage: Usage
    cost_usd: float | None
    seconds: float


@dataclass(slots=True)
class Verdict:
    """Whether an expectation was met."""

    passed: bool
    detail: str
    """What was expected and what was there."""


@dataclass(slots=True)
class Expectation:
    """Something that is to hold when a task or a run is done."""

    kind: str
    """As it stands in a spec, such as ``contains``."""
    check: Callable[[Finished], Awaitable[Verdict]]
    """Must not raise."""
    place: Fault | None = None
    """Where it stands in the spec."""


@dataclass(slots=True)
class OutputCheck:
    """What the answer of the main task must be, besides text."""

    read: Callable[[str], tuple[Any, str | None]]
    """Text → its value, and what is wrong with it, as a sentence for the model."""
    retries: int = 2


@dataclass(slots=True)
class Repeat:
    """A task that is run until a condition holds."""

    until: Callable[[Scope], bool]
    max: int


@dataclass(slots=True)
class Task:
    """One task of a chain: a prompt in the same conversation, or another agent.

    The callables may raise ``TemplateError``, which ends the run.
    """

    id: str
    prompt: Callable[[Scope], str] | None = None
    agent: Callable[[Scope], Plan] | None = None
    when: Callable[[Scope], bool] | None = None
    when_text: str = ""
    """The condition as it was written."""
    repeat: Repeat | None = None
    for_each: Callable[[Scope], Sequence[Any]] | None = None
    max_parallel: int = 4
    on_error: Literal["stop", "continue"] = "stop"
    expect: Sequence[Expectation] = ()


@dataclass(slots=True)
class Unavailable:
    """A tool, or a server of tools, that could not be had."""

    tool: str
    reason: str
    needed: bool = False
    """Whether nothing can be done without it."""


@dataclass(slots=True)
class Plan:
    """A workflow: an agent, its first prompt, and the tasks that follow."""

    name: str
    options: AgentOptions
    prompts: Sequence[Message]
    """Of the task ``main``."""
    tasks: Sequence[Task] = ()
    follow_ups: Sequence[str] = ()
    """Queued from the start."""
    output: OutputCheck | None = None
    expect: Sequence[Expectation] = ()
    """Held against the whole run."""
    unavailable: Sequence[Unavailable] = ()
    """What could not be had of its tools, and of those of all agents in it."""
    close: Sequence[Callable[[], Awaitable[None]]] = field(default_factory=tuple)
    """What is let go of when the plan has been run."""

    async def let_go(self) -> Exception | None:
        """Let go of all of it. Gives what was raised, which should be nothing."""
        bug = None
        for close in self.close:
            try:
                await close()
            except Exception as error:
                bug = bug or error
        return bug


@dataclass(slots=True)
class Expected:
    """An expectation and what became of it."""

    task_id: str
    expectation: Expectation
    verdict: Verdict


@dataclass(slots=True)
class Outcome:
    """What running a plan came to."""

    ending: Ending
    text: str = ""
    output: Any = None
    expected: list[Expected] = field(default_factory=list)
    meter: Meter | None = None
    """What it used; None where no agent was run."""
