"""A plan run by its agent, and agents that run inside another's task or tool call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from runner.engine.contract import Cancellation, ToolResult, Update
from runner.engine.limit import Meter
from runner.engine.loop import run_loop
from runner.engine.message import user_message
from runner.engine.options import Ending
from runner.engine.plan import Finished, Outcome, Plan
from runner.engine.session import Session, agents_below, current
from runner.engine.work import outlast
from runner.engine.workflow import Workflow, hold
from runner.error import describe
from runner.json_text import line


class AgentRun:
    """A plan and the agent that runs it, from ``agent_start`` to its last expectation.

    A run that ended before its work was done can be run again: it goes on where it was.
    """

    def __init__(self, plan: Plan, session: Session) -> None:
        self.plan = plan
        self.session = session
        self.workflow = Workflow(plan, session, nested)
        self._timer: asyncio.TimerHandle | None = None
        for text in plan.follow_ups:
            session.follow_up.put(user_message(text), "spec")

    def adopt(self, plan: Plan) -> None:
        """Go on by another plan: its model, prompt, tools, hooks, limits and tasks to come."""
        self.plan = plan
        self.session.adopt(plan.options)
        self.workflow.adopt(plan)

    async def run(self) -> Outcome:
        """Run it, or go on.

        When it is cancelled it ends as aborted, with all its events.
        """
        running = asyncio.ensure_future(self._run())
        await outlast(running, self.session.cancelled)
        return running.result()

    async def _run(self) -> Outcome:
        workflow, session = self.workflow, self.session
        self.limit_time()
        try:
            ending = await run_loop(session, (), workflow)
            while workflow.leaves_behind(ending):
                if not workflow.has_more:
                    ending = Ending("ok")
                    break
                ending = await run_loop(session, (), workflow)
        finally:
            if self._timer is not None:
                self._timer.cancel()
        outcome = Outcome(ending, workflow.text, workflow.output, workflow.expected, session.meter)
        if ending.status == "ok":
            await _expect(self.plan, session, outcome)
        return outcome

    def limit_time(self) -> None:
        """End the run when its time is up, counted from now on or from the run's start."""
        session = self.session
        if self._timer is not None:
            self._timer.cancel()
        self._timer = session.limit_time(session.emitter.elapsed if session.path is None else 0.0)


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
    outcome.expected += await hold(session, plan.expect, finished)
    missed = [one for one in outcome.expected if not one.verdict.passed]
    if missed:
        more = f" (and {len(missed) - 1} more)" if len(missed) > 1 else ""
        first = missed[0]
        detail = f"{first.expectation.kind}: {first.verdict.detail}{more}"
        outcome.ending = Ending("failed", f"an expectation was not met: {detail}")


def sub_agent(plan: Plan, parent: Session) -> SubAgent | Ending:
    """An agent inside another's task or tool call, or how that ends where there are too many."""
    return nested(lambda: plan, parent)


def nested(make: Callable[[], Plan], parent: Session) -> SubAgent | Ending:
    """As `sub_agent`, of a plan that is only made where it may be run.

    Raises:
        Exception: what making it raises.
    """
    if (deepest := _deepest(parent.meter)) is not None and parent.meter.depth >= deepest:
        return Ending("error", f"the limit depth of {deepest} agents within agents is reached")
    plan = make()
    meter = Meter(plan.options.limits, parent.meter)
    parent.agents[plan.name] += 1
    path = f"{parent.path or 'main'}/{plan.name}#{parent.agents[plan.name]}"
    session = Session(plan.options, parent.emitter, meter, parent.clock, path)
    return SubAgent(parent, AgentRun(plan, session))


@dataclass(slots=True, eq=False)
class SubAgent:
    """An agent in another's care: its events, usage and limits are both's."""

    parent: Session
    work: AgentRun

    async def run(self) -> Outcome:
        """Run it, or go on with it. An abort of the parent reaches it."""
        parent, session = self.parent, self.work.session
        session.begin()
        off = parent.cancellation.on_cancel(
            lambda: session.abort(parent.aborted_as or Ending("aborted", "it was aborted"))
        )
        beside = agents_below.get(set())
        beside.add(self)
        try:
            outcome = await self.work.run()
        finally:
            beside.discard(self)
            off()
            bug = await self.work.plan.let_go()
        if bug is not None and outcome.ending.bug is None:
            outcome.ending = Ending("error", f"it can't be closed: {describe(bug)}", bug=bug)
        return outcome


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
        agent = nested(lambda: self.bind(params), parent)
        outcome = Outcome(agent) if isinstance(agent, Ending) else await agent.run()
        ending = outcome.ending
        if ending.status == "denied" or ending.bug is not None:
            parent.stopping = ending
        if ending.status != "ok":
            said = f"\nIt said so far: {outcome.text}" if outcome.text else ""
            text = f"The agent {self.name} ended as {ending.status}: {ending.error}{said}"
            return ToolResult(text, is_error=True)
        return ToolResult(outcome.text if outcome.output is None else line(outcome.output))
