"""Limits: each ends a run where it would go on, and not a turn before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.engine.contract import Price
from runner.engine.limit import Limits

BYE = {"text": "Bye."}


def limit_of(done: Any) -> tuple[Any, ...]:
    [event] = done.events.of("limit_reached")
    return event["limit"], event["value"], event["allowed"]


def test_a_run_has_so_many_turns_as_it_may(run_plan: Any, tool: Any, calls: Any) -> None:
    forever = calls("look", repeat="forever")
    done = run_plan(forever, tools=[tool("look", lambda: "x")], limits=Limits(turns=3))

    assert limit_of(done) == ("turns", 3, 3)
    assert len(done.events.of("model_request")) == 3
    assert done.events.types()[-5:] == [
        "turn_end",
        "task_end",
        "limit_reached",
        "agent_end",
        "run_end",
    ]
    assert (done.end["status"], done.end["exit_code"], done.end["turns"]) == ("limit", 4, 3)
    assert done.end["error"] == "the limit turns of 3 is reached"


def test_just_enough_turns_are_no_limit(run_plan: Any, tool: Any, calls: Any) -> None:
    done = run_plan(calls("look"), BYE, tools=[tool("look", lambda: "x")], limits=Limits(turns=2))

    assert done.events.of("limit_reached") == []
    assert done.end["status"] == "ok"


def test_there_are_limits_by_default_and_none_lifts_one(
    run_plan: Any, tool: Any, calls: Any
) -> None:
    numbers = iter(range(1000))
    tools = [tool("count", lambda: str(next(numbers)))]
    script = (calls("count", repeat=60), BYE)

    assert limit_of(run_plan(*script, tools=tools)) == ("turns", 50, 50)
    done = run_plan(*script, tools=tools, limits=Limits(turns=None))
    assert (done.end["status"], done.end["turns"]) == ("ok", 61)


def test_a_call_beyond_the_limit_is_answered_and_the_run_ends(
    run_plan: Any, tool: Any, calls: Any
) -> None:
    ran: Any = []
    note = tool("note", lambda: ran.append(1) or "noted")
    done = run_plan(
        calls("note"), calls("note", "note"), BYE, tools=[note], limits=Limits(tool_calls=2)
    )

    assert len(ran) == 2
    assert limit_of(done) == ("tool_calls", 3, 2)
    assert done.events.results()["call_3"] == (
        "Not run: the run's limit of 2 tool calls is reached."
    )
    assert done.end["tool_calls"] == 2


def test_just_enough_tool_calls_are_no_limit(run_plan: Any, tool: Any, calls: Any) -> None:
    tools = [tool("note", lambda: "x")]
    done = run_plan(calls("note", "note"), BYE, tools=tools, limits=Limits(tool_calls=2))

    assert done.end["status"] == "ok"


def test_the_same_call_with_the_same_result_so_often_ends_the_run(
    run_plan: Any, tool: Any, calls: Any
) -> None:
    ran: Any = []
    same = tool("same", lambda: ran.append(1) or "same")
    forever = calls("same", repeat="forever")

    done = run_plan(forever, tools=[same], limits=Limits(repeats=3))

    assert (limit_of(done), len(ran)) == (("repeats", 3, 3), 3)
    assert limit_of(run_plan(forever, tools=[same])) == ("repeats", 10, 10)


@pytest.mark.parametrize(
    "replies",
    [
        [{"tool_calls": [{"name": "same", "arguments": {"n": n}}]} for n in range(4)],
        [{"tool_calls": [{"name": name}]} for name in ("same", "other", "same", "other")],
        [{"tool_calls": [{"name": "counts"}]}] * 4,
    ],
)
def test_another_call_or_another_result_begins_anew(run_plan: Any, tool: Any, replies: Any) -> None:
    numbers = iter(range(10))
    tools = [
        tool("same", lambda **_: "same"),
        tool("other", lambda: "same"),
        tool("counts", lambda: str(next(numbers))),
    ]
    done = run_plan(*replies, BYE, tools=tools, limits=Limits(repeats=2))

    assert done.end["status"] == "ok"


@pytest.mark.parametrize(
    ("limits", "limit", "value", "turns"),
    [
        (Limits(tokens=50), "tokens", 60, 2),
        (Limits(tokens=60), "tokens", 60, 2),
        (Limits(cost_usd=1), "cost_usd", 1.2, 3),
    ],
)
def test_tokens_and_dollars_add_up(
    run_plan: Any,
    tool: Any,
    calls: Any,
    model: Any,
    limits: Any,
    limit: str,
    value: Any,
    turns: int,
) -> None:
    usage = {"input": 10, "output": 5, "cache_read": 8, "cache_write": 7}
    numbers = iter(range(10))
    asked = model(
        calls("count", usage=usage, repeat="forever"), price=Price(input=30_000, output=20_000)
    )
    done = run_plan(model=asked, tools=[tool("count", lambda: str(next(numbers)))], limits=limits)

    assert limit_of(done)[:2] == (limit, value)
    assert done.end["turns"] == turns


def test_a_run_that_is_done_may_have_used_more_tokens(run_plan: Any) -> None:
    reply = {"text": "Bye.", "usage": {"input": 99}}

    assert run_plan(reply, limits=Limits(tokens=10)).end["status"] == "ok"


@pytest.mark.parametrize("where", ["tool", "stream"])
def test_the_time_limit_stops_a_tool_and_a_stream(
    run_plan: Any, tool: Any, calls: Any, where: str
) -> None:
    slow = {"text": "a b c d", "deltas": 4, "delay": 0.02}
    done = run_plan(
        calls("slow") if where == "tool" else slow,
        BYE,
        tools=[tool("slow", lambda: asyncio.sleep(60))],
        limits=Limits(seconds=0.03),
    )

    assert limit_of(done) == ("seconds", 0.03, 0.03)
    assert (done.end["status"], done.end["exit_code"]) == ("limit", 4)
    if where == "tool":
        assert "limit seconds of 0.03" in done.events.results()["call_1"]
    else:
        assert done.events.of("turn_end")[0]["stop_reason"] == "aborted"


def test_an_agent_keeps_its_limits_in_each_of_its_runs(watch: Any, tool: Any, calls: Any) -> None:
    forever = calls("look", repeat="forever")
    watched = watch(
        forever, tools=[tool("look", lambda: "x")], limits=Limits(turns=3, repeats=2, seconds=60)
    )

    for _ in range(4):
        watched.prompt("Hello")

    told = watched.events.of("limit_reached")
    assert [(e["limit"], e["value"]) for e in told] == [("repeats", 2)] * 4
    assert watched.agent.state.error == "the limit repeats of 2 is reached"
    assert len(watched.events.of("turn_end")) == 8


def test_the_time_of_an_agent_is_counted_for_each_prompt(watch: Any, tool: Any, calls: Any) -> None:
    slow = {"text": "a b c d", "deltas": 4, "delay": 0.05}
    watched = watch({"text": "Hi."}, slow, {"text": "Bye."}, limits=Limits(seconds=0.04))

    async def three() -> list[str]:
        said = []
        for text in ("One", "Two", "Three"):
            said.append((await watched.agent.prompt(text))["stop_reason"])
        return said

    assert asyncio.run(three()) == ["stop", "aborted", "aborted"]
    assert len(watched.events.of("limit_reached")) == 2


def test_a_limit_keeps_what_is_queued(watch: Any, tool: Any, calls: Any) -> None:
    def look() -> str:
        watched.agent.steer("Later.")
        return "x"

    watched = watch(
        calls("look", repeat="forever"), tools=[tool("look", look)], limits=Limits(turns=1)
    )
    watched.agent.follow_up("Last.")

    watched.prompt("Hello")

    def content(text: str) -> Any:
        return {"role": "user", "content": [{"type": "text", "text": text}]}

    assert watched.events[-1]["queued"] == [
        {"queue": "steering", "message": content("Later.")},
        {"queue": "follow_up", "message": content("Last.")},
    ]


@pytest.mark.parametrize("kind", ["steer", "follow_up"])
def test_a_limit_ends_a_run_that_would_go_on_for_what_is_queued(watch: Any, kind: str) -> None:
    watched = watch({"text": "Hi."}, limits=Limits(turns=1))
    if kind == "follow_up":
        watched.agent.follow_up("More?")
    else:
        watched.agent.subscribe(
            lambda event: watched.agent.steer("More?") if event["type"] == "turn_end" else None
        )

    watched.prompt("Hello")

    assert watched.events.of("limit_reached")[0]["limit"] == "turns"
    assert len(watched.events[-1]["queued"]) == 1


def test_where_no_turn_is_allowed_nothing_is_lost(watch: Any) -> None:
    history = [{"role": "user", "text": "Hello"}, {"role": "assistant", "text": "Hi."}]
    watched = watch(limits=Limits(turns=0), messages=history)
    watched.agent.follow_up("More?")

    assert asyncio.run(watched.agent.continue_()) is None

    assert watched.events.types() == ["agent_start", "message_queued", "limit_reached", "agent_end"]
    assert len(watched.events[-1]["queued"]) == 1
