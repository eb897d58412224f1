"""The tool calls of a turn, in parallel or one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from runner.engine.message import AssistantMessage, tool_calls_of
from runner.engine.session import Session
from runner.engine.tool_call import Call
from runner.engine.tool_outcome import failed
from runner.engine.work import outlast

CUT = "Not run: the answer was cut at its length limit before it was whole. Make a shorter call."


@dataclass(slots=True)
class Batch:
    """What the calls of a turn came to."""

    calls: int
    terminate: bool
    """Whether every result says that the model need not be asked again."""


async def run_tool_calls(session: Session, answer: AssistantMessage) -> Batch:
    """Run the calls of an answer. Each gets its start, its end and its result message.

    Never raises for what a tool or a hook does: where that ends the run, ``session.stopping`` or
    the session's cancellation says so.
    """
    calls = [Call(session, block) for block in tool_calls_of(answer)]
    session.pending_calls = {call.id for call in calls}
    if answer["stop_reason"] == "length":
        for call in calls:
            call.start()
            await call.go(failed(CUT))
            call.tell_result()
    elif _sequential(session, calls):
        for call in calls:
            await call.go(await call.prepare())
            call.tell_result()
    else:
        await _run_parallel(session, calls)
        for call in calls:
            call.tell_result()
    session.pending_calls = set()
    await session.settle()
    return Batch(len(calls), bool(calls) and all(call.result.terminate for call in calls))


def _sequential(session: Session, calls: Sequence[Call]) -> bool:
    if session.options.tool_execution == "sequential" or len(calls) < 2:
        return True
    return any(call.tool is not None and call.tool.execution == "sequential" for call in calls)


async def _run_parallel(session: Session, calls: Sequence[Call]) -> None:
    """Prepare the calls in order, run them at once, finish each as it is done."""
    ready: deque[Call] = deque()
    for call in calls:
        refused = await call.prepare()
        if refused is None:
            ready.append(call)
        else:
            await call.go(refused)

    async def work() -> None:
        while ready:
            await ready.popleft().go()

    at_once = min(len(ready), session.options.max_parallel_tools)
    workers = asyncio.gather(*(work() for _ in range(at_once)), return_exceptions=True)
    await outlast(workers, session.cancelled)
    # Some are left where the workers were cancelled before they had begun.
    await work()
    for outcome in workers.result():
        if isinstance(outcome, Exception):
            raise outcome
