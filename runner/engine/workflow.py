"""A plan's chain of tasks: what an agent is given to do, one thing after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from runner.engine.loop import limit_ending
from runner.engine.message import Message, Usage, text_of, usage_since, user_message
from runner.engine.options import Ending
from runner.engine.plan import Expected, Finished, Outcome, Plan, Task, TaskResult
from runner.engine.session import Session

MAIN = Task("main")
AGAIN = (
    "That answer can't be used: {problem}\n"
    "Answer again with nothing but JSON that fits the schema that was asked for."
)


@dataclass(slots=True)
class _Round:
    """One iteration of a task, from its ``task_start`` to its ``task_end``."""

    task: Task
    iteration: int
    item: Any
    has_item: bool
    first_message: int
    first_call: int
    first_turn: int
    usage_before: Usage
    cost_before: float | None
    started: float


class Workflow:
    """Walks a plan's tasks; the loop asks it for more whenever the agent rests.

    Args:
        plan: The chain.
        session: The agent of its conversation.
        run_agent: Runs the plan of a task that has an agent of its own.
    """

    def __init__(
        self,
        plan: Plan,
        session: Session,
        run_agent: Callable[[Plan, Session], Awaitable[Outcome]],
    ) -> None:
        self._plan = plan
        self._session = session
        self._run_plan = run_agent
        self._waiting = list(plan.tasks)
        self._round: _Round | None = None
        self._items: list[Any] | None = None
        """Those of the task that is being run, if it is one ``for_each``."""
        self._gathered: dict[int, TaskResult] = {}
        """The results of its iterations so far."""
        self._retries = plan.output.retries if plan.output is not None else 0
        self._reviewed = plan.output is None
        self._failed: Task | None = None
        """The task that the last error ended."""
        self.tasks: dict[str, TaskResult] = {}
        self.expected: list[Expected] = []
        self.text = ""
        """Of the last task that was run."""
        self.output: Any = None
        """Of the main task."""

    # --- what the loop asks -----------------------------------------------------------------------

    async def begin(self) -> Sequence[Message] | Ending:
        """The prompts of ``main``; after an error that the run outlived, those of the next task."""
        if "main" in self.tasks or self._failed is not None:
            self._failed = None
            return await self._next_task()
        self._start(MAIN, 1)
        return self._plan.prompts

    async def review(self) -> Sequence[Message] | Ending:
        """Hold the answer of ``main`` against the plan's output, once it fits."""
        if self._reviewed or self._plan.output is None:
            return ()
        value, problem = self._plan.output.read(self._answer_text())
        if problem is None:
            self._reviewed, self.output = True, value
            return ()
        if self._retries == 0:
            return Ending("failed", f"the answer doesn't fit the output's schema: {problem}")
        self._retries -= 1
        return [user_message(AGAIN.format(problem=problem))]

    async def next(self) -> Sequence[Message] | Ending:
        """Close the task that was running; begin the next one."""
        done = self._round
        if done is not None:
            more = await self._close(done, "ok")
            if more:
                if reached := self._session.reached():
                    return limit_ending(reached)
                return self._prompt(done.task, done.iteration + 1)
        return await self._next_task()

    async def end(self, ending: Ending) -> Ending:
        """Close what is open when the agent ends."""
        if self._round is not None:
            task = self._round.task
            self._failed = task if ending.status == "error" else None
            await self._close(self._round, ending.status, last=True)
        return ending

    def outlives(self, ending: Ending) -> bool:
        """Whether the run goes on after an error, as ``on_error: continue`` says."""
        failed = self._failed
        return ending.status == "error" and failed is not None and failed.on_error == "continue"

    @property
    def has_more(self) -> bool:
        """Whether tasks are left."""
        return bool(self._waiting)

    # --- tasks ------------------------------------------------------------------------------------

    async def _next_task(self) -> Sequence[Message] | Ending:
        while self._waiting:
            task = self._waiting[0]
            if task.when is not None and not task.when(self._scope()):
                self._waiting.pop(0)
                self._skip(task, f"its condition is false: {task.when_text}")
                continue
            if reached := self._session.reached():
                return limit_ending(reached)
            self._gathered = {}
            self._items = None
            if task.for_each is not None:
                self._items = list(task.for_each(self._scope()))
                if not self._items:
                    self._waiting.pop(0)
                    self._skip(task, "there is no item")
                    continue
            if task.agent is None:
                prompts = self._prompt(task, 1)
                self._waiting.pop(0)
                return prompts
            self._waiting.pop(0)
            if (ending := await self._run_agents(task)) is not None:
                return ending
        return Ending("ok")

    def _prompt(self, task: Task, iteration: int) -> Sequence[Message]:
        """Begin an iteration of a task in this conversation."""
        scope = self._scope(**self._item(iteration))
        text = task.prompt(scope) if task.prompt is not None else ""
        self._start(task, iteration)
        return [user_message(text)]

    def _item(self, iteration: int) -> dict[str, Any]:
        return {} if self._items is None else {"item": self._items[iteration - 1]}

    def _scope(self, **more: Any) -> dict[str, Any]:
        return {"tasks": self.tasks, **more}

    def _skip(self, task: Task, reason: str) -> None:
        self.tasks[task.id] = TaskResult(status="skipped")
        self._session.emit(
            {
                "type": "task_end",
                "task_id": task.id,
                "iteration": 1,
                "status": "skipped",
                "text": "",
                "output": None,
                "skipped": reason,
            }
        )

    # --- one iteration ----------------------------------------------------------------------------

    def _start(self, task: Task, iteration: int) -> _Round:
        session = self._session
        item = self._item(iteration)
        event: dict[str, Any] = {"type": "task_start", "task_id": task.id, "iteration": iteration}
        session.emit(cast("Any", event | item))
        started = _Round(
            task,
            iteration,
            item.get("item"),
            bool(item),
            len(session.history),
            len(session.meter.calls),
            session.meter.turns,
            session.meter.usage.copy(),
            session.meter.cost,
            session.emitter.elapsed,
        )
        if task.agent is None:
            self._round = started
        return started

    async def _close(self, done: _Round, status: str, *, last: bool = False) -> bool:
        """End an iteration in this conversation. Gives whether the task has another one."""
        output = self.output if done.task is MAIN else None
        result = TaskResult(self._answer_text(done.first_message), output, status)
        more, warning = (False, None) if last else self._another(done, result)
        self._round = None
        await self._end(done, result, warning)
        return more

    def _another(self, done: _Round, result: TaskResult) -> tuple[bool, str | None]:
        """Whether a task has another iteration, and what is to be said of its last one."""
        if self._items is not None:
            return done.iteration < len(self._items), None
        repeat = done.task.repeat
        if repeat is None or repeat.until(self._scope(task=result)):
            return False, None
        if done.iteration < repeat.max:
            return True, None
        return False, f"its condition was not met in {repeat.max} iterations"

    async def _end(self, done: _Round, result: TaskResult, warning: str | None = None) -> None:
        """Tell an iteration's end, and hold the task's expectations against it."""
        event: dict[str, Any] = {
            "type": "task_end",
            "task_id": done.task.id,
            "iteration": done.iteration,
        }
        if done.has_item:
            event["item"] = done.item
        event |= {"status": result.status, "text": result.text, "output": result.output}
        if warning is not None:
            event["warning"] = warning
        self._session.emit(cast("Any", event))
        self._gathered[done.iteration] = result
        self.tasks[done.task.id] = self._sum(result)
        self.text = self.tasks[done.task.id].text
        if result.status == "ok":
            await self._expect(done, result)

    def _sum(self, result: TaskResult) -> TaskResult:
        """What a task came to so far: of one ``for_each``, all items together."""
        if self._items is None:
            return result
        results = [self._gathered[iteration] for iteration in sorted(self._gathered)]
        bad = [one.status for one in results if one.status != "ok"]
        return TaskResult(
            "\n".join(one.text for one in results),
            [one.output for one in results],
            bad[0] if bad else "ok",
        )

    async def _expect(self, done: _Round, result: TaskResult) -> None:
        session, meter = self._session, self._session.meter
        priced = meter.cost is not None and done.cost_before is not None
        finished = Finished(
            done.task.id,
            result.status,
            result.text,
            result.output,
            meter.turns - done.first_turn,
            meter.calls[done.first_call :],
            usage_since(done.usage_before, meter.usage),
            cast("float", meter.cost) - cast("float", done.cost_before) if priced else None,
            session.emitter.elapsed - done.started,
        )
        for expectation in done.task.expect:
            verdict = await expectation.check(finished)
            self.expected.append(Expected(done.task.id, expectation, verdict))
            session.emit(
                {
                    "type": "expectation",
                    "task_id": done.task.id,
                    "kind": expectation.kind,
                    "passed": verdict.passed,
                    "detail": verdict.detail,
                }
            )

    def _answer_text(self, first: int = 0) -> str:
        """The text of the last answer since a place in the history."""
        for message in reversed(self._session.history[first:]):
            if message["role"] == "assistant":
                return text_of(message["content"])
        return ""

    # --- tasks of other agents --------------------------------------------------------------------

    async def _run_agents(self, task: Task) -> Ending | None:
        """Run a task that has an agent of its own. Gives how the run ends, if it does."""
        ending = None
        if self._items is None:
            iteration, more = 1, True
            while more and ending is None:
                done, result, ending = await self._run_agent(task, iteration)
                more, warning = self._another(done, result) if ending is None else (False, None)
                await self._end(done, result, warning)
                iteration += 1
        else:
            ending = await self._run_items(task, len(self._items))
        if self._session.aborted_as is not None:
            return self._session.aborted_as
        go_on = ending is None or (task.on_error == "continue" and ending.status != "denied")
        return None if go_on and self._session.reached() is None else ending

    async def _run_items(self, task: Task, count: int) -> Ending | None:
        """Run an agent for each item, some at a time; results stay in item order."""
        gate = asyncio.Semaphore(task.max_parallel)
        endings: list[Ending] = []

        async def run(iteration: int) -> None:
            async with gate:
                stopped = endings and task.on_error == "stop"
                if stopped or self._session.aborted_as is not None:
                    return
                done, result, ending = await self._run_agent(task, iteration)
                if ending is not None:
                    endings.append(ending)
                await self._end(done, result)

        await asyncio.gather(*(run(n) for n in range(1, count + 1)))
        return endings[0] if endings else None

    async def _run_agent(
        self, task: Task, iteration: int
    ) -> tuple[_Round, TaskResult, Ending | None]:
        """One iteration of a task with its own agent, up to its end."""
        plan = cast("Any", task.agent)(self._scope(**self._item(iteration)))
        done = self._start(task, iteration)
        outcome = await self._run_plan(plan, self._session)
        status = outcome.ending.status
        result = TaskResult(outcome.text, outcome.output, status)
        return done, result, outcome.ending if status != "ok" else None
