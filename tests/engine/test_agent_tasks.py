"""Tasks that have an agent of their own: once, repeated, or once for each item."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from runner.engine.plan import Expectation, Repeat, Task, TaskResult, Verdict
from runner.error import TemplateError

ECHO = {"text": "got {{ last.text }}", "repeat": "forever"}
LONG = {"text": "a b c", "deltas": 3, "delay": 30.0}
FAIL = {"text": "par", "error": "no", "status": 400}


def paths(events: Any, event_type: str = "agent_start") -> list[str | None]:
    return [event.get("agent") for event in events.of(event_type)]


def aborting(event_type: str, **fields: Any) -> Callable[[Any], None]:
    """Abort a run at the first event of a type."""

    def before(run: Any) -> None:
        def listener(event: Any) -> None:
            if event["type"] == event_type and event.items() >= fields.items():
                run.abort(15)

        run._emitter.subscribe(listener)

    return before


def test_a_task_with_an_agent_of_its_own_has_its_own_conversation(run_plan: Any, plan: Any) -> None:
    def review(scope: Any) -> Any:
        text = scope["tasks"]["main"].text
        return plan({"text": "{{ count }}: {{ last.text }}"}, name="review", prompt=f"See: {text}")

    tasks = [
        Task("review", agent=review),
        Task("after", lambda scope: scope["tasks"]["review"].text),
    ]
    done = run_plan(ECHO, plan={"tasks": tasks})

    assert done.events.types("message_start", "message_end", "turn_start", "turn_end") == [
        "run_start",
        "agent_start",
        *["task_start", "task_end"] * 3,
        "agent_end",
        "run_end",
    ]
    assert paths(done.events) == [None, "main/review#1"]
    assert done.events.of("task_end", task_id="review")[0]["text"] == "1: See: got Hello"
    assert done.end["text"] == "got 1: See: got Hello"


def test_it_is_repeated_until_its_condition_holds(run_plan: Any, plan: Any) -> None:
    texts = iter(["x", "y", "DONE"])
    repeat = Repeat(lambda scope: scope["task"].text == "DONE", 5)
    task = Task("try", agent=lambda scope: plan({"text": next(texts)}, name="try"), repeat=repeat)
    done = run_plan(ECHO, plan={"tasks": [task]})

    assert done.tasks()[2:] == [
        line
        for n, text in enumerate(["x", "y", "DONE"], 1)
        for line in (f"start try {n}", f"end try {n} ok: {text}")
    ]
    assert paths(done.events)[1:] == [f"main/try#{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize("most", [1, 2, 10])
def test_items_are_worked_on_some_at_a_time_and_stay_in_order(
    run_plan: Any, plan: Any, tool: Any, calls: Any, most: int
) -> None:
    running, peak = 0, 0

    async def work() -> str:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(20):
            await asyncio.sleep(0)
        running -= 1
        return "x"

    def read(scope: Any) -> Any:
        tools = [tool("work", work)]
        script = (calls("work"), {"text": f"saw {scope['item']}"})
        return plan(*script, name="read", prompt=scope["item"], tools=tools)

    items = list("abcde")
    seen: Any = []

    def after(scope: Any) -> bool:
        seen.append(scope["tasks"]["read"])
        return False

    tasks = [
        Task("read", agent=read, for_each=lambda scope: items, max_parallel=most),
        Task("after", lambda scope: "x", when=after),
    ]
    done = run_plan(ECHO, plan={"tasks": tasks})

    assert peak == min(most, 5)
    assert seen == [TaskResult("\n".join(f"saw {item}" for item in items), [None] * 5, "ok")]
    assert done.end["text"] == seen[0].text
    starts = done.events.of("task_start", task_id="read")
    assert [event["item"] for event in starts] == items
    assert paths(done.events)[1:] == [f"main/read#{n}" for n in range(1, 6)]


def test_what_is_expected_of_an_item_is_held_against_its_own_agent_alone(
    run_plan: Any, plan: Any, tool: Any, calls: Any
) -> None:
    seen: Any = []

    async def check(finished: Any) -> Verdict:
        seen.append(
            (
                [(call.name, call.arguments) for call in finished.calls],
                finished.turns,
                finished.usage["input"],
            )
        )
        return Verdict(True, "")

    def read(scope: Any) -> Any:
        reply = {"tool_calls": [{"name": "work", "arguments": {"on": scope["item"]}}]}
        script = (reply | {"usage": {"input": 1}}, {"text": "x"})
        tools = [tool("work", lambda on: asyncio.sleep(0, "x"))]
        return plan(*script, name="read", tools=tools)

    task = Task(
        "read",
        agent=read,
        for_each=lambda scope: [1, 2, 3],
        expect=[Expectation("called", check)],
    )
    run_plan(ECHO, plan={"tasks": [task]})

    assert sorted(seen, key=str) == [([("work", {"on": n})], 2, 1) for n in (1, 2, 3)]


@pytest.mark.parametrize(("on_error", "ran"), [("stop", 2), ("continue", 4)])
def test_an_item_that_fails_stops_those_that_have_not_begun_or_not(
    run_plan: Any, plan: Any, on_error: Any, ran: int
) -> None:
    def read(scope: Any) -> Any:
        return plan(FAIL if scope["item"] == 2 else {"text": "fine"}, name="read")

    task = Task(
        "read", agent=read, for_each=lambda scope: [1, 2, 3, 4], max_parallel=1, on_error=on_error
    )
    done = run_plan(ECHO, plan={"tasks": [task]})

    assert len(done.events.of("task_end", task_id="read")) == ran
    assert done.end["status"] == ("error" if on_error == "stop" else "ok")


def test_an_agent_that_can_not_be_made_ends_the_run_after_those_that_are_running(
    run_plan: Any, plan: Any, calls: Any, tool: Any
) -> None:
    def read(scope: Any) -> Any:
        if scope["item"] == 2:
            raise TemplateError("no such name")
        tools = [tool("wait", lambda: asyncio.sleep(0.01, "x"))]
        return plan(calls("wait"), {"text": "fine"}, name="read", tools=tools)

    task = Task("read", agent=read, for_each=lambda scope: [1, 2, 3])
    done = run_plan(ECHO, plan={"tasks": [task]})

    assert (done.end["status"], done.end["error"]) == ("error", "no such name")
    ends = done.events.of("task_end", task_id="read")
    assert [(event["iteration"], event["status"]) for event in ends][:1] == [(1, "ok")]


def test_a_condition_that_fails_closes_its_iteration(run_plan: Any, plan: Any) -> None:
    def broken(scope: Any) -> bool:
        raise TemplateError("no such name")

    task = Task("try", agent=lambda scope: plan(ECHO, name="try"), repeat=Repeat(broken, 2))
    done = run_plan(ECHO, plan={"tasks": [task]})

    assert done.tasks()[-1] == "end try 1 error: got Hello"
    assert done.end["error"] == "no such name"


@pytest.mark.parametrize("on_error", ["stop", "continue"])
def test_a_task_whose_agent_fails(run_plan: Any, plan: Any, on_error: Any) -> None:
    tasks = [
        Task("risky", agent=lambda scope: plan(FAIL, name="risky"), on_error=on_error),
        Task("after", lambda scope: f"It was {scope['tasks']['risky'].status}."),
    ]
    done = run_plan(ECHO, plan={"tasks": tasks})

    assert done.tasks()[3] == "end risky 1 error: par"
    if on_error == "stop":
        assert (done.end["status"], done.end["error"]) == ("error", "no")
    else:
        assert done.end["text"] == "got It was error."
    assert len(done.events.of("agent_start", agent=None)) == 1


def test_an_abort_reaches_the_agents_of_all_items(run_plan: Any, plan: Any) -> None:
    task = Task(
        "read",
        agent=lambda scope: plan(LONG, name="read"),
        for_each=lambda scope: range(6),
        max_parallel=3,
        on_error="continue",
    )
    done = run_plan(
        ECHO,
        before=aborting("model_request", agent="main/read#3"),
        plan={"tasks": [task, Task("after", lambda scope: "x")]},
    )

    assert done.end["status"] == "aborted"
    ends = done.events.of("task_end", task_id="read")
    assert [event["status"] for event in ends] == ["aborted"] * 3


def given(made: Any, scope: Any) -> Any:
    return made


def test_what_an_agent_holds_is_let_go_of_whatever_happens(run_plan: Any, plan: Any) -> None:
    closed: Any = []

    async def close() -> None:
        closed.append(1)

    async def bad() -> None:
        raise OSError("can't close")

    for script, closes, status in (
        ([ECHO], [close], "ok"),
        ([FAIL], [close], "error"),
        ([ECHO], [bad, close], "error"),
    ):
        closed.clear()
        own: Any = plan(*script, name="own", close=closes)
        done = run_plan(ECHO, plan={"tasks": [Task("own", agent=partial(given, own))]})
        assert (closed, done.end["status"]) == ([1], status)
