"""A whole run: run_start first and run_end last on every path, also when the log fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.engine.emit import Emitter
from runner.engine.hook import Hooks
from runner.engine.limit import Limits
from runner.engine.plan import Task
from runner.engine.run import Run
from runner.error import LogError

ECHO = {"text": "got {{ last.text }}", "repeat": "forever"}
LONG = {"text": "a b c", "deltas": 3, "delay": 30.0}


def test_a_run_of_one_answer(run_plan: Any) -> None:
    done = run_plan({"text": "Hi.", "usage": {"input": 5, "output": 2}})

    assert done.events.types("message_start", "message_end") == [
        "run_start",
        "agent_start",
        "task_start",
        "turn_start",
        "turn_end",
        "task_end",
        "agent_end",
        "run_end",
    ]
    end = dict(done.end)
    assert end.pop("seconds") >= 0
    assert end.pop("t") >= 0
    assert end == {
        "seq": len(done.events) - 1,
        "type": "run_end",
        "status": "ok",
        "exit_code": 0,
        "text": "Hi.",
        "output": None,
        "turns": 1,
        "tool_calls": 0,
        "usage": {"input": 5, "output": 2, "cache_read": 0, "cache_write": 0, "reasoning": 0},
        "cost_usd": 0.0,
    }
    assert done.ended.event == done.end


@pytest.mark.parametrize(
    ("signal", "code", "said"),
    [(None, 3, "it was aborted"), (2, 130, "it was interrupted"), (15, 143, "it was terminated")],
)
def test_an_aborted_run(run_plan: Any, signal: Any, code: int, said: str) -> None:
    def before(run: Any) -> None:
        run._emitter.subscribe(
            lambda event: run.abort(signal) if event["type"] == "model_request" else None
        )

    done = run_plan(LONG, before=before)

    end = done.end
    assert (end["status"], end["exit_code"], end["error"]) == ("aborted", code, said)


def test_a_run_that_is_aborted_before_its_start_has_all_its_events(run_plan: Any) -> None:
    done = run_plan(LONG, before=lambda run: run.abort(2))

    assert done.events.of("model_request") == []
    assert done.events.of("turn_end")[0]["stop_reason"] == "aborted"
    assert done.end["exit_code"] == 130


def test_steering_and_following_up_a_run(run_plan: Any) -> None:
    def before(run: Any) -> None:
        run.steer("S")
        run.follow_up({"role": "user", "text": "F"})

    done = run_plan(ECHO, before=before)

    assert done.events.said("user") == ["user: Hello", "user: S", "user: F"]
    assert done.end["text"] == "got F"


def test_what_escapes_is_told_as_a_bug_with_every_end(run_plan: Any) -> None:
    def buggy(scope: Any) -> bool:
        raise KeyError("bug")

    done = run_plan(ECHO, plan={"tasks": [Task("x", lambda scope: "x", when=buggy)]})

    assert (done.end["status"], done.end["exit_code"]) == ("error", 70)
    assert done.end["error"] == "KeyError: 'bug'"
    assert isinstance(done.ended.bug, KeyError)


def test_all_that_a_plan_holds_is_let_go_of_before_the_end(run_plan: Any) -> None:
    closed: Any = []

    async def close() -> None:
        closed.append(1)

    async def bad() -> None:
        raise OSError("can't close")

    done = run_plan(ECHO, plan={"close": [close, bad, close]})

    assert closed == [1, 1]
    assert done.end["status"] == "error"
    assert done.end["error"] == "it can't be closed: can't close"
    assert isinstance(done.ended.bug, OSError)


@pytest.mark.parametrize("times", [1, 3])
def test_a_run_that_is_cancelled_comes_to_its_end(
    plan: Any, wrong: Any, tool: Any, calls: Any, times: int
) -> None:
    from runner.engine.contract import Clock

    async def slow() -> None:
        await asyncio.sleep(30)

    async def runs() -> list[Any]:
        clock = Clock()
        emitter = Emitter(clock)
        events: list[Any] = []
        began = asyncio.Event()

        def listener(event: Any) -> None:
            events.append(event)
            if event["type"] == "tool_execution_start":
                began.set()

        emitter.subscribe(listener)
        made = plan(calls("slow"), tools=[tool("slow", slow)])
        spec = {"name": "main", "sha256": ""}
        start: Any = {"type": "run_start", "format": "pi-run-log/1", "spec": spec}
        start |= {"plan": {}, "inputs": {}}
        running = asyncio.ensure_future(Run(made, start, emitter, clock).execute())
        await began.wait()
        for _ in range(times):
            running.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(asyncio.all_tasks()) == 1
        return events

    events = asyncio.run(runs())
    assert wrong(events) == []
    assert (events[-1]["type"], events[-1]["status"]) == ("run_end", "aborted")


# --- the log --------------------------------------------------------------------------------------


def test_the_log_gets_each_event_before_all_listeners(run_plan: Any) -> None:
    order: Any = []

    def before(run: Any) -> None:
        run._emitter.subscribe(lambda event: order.append(("listener", event["seq"])))

    done = run_plan(ECHO, sink=lambda e: order.append(("log", e["seq"])), before=before)

    assert order == [(who, n) for n in range(len(done.events)) for who in ("log", "listener")]


@pytest.mark.parametrize(
    "at",
    [
        "run_start",
        "agent_start",
        "turn_start",
        "message_start",
        "message_update",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "turn_end",
    ],
)
def test_a_log_that_fails_ends_the_run_with_every_end_told(
    run_plan: Any, tool: Any, calls: Any, at: str
) -> None:
    full: Any = []

    def sink(event: Any) -> None:
        if full or event["type"] == at:
            full.append(event["type"])
            raise LogError("the disk is full")

    tasks = [Task("next", lambda scope: "x", on_error="continue")]
    done = run_plan(
        calls("look", text="I look."),
        ECHO,
        tools=[tool("look", lambda: "x")],
        sink=sink,
        plan={"tasks": tasks},
    )

    assert (done.end["status"], done.end["error"]) == ("error", "the disk is full")
    assert isinstance(done.ended.log_error, LogError)
    assert len(done.events.of("model_request")) <= 1
    assert done.tasks()[-1].startswith("end main 1 error")


def test_a_log_that_fails_at_the_last_line_is_told(run_plan: Any) -> None:
    def sink(event: Any) -> None:
        if event["type"] == "run_end":
            raise LogError("the disk is full")

    done = run_plan(ECHO, sink=sink)

    assert str(done.ended.log_error) == "the disk is full"
    assert done.end["status"] == "ok"


def test_a_log_that_fails_while_the_last_task_may_fail_is_no_success(run_plan: Any) -> None:
    def sink(event: Any) -> None:
        if event["type"] == "task_start" and event["task_id"] == "last":
            raise LogError("the disk is full")

    tasks = [Task(name, lambda scope: "x", on_error="continue") for name in ("last", "never")]
    done = run_plan(ECHO, sink=sink, plan={"tasks": tasks})

    assert done.end["status"] == "error"
    assert done.tasks()[-1].startswith("end last 1 error")


# --- going on -------------------------------------------------------------------------------------


def resumed(plan: Any, *script: Any, again: Any = lambda run: None, **options: Any) -> Any:
    """Run a plan to its end, change something, and go on. Gives all events."""
    from runner.engine.contract import Clock

    async def runs() -> Any:
        clock = Clock()
        emitter = Emitter(clock)
        events: list[Any] = []
        emitter.subscribe(events.append)
        run = Run(plan(*script, **options), {"type": "run_start"}, emitter, clock)  # type: ignore[typeddict-item]
        await run.execute()
        again(run)
        await run.go_on({"type": "run_resume"})  # type: ignore[typeddict-item]
        return events

    return asyncio.run(runs())


def test_after_a_limit_a_run_goes_on_where_it_was(plan: Any, tool: Any, calls: Any) -> None:
    def lift(run: Any) -> None:
        run.session.meter.limits.turns = None

    events = resumed(
        plan,
        calls("look"),
        {"text": "{{ count }}"},
        again=lift,
        tools=[tool("look", lambda: "x")],
        limits=Limits(turns=1),
    )

    ends = [event for event in events if event["type"] == "run_end"]
    assert [(end["status"], end["turns"], end["text"]) for end in ends] == [
        ("limit", 1, ""),
        ("ok", 2, "3"),
    ]


def test_a_limit_that_was_not_lifted_ends_it_again_at_once(
    plan: Any, tool: Any, calls: Any
) -> None:
    events = resumed(
        plan, calls("look"), ECHO, tools=[tool("look", lambda: "x")], limits=Limits(turns=1)
    )

    types = [event["type"] for event in events]
    second = types[types.index("run_resume") :]
    assert second == ["run_resume", "agent_start", "limit_reached", "agent_end", "run_end"]


def test_where_no_turn_was_allowed_the_prompt_is_not_lost(plan: Any) -> None:
    def lift(run: Any) -> None:
        run.session.meter.limits.turns = None

    events = resumed(plan, {"text": "{{ last.text }}"}, again=lift, limits=Limits(turns=0))

    assert events[-1]["text"] == "Hello"


def test_a_follow_up_that_a_limit_left_is_taken_with_no_answer_between(plan: Any) -> None:
    def lift(run: Any) -> None:
        run.session.meter.limits.turns = None

    events = resumed(
        plan,
        {"text": "one"},
        {"text": "{{ last.text }}"},
        again=lift,
        follow_ups=["F"],
        limits=Limits(turns=1),
    )

    roles = [event["message"]["role"] for event in events if event["type"] == "message_end"]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert events[-1]["text"] == "F"


def test_hooks_of_the_queues_belong_to_the_run_too(run_plan: Any) -> None:
    given = iter([["F"], []])
    done = run_plan(ECHO, hooks=Hooks(follow_up_messages=lambda: next(given)))

    assert done.end["text"] == "got F"
