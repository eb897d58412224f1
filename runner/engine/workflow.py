"""A plan's chain of tasks: what an agent is given to do, one thing after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from runner.engine.limit import Mark
from runner.engine.message import Message, text_of, user_message
from runner.engine.options import Ending, limit_ending
from runner.engine.plan import Expectation, Expected, Finished, Outcome, Plan, Task, TaskResult
from runner.engine.session import Session
from runner.engine.work import outlast

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
    began: Mark
    """What was used when it began, and by whom."""
    started: float


class TaskAgent(Protocol):
    """The agent of a task that has one of its own."""

    async def run(self) -> Outcome:
        """Run it; when it had to end before it was done, go on with it."""
        ...


class Workflow:
    """Walks a plan's tasks; the loop asks it for more whenever the agent rests.

    Args:
        plan: The chain.
        session: The agent of its conversation.
        make_agent: Makes the agent of a task that has one of its own, or says how that ends.
    """

    def __init__(
        self,
        plan: Plan,
        session: Session,
        make_agent: Callable[[Callable[[], Plan], Session], TaskAgent | Ending],
    ) -> None:
        self._plan = plan
        self._session = session
        self._make_agent = make_agent
        self._waiting = list(plan.tasks)
        self._round: _Round | None = None
        self._items: list[Any] | None = None
        """Those of the task that is being run, if it is one ``for_each``."""
        self._gathered: dict[int, TaskResult] = {}
        """The results of its iterations so far."""
        self._unsummed: str | None = None
        """The id of one ``for_each`` whose results are not in ``tasks`` yet."""
        self._retries = plan.output.retries if plan.output is not None else 0
        self._reviewed = plan.output is None
        self._cut: tuple[Task, int] | None = None
        """The iteration that ended before it was done: taken up again if the run goes on."""
        self._cut_round: _Round | None = None
        """That iteration as it was, where it is one of this conversation."""
        self._due: tuple[Task, int] | None = None
        """The iteration that comes next, where its task has begun."""
        self._agents: dict[int, TaskAgent] = {}
        """By iteration: agents of the task that had to end before they were done."""
        self.tasks: dict[str, TaskResult] = {}
        self.expected: list[Expected] = []
        self.text = ""
        """Of the last task that was run."""
        self.output: Any = None
        """Of the main task."""

    def adopt(self, plan: Plan) -> None:
        """Walk another plan from here on: what was done is done, by the ids of its tasks."""
        self._plan = plan
        self._waiting = [task for task in plan.tasks if task.id not in self.tasks]

    # --- what the loop asks -----------------------------------------------------------------------

    async def begin(self) -> Sequence[Message] | Ending:
        """The prompts of ``main``; later those of what was cut, or of the next task."""
        begins = self._cut or self._due or "main" not in self.tasks
        if begins and (reached := self._session.reached()):
            return limit_ending(reached)
        if self._cut is not None:
            return await self._take_up(*self._cut)
        if self._due is not None:
            return self._prompt(*self._due)
        if "main" in self.tasks:
            return await self._next_task()
        self._start(MAIN, 1)
        return self._plan.prompts

    async def _take_up(self, task: Task, iteration: int) -> Sequence[Message] | Ending:
        """Go on with an iteration that was cut: its prompts are in the history already."""
        self._cut = None
        if task.agent is None:
            goes_on, before = self._start(task, iteration), self._cut_round
            if before is not None:
                # What was said and used before the end counts: perhaps all of it was.
                goes_on.first_message, goes_on.began = before.first_message, before.began
                goes_on.started = before.started
            return ()
        ending = await self._run_agents(task, iteration)
        return await self._next_task() if ending is None else ending

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
                self._due = done.task, done.iteration + 1
                if reached := self._session.reached():
                    return limit_ending(reached)
                return self._prompt(*self._due)
        return await self._next_task()

    async def end(self, ending: Ending) -> Ending:
        """Close what is open when the agent ends."""
        if ending.status == "ok" and not self._reviewed:
            # A hook ended the run as done, and there is no asking again.
            self._retries = 0
            review = await self.review()
            ending = review if isinstance(review, Ending) else ending
        if self._round is not None:
            if ending.status != "ok":
                self._cut = self._round.task, self._round.iteration
                self._cut_round = self._round
            await self._close(self._round, ending.status, last=True)
        self._sum()
        return ending

    def leaves_behind(self, ending: Ending) -> bool:
        """Give up on a task that failed, if its ``on_error: continue`` says so."""
        if ending.status != "error" or ending.bug is not None or self._session.aborted_as:
            return False
        if self._cut is None or self._cut[0].on_error != "continue":
            return False
        task, iteration = self._cut
        self._cut = None
        if self._items is not None and iteration < len(self._items):
            self._due = task, iteration + 1
        return True

    @property
    def has_more(self) -> bool:
        """Whether there is more to do."""
        return bool(self._waiting) or self._due is not None

    # --- tasks ------------------------------------------------------------------------------------

    async def _next_task(self) -> Sequence[Message] | Ending:
        self._sum()
        while self._waiting:
            task = self._waiting[0]
            if task.when is not None and not task.when(self._scope()):
                self._waiting.pop(0)
                self._skip(task, f"its condition is false: {task.when_text}")
                continue
            if reached := self._session.reached():
                return limit_ending(reached)
            self._gathered, self._agents, self._items = {}, {}, None
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
            if (ending := await self._run_agents(task, 1)) is not None:
                return ending
            self._sum()
        return Ending("ok")

    def _prompt(self, task: Task, iteration: int) -> Sequence[Message]:
        """Begin an iteration of a task in this conversation."""
        scope = self._scope(**self._item(iteration))
        text = task.prompt(scope) if task.prompt is not None else ""
        self._due = None
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
            session.meter.mark(),
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
        if self._items is not None:
            self._unsummed = done.task.id
        else:
            self.tasks[done.task.id] = result
            self.text = result.text
        if result.status == "ok" and done.task.expect:
            await self._expect(done, result)

    def _sum(self) -> None:
        """Put together what the items of one ``for_each`` came to."""
        if self._unsummed is None:
            return
        results = [self._gathered[iteration] for iteration in sorted(self._gathered)]
        bad = [one.status for one in results if one.status != "ok"]
        self.text = "\n".join(one.text for one in results)
        self.tasks[self._unsummed] = TaskResult(
            self.text, [one.output for one in results], bad[0] if bad else "ok"
        )
        self._unsummed = None

    async def _expect(self, done: _Round, result: TaskResult) -> None:
        session, began = self._session, done.began
        finished = Finished(
            done.task.id,
            result.status,
            result.text,
            result.output,
            began.turns(),
            began.calls(),
            began.usage(),
            began.cost(),
            session.emitter.elapsed - done.started,
        )
        self.expected += await hold(session, done.task.expect, finished)

    def _answer_text(self, first: int = 0) -> str:
        """The text of the last answer since a place in the history.

        A tool that ended the work may have been given the answer, which then is the last word.
        """
        for message in reversed(self._session.history[first:]):
            if message["role"] == "assistant" or is_answer(message):
                return text_of(message["content"])
        return ""

    # --- tasks of other agents --------------------------------------------------------------------

    async def _run_agents(self, task: Task, iteration: int) -> Ending | None:
        """Run a task that has an agent of its own. Gives how the run ends, if it does.

        Args:
            task: The task.
            iteration: The one to begin with; of one ``for_each``, those that are done are kept.
        """
        if self._items is None:
            more, ending = True, None
            while more and ending is None:
                more, ending = await self._iterate(task, iteration)
                self._cut = (task, iteration) if ending is not None else None
                iteration += 1
        else:
            ending = await self._run_items(task, len(self._items))
            self._cut = (task, 1) if ending is not None else None
        if self._session.aborted_as is not None:
            return self._session.aborted_as
        if ending is None or task.on_error == "stop" or ending.status == "denied" or ending.bug:
            return ending
        if ending.limit is not None and self._session.reached() is not None:
            return ending
        self._cut = None
        return None

    async def _run_items(self, task: Task, count: int) -> Ending | None:
        """Run an agent for each item, some at a time; results stay in item order."""
        session = self._session
        endings: list[Ending] = []
        todo = deque(
            iteration
            for iteration in range(1, count + 1)
            if iteration not in self._gathered or self._gathered[iteration].status != "ok"
        )

        async def work() -> None:
            while todo and session.aborted_as is None:
                try:
                    _, ending = await self._iterate(task, todo.popleft())
                except BaseException:
                    todo.clear()
                    raise
                if ending is not None:
                    endings.append(ending)
                if ending is not None and (task.on_error == "stop" or ending.bug is not None):
                    todo.clear()

        at_once = min(len(todo), task.max_parallel)
        workers = asyncio.gather(*(work() for _ in range(at_once)), return_exceptions=True)
        await outlast(workers, session.cancelled)
        for outcome in workers.result():
            if isinstance(outcome, Exception):
                raise outcome
        return endings[0] if endings else session.aborted_as

    async def _iterate(self, task: Task, iteration: int) -> tuple[bool, Ending | None]:
        """One iteration of a task with its own agent.

        Gives whether the task has another one, and how this one ended if it did not end well.
        """
        agent = self._agents.pop(iteration, None) or self._agent(task, iteration)
        done = self._start(task, iteration)
        result, warning, more = TaskResult(status="error"), None, False
        try:
            outcome = Outcome(agent) if isinstance(agent, Ending) else await agent.run()
            if outcome.meter is not None:
                done.began = Mark(outcome.meter)
            result.text, result.output = outcome.text, outcome.output
            if outcome.ending.status == "ok":
                more, warning = self._another(done, result)
            elif not isinstance(agent, Ending):
                self._agents[iteration] = agent
            result.status = outcome.ending.status
            if self._items is not None:
                clock, path = self._session.clock, self._session.path
                await clock.turn_of(path, "task_end", f"{task.id} {iteration}")
        finally:
            await self._end(done, result, warning)
        return more, None if result.status == "ok" else outcome.ending

    def _agent(self, task: Task, iteration: int) -> TaskAgent | Ending:
        """The agent of an iteration, or how that ends where there may be none."""
        scope = self._scope(**self._item(iteration))
        return self._make_agent(lambda: cast("Any", task.agent)(scope), self._session)


def is_answer(message: Message) -> bool:
    """Whether a message is the result of a tool that was given the answer."""
    if message["role"] != "tool_result" or message["is_error"]:
        return False
    details = message.get("details")
    return isinstance(details, dict) and "answer" in details


async def hold(
    session: Session, expectations: Sequence[Expectation], finished: Finished
) -> list[Expected]:
    """Hold expectations against what is finished, and tell what became of each."""
    expected = []
    for expectation in expectations:
        verdict = await expectation.check(finished)
        expected.append(Expected(finished.task_id, expectation, verdict))
        session.emit(
            {
                "type": "expectation",
                "task_id": finished.task_id,
                "kind": expectation.kind,
                "passed": verdict.passed,
                "detail": verdict.detail,
            }
        )
    return expected
