"""A plan run by an agent, and agents that run inside another's task or tool call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from runner.engine.contract import Cancellation, ToolResult, Update
from runner.engine.limit import Meter, Reached
from runner.engine.loop import limit_ending, run_loop
from runner.engine.message import user_message
from runner.engine.options import Ending
from runner.engine.plan import Expected, Finished, Outcome, Plan
from runner.engine.session import Session, current
from runner.engine.workflow import Workflow
from runner.json_text import line


async def run_plan(plan: Plan, session: Session) -> Outcome:
    """Run a plan from ``agent_start`` to its last expectation.

    When it is cancelled, the run ends as aborted, with all its events, before that goes on.
    """
    running = asyncio.ensure_future(_run_plan(plan, session))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        session.abort(Ending("aborted", "it was cancelled"))
        await running
        raise


async def _run_plan(plan: Plan, session: Session) -> Outcome:
    workflow = Workflow(plan, session, run_sub_agent)
    for text in plan.follow_ups:
        session.follow_up.put(user_message(text), "spec")
    timer = _time_limit(session)
    try:
        ending = await run_loop(session, (), workflow)
        while workflow.outlives(ending):
            if not workflow.has_more:
                ending = Ending("ok")
                break
            ending = await run_loop(session, (), workflow)
    finally:
        if timer is not None:
            timer.cancel()
    outcome = Outcome(ending, workflow.text, workflow.output, workflow.expected)
    if ending.status == "ok":
        await _expect(plan, session, outcome)
    return outcome


def _time_limit(session: Session) -> asyncio.TimerHandle | None:
    seconds = session.options.limits.seconds
    if seconds is None:
        return None
    # The value is the limit itself: the exact time would differ from run to run.
    reached = Reached("seconds", seconds, seconds, id(session))
    left = max(0.0, seconds - (session.emitter.elapsed if session.path is None else 0.0))
    loop = asyncio.get_running_loop()
    return loop.call_later(left, session.abort, limit_ending(reached))


async def _expect(plan: Plan, session: Session, outcome: Outcome) -> None:
    """Hold the plan's expectations against the whole run; one that is not met fails it."""
    meter = session.meter
    finished = Finished(
        "main",
        outcome.ending.status,
        outcome.text,
        outcome.output,
        meter.turns,
        meter.calls,
        meter.usage,
        meter.cost,
        session.emitter.elapsed,
    )
    for expectation in plan.expect:
        verdict = await expectation.check(finished)
        outcome.expected.append(Expected("main", expectation, verdict))
        session.emit(
            {
                "type": "expectation",
                "task_id": "main",
                "kind": expectation.kind,
                "passed": verdict.passed,
                "detail": verdict.detail,
            }
        )
    missed = [one for one in outcome.expected if not one.verdict.passed]
    if missed:
        more = f" (and {len(missed) - 1} more)" if len(missed) > 1 else ""
        first = missed[0]
        detail = f"{first.expectation.kind}: {first.verdict.detail}{more}"
        outcome.ending = Ending("failed", f"an expectation was not met: {detail}")


async def run_sub_agent(plan: Plan, parent: Session) -> Outcome:
    """Run a plan inside an agent's task or tool call: its events, usage and limits are both's.

    An abort of the parent reaches it. Too many agents within agents are an error.
    """
    meter = Meter(plan.options.limits, parent.meter)
    if (deepest := _deepest(parent.meter)) is not None and meter.depth > deepest:
        error = f"the limit depth of {deepest} agents within agents is reached"
        return Outcome(Ending("error", error))
    parent.agents[plan.name] += 1
    path = f"{parent.path or 'main'}/{plan.name}#{parent.agents[plan.name]}"
    session = Session(plan.options, parent.emitter, meter, parent.clock, path)
    off = parent.cancellation.on_cancel(
        lambda: session.abort(parent.aborted_as or Ending("aborted", "it was aborted"))
    )
    try:
        return await run_plan(plan, session)
    finally:
        off()
        for close in plan.close:
            await close()


def _deepest(meter: Meter) -> int | None:
    """How deep agents may stand within agents, by the run's own limit."""
    while meter.parent is not None:
        meter = meter.parent
    return meter.limits.depth


@dataclass(slots=True)
class AgentTool:
    """Another plan as a tool: its inputs are the parameters, what it says is the result."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    bind: Callable[[dict[str, Any]], Plan]
    """Makes the plan with these inputs; what it raises is told to the model."""
    checks: Callable[[dict[str, Any]], list[str]]
    """All ways in which arguments don't fit."""
    execution: Literal["parallel", "sequential"] = "parallel"
    idempotent: bool = False
    timeout: float | None = None

    @property
    def label(self) -> str:
        """The name for people."""
        return self.name

    def check(self, arguments: dict[str, Any]) -> list[str]:
        """All ways in which arguments don't fit the parameters."""
        return self.checks(arguments)

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Run the agent. Its output is the result where it has one, its text where not."""
        parent = current.get()
        outcome = await run_sub_agent(self.bind(params), parent)
        ending = outcome.ending
        if ending.status == "denied":
            parent.stopping = ending
        if ending.status != "ok":
            said = f"\nIt said so far: {outcome.text}" if outcome.text else ""
            text = f"The agent {self.name} ended as {ending.status}: {ending.error}{said}"
            return ToolResult(text, is_error=True)
        return ToolResult(outcome.text if outcome.output is None else line(outcome.output))
