"""A whole run: a plan between its ``run_start`` and its ``run_end``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

from runner.engine.contract import Clock
from runner.engine.emit import Emitter
from runner.engine.event import RunEnd, RunResume, RunStart
from runner.engine.limit import Meter
from runner.engine.message import as_message
from runner.engine.options import Ending
from runner.engine.plan import Expected, Outcome, Plan
from runner.engine.session import Session
from runner.engine.sub_agent import AgentRun
from runner.engine.work import outlast
from runner.error import BUG, describe, exit_code


@dataclass(slots=True)
class Ended:
    """How a run ended."""

    event: RunEnd
    """As it went out: numbered and redacted."""
    expected: list[Expected] = field(default_factory=list)
    bug: Exception | None = None
    log_error: Exception | None = None
    """Why the log could not be written."""


class Run:
    """One run of a plan.

    ``steer``, ``follow_up`` may be called from any thread, `abort` in the loop's thread.
    """

    def __init__(self, plan: Plan, start: RunStart, emitter: Emitter, clock: Clock) -> None:
        self._plan = plan
        self._start = start
        self._emitter = emitter
        self._log_error: Exception | None = None
        meter = Meter(plan.options.limits)
        self.session = Session(plan.options, emitter, meter, clock)
        self._work = AgentRun(plan, self.session)
        emitter.on_sink_error = self._log_failed

    def steer(self, message: Any) -> None:
        """Queue a message for the next turn."""
        self.session.steering.put(as_message(message), "api")

    def follow_up(self, message: Any) -> None:
        """Queue a message for when the agent would stop."""
        self.session.follow_up.put(as_message(message), "api")

    def abort(self, signal: int | None = None) -> None:
        """End the run: its stream and its tools are stopped, its log is closed properly."""
        names = {2: "it was interrupted", 15: "it was terminated"}
        self.session.abort(
            Ending("aborted", names.get(signal or 0, "it was aborted"), signal=signal)
        )

    async def execute(self) -> Ended:
        """Run it. Never raises for what happens in it."""
        self._emitter.emit(self._start)
        for one in self._plan.unavailable:
            self._emitter.emit({"type": "tool_unavailable", "tool": one.tool, "reason": one.reason})
        return await self._run()

    async def go_on(self, resume: RunResume, plan: Plan | None = None) -> Ended:
        """Go on after it had to end, as `execute`; ``plan`` is what it goes on by, if another."""
        if plan is not None:
            self.adopt(plan)
        self.session.begin()
        self._emitter.begin_again()
        self._emitter.emit(resume)
        return await self._run()

    def limit_time(self) -> None:
        """Begin to count the run's time anew, on top of what it had taken."""
        self._work.limit_time()

    def adopt(self, plan: Plan) -> None:
        """Go on by another plan: what is to come of the run is done by it."""
        self._plan = plan
        self._work.adopt(plan)

    async def _run(self) -> Ended:
        """Run it to its ``run_end``, also when this is cancelled: that ends it as aborted."""
        cancelled = False

        def cancel() -> None:
            nonlocal cancelled
            cancelled = True
            self.session.cancelled()

        running = asyncio.ensure_future(self._run_whole())
        await outlast(running, cancel)
        if cancelled:
            raise asyncio.CancelledError
        return running.result()

    async def _run_whole(self) -> Ended:
        await self.session.settle()
        missing = next((one for one in self._plan.unavailable if one.needed), None)
        try:
            if missing is None or self.session.aborted_as is not None:
                outcome = await self._work.run()
            else:
                outcome = Outcome(Ending("error", missing.reason))
        except asyncio.CancelledError:
            outcome = Outcome(Ending("aborted", "it was cancelled"))
        bug = await self._plan.let_go()
        if bug is not None and outcome.ending.bug is None:
            outcome.ending = Ending("error", f"it can't be closed: {describe(bug)}", bug=bug)
        event = self._emitter.emit(self._end(outcome))
        await self.session.settle()
        return Ended(cast("RunEnd", event), outcome.expected, outcome.ending.bug, self._log_error)

    def _end(self, outcome: Outcome) -> RunEnd:
        ending, meter = outcome.ending, self.session.meter
        code = BUG if ending.bug is not None else exit_code(ending.status, ending.signal)
        end: RunEnd = {
            "type": "run_end",
            "status": ending.status,
            "exit_code": code,
            "text": outcome.text,
            "output": outcome.output,
            "turns": meter.turns,
            "tool_calls": meter.tool_calls,
            "usage": meter.usage,
            "cost_usd": meter.cost,
            "seconds": round(self._emitter.elapsed, 3),
        }
        if ending.error is not None:
            end["error"] = ending.error
        # Before it is told, so that what is taken out of itself counts too.
        shown: RunEnd = self._emitter.redacted(end)
        if self._emitter.redactions:
            shown["redactions"] = self._emitter.redactions
        return shown

    def _log_failed(self, error: Exception) -> None:
        self._log_error = error
        self.session.abort(Ending("error", describe(error)))
