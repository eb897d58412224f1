"""Those who listen: all see every event in order, none can hurt the run or the others."""

from __future__ import annotations

import asyncio
from typing import Any

ANSWER = {"text": "a b c", "deltas": 3}


def caught(coroutine: Any) -> list[dict[str, Any]]:
    """Run something; what the event loop was told of."""
    reports: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, told: reports.append(told))
        await coroutine()

    asyncio.run(run())
    return reports


def test_all_listeners_get_all_events_in_the_order_in_which_they_were_added(watch: Any) -> None:
    watched = watch(ANSWER)
    seen: Any = []
    watched.agent.subscribe(lambda event: seen.append(("a", event["seq"])))
    watched.agent.subscribe(lambda event: seen.append(("b", event["seq"])))

    watched.prompt("Hello")

    numbers = range(len(watched.events))
    assert seen == [(name, n) for n in numbers for name in ("a", "b")]


def test_one_that_leaves_gets_no_more(watch: Any) -> None:
    watched = watch(ANSWER, ANSWER)
    seen: Any = []

    def listener(event: Any) -> None:
        seen.append(event["type"])
        if event["type"] == "turn_start":
            leave()
            leave()

    leave = watched.agent.subscribe(listener)
    leave_second = watched.agent.subscribe(listener)
    watched.prompt("Hello")
    leave_second()
    watched.prompt("Again")

    assert seen == ["agent_start", "agent_start", "turn_start", "turn_start"] + [
        event["type"] for event in watched.events[2:] if event["seq"] < len(watched.events) / 2
    ]


def test_one_that_raises_is_reported_and_the_others_get_the_event(watch: Any) -> None:
    watched = watch(ANSWER)
    seen: Any = []

    def bad(event: Any) -> None:
        raise ValueError("bad listener")

    async def worse(event: Any) -> None:
        raise ValueError("worse listener")

    for listener in (bad, worse, lambda event: seen.append(event["type"])):
        watched.agent.subscribe(listener)
    reports = caught(lambda: watched.agent.prompt("Hello"))

    assert seen == [event["type"] for event in watched.events]
    assert [str(report["exception"]) for report in reports].count("bad listener") == len(seen)
    assert [str(report["exception"]) for report in reports].count("worse listener") == len(seen)
    assert watched.agent.state.error is None


def test_one_that_is_cancelled_by_itself_is_reported_too(watch: Any) -> None:
    watched = watch(ANSWER)

    async def odd(event: Any) -> None:
        raise asyncio.CancelledError

    watched.agent.subscribe(odd)
    reports = caught(lambda: watched.agent.prompt("Hello"))

    assert len(reports) == len(watched.events)
    assert watched.agent.state.error is None


def test_what_a_listener_gives_is_only_awaited_if_it_can_be(watch: Any) -> None:
    watched = watch(ANSWER)
    watched.agent.subscribe(lambda event: event["seq"])

    assert caught(lambda: watched.agent.prompt("Hello")) == []


def test_async_listeners_are_awaited_one_after_the_other_before_the_loop_goes_on(
    watch: Any, tool: Any, calls: Any
) -> None:
    order: Any = []

    async def slow(event: Any) -> None:
        order.append(f"begin {event['seq']}")
        await asyncio.sleep(0.001 if event["seq"] % 3 else 0)
        order.append(f"end {event['seq']}")

    async def work() -> str:
        order.append("tool")
        return "x"

    watched = watch(calls("work", "work", "work"), ANSWER, tools=[tool("work", work)])
    watched.agent.subscribe(slow)

    watched.prompt("Hello")

    told = [what for what in order if what != "tool"]
    numbers = range(len(watched.events))
    assert told == [f"{what} {n}" for n in numbers for what in ("begin", "end")]
    last_start = watched.events.of("tool_execution_start")[-1]["seq"]
    assert order.index("tool") > order.index(f"end {last_start}")


def test_an_async_listener_is_not_cut_off_by_an_abort(watch: Any) -> None:
    watched = watch(ANSWER)
    ended: Any = []

    async def slow(event: Any) -> None:
        if event["type"] == "message_update":
            watched.agent.abort()
            await asyncio.sleep(0.01)
            ended.append(event["seq"])

    watched.agent.subscribe(slow)
    answer = watched.prompt("Hello")

    assert answer["stop_reason"] == "aborted"
    assert ended == [event["seq"] for event in watched.events.of("message_update")]


def test_what_a_listener_does_to_the_agent_holds_at_once(watch: Any) -> None:
    watched = watch(ANSWER, {"text": "got {{ last.text }}"})

    def listener(event: Any) -> None:
        if event["type"] == "turn_end" and event["turn"] == 1:
            watched.agent.steer("S")

    watched.agent.subscribe(listener)
    watched.prompt("Hello")

    assert watched.events.said("assistant")[-1] == "assistant: got S"
