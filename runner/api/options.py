"""What a run is asked for, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from runner.error import Status

if TYPE_CHECKING:
    import asyncio

    from runner.engine.run import Run


OnEvent = Callable[[dict[str, Any]], None]
"""Gets each event of a run, as it stands in the log."""
OnLine = Callable[[str], None]
"""Gets the log's lines, one or more at once, each with its line break."""


@dataclass(slots=True, frozen=True)
class Asked:
    """What a run asks a person. No text in it has a secret."""

    kind: Literal["permission", "question"]
    """Whether a call may be run, or what the model asks."""
    text: str
    """The question; of a permission what the call would change, where its tool can tell."""
    tool_name: str | None = None
    """The tool that needs permission."""
    tool_call_id: str | None = None
    """The call that needs it."""
    arguments: Any = None
    """What it is called with."""


Ask = Callable[[Asked], Awaitable[str | None]]
"""Puts a question to a person, and gives the answer: to a permission ``allow`` or ``deny``. None
where nobody gave one. An abort cancels it."""


@dataclass(slots=True)
class RunOptions:
    """How a spec is to be run. The defaults are those of ``pi-run SPEC`` with no option."""

    values: dict[str, Any] = field(default_factory=dict)
    """Inputs as JSON values."""
    texts: dict[str, str] = field(default_factory=dict)
    """Inputs as text, which is read by the type that the spec declares."""
    sets: list[tuple[str, str]] = field(default_factory=list)
    """Changes to the spec: a PATH in it and the YAML text of a value."""
    prompt: str | None = None
    """Instead of the spec's; it is no template."""
    model: str | None = None
    """``provider/id``, instead of the spec's."""
    log: str | None = None
    """The log's path; ``none`` for no log; None for where the spec, or pi-run, puts it."""
    frozen: bool = False
    """Whether the log is written in its canonical form."""
    durable: bool = False
    """Whether the log is synced to the disk at each write point."""
    yes: bool = False
    """Whether every question that permissions ask is answered with yes."""
    require_expect: bool = False
    """Whether a spec that expects nothing is an error."""
    workspace: str | None = None
    """Instead of the spec's, relative to the current folder."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """The environment that the run sees."""
    interactive: bool = False
    """Whether a person can be asked who sits at the terminal."""
    ask: Ask | None = None
    """Asks a person who does not."""
    paced: bool = False
    """Whether it is one of many, which slow down together where a model's server refuses some."""


@dataclass(slots=True)
class RunResult:
    """What came of a run. No text in it has a secret."""

    name: str
    """The spec's name."""
    path: str
    """The spec's file, as it was given."""
    run_id: str
    status: Status
    exit_code: int
    text: str
    """The final text; of a run that had to end, what was reached so far."""
    output: Any
    """The parsed value, where the spec declares an output."""
    usage: dict[str, int]
    """Tokens: ``input``, ``output``, ``cache_read``, ``cache_write``, ``reasoning``."""
    cost_usd: float | None
    """None where a price is not known."""
    turns: int
    tool_calls: int
    seconds: float
    log: str | None
    """The log's path."""
    expectations: list[dict[str, Any]]
    """``{task_id, kind, passed, detail, file, line, column}`` each."""
    error: str | None
    """Why the status is not ``ok``, in one line."""


class Control:
    """A hand on a run in progress."""

    def __init__(self) -> None:
        self._run: Run | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early: list[Callable[[Run], None]] = []
        self.on_abort: list[Callable[[], None]] = []
        """Called at an abort, by those who may be waiting for something else."""
        self.at_rest: Callable[[], Awaitable[None]] | None = None
        """Awaited in the run's loop when it rests and nothing is queued: what it queues is done."""

    def abort(self, signal: int | None = None) -> None:
        """End the run, from any thread; its log is closed properly. ``signal``: what caused it."""
        for stop in self.on_abort:
            stop()
        self._do(lambda run: run.abort(signal))

    def steer(self, text: str) -> None:
        """Queue a message for the run's next turn, from any thread."""
        self._do(lambda run: run.steer(text))

    def follow_up(self, text: str) -> None:
        """Queue a message for when the run would stop, from any thread."""
        self._do(lambda run: run.follow_up(text))

    def follow_up_now(self, text: str) -> None:
        """As `follow_up`, in the run's loop: it is queued when this returns."""
        if self._run is not None:
            self._run.follow_up(text)

    @property
    def used(self) -> tuple[int, float]:
        """Tokens and USD that the run has used so far, in the run's loop; 0 before it began."""
        if self._run is None:
            return 0, 0.0
        from runner.engine.message import tokens_of

        meter = self._run.session.meter
        return tokens_of(meter.usage), meter.cost_usd

    def _attach(self, run: Run) -> None:
        """Take hold of a run that is about to begin, in its loop's thread."""
        from asyncio import get_running_loop

        self._run, self._loop = run, get_running_loop()
        run.session.at_rest = self.at_rest
        for act in self._early:
            act(run)
        self._early.clear()

    def _do(self, act: Callable[[Run], None]) -> None:
        if self._run is None or self._loop is None:
            self._early.append(act)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act, self._run)
