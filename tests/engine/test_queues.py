"""Both queues in both modes: each message is taken exactly once, and none is lost."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from runner.engine.agent import Agent
from runner.engine.hook import Hooks
from runner.engine.options import AgentOptions, Scheduled

ECHO = {"text": "got {{ last.text }}", "repeat": "forever"}


def queued(event: Any) -> list[str]:
    return [f"{q['queue']}: {q['message']['content'][0]['text']}" for q in event["queued"]]


def told(events: Any) -> list[str]:
    return [
        f"{e['queue']} {e['source']}: {e['message']['content'][0]['text']}"
        for e in events.of("message_queued")
    ]


def turns(events: Any) -> list[list[str]]:
    """The user's messages of each turn."""
    found: list[list[str]] = []
    for event in events:
        if event["type"] == "turn_start":
            found.append([])
        elif event["type"] == "message_end" and event["message"]["role"] == "user":
            found[-1].append(event["message"]["content"][0]["text"])
    return found


def on(event_type: str, call: Any, **fields: Any) -> Any:
    """A listener that calls something at the first event of a type."""
    due = [True]

    def listener(event: Any) -> None:
        if due and event["type"] == event_type and event.items() >= fields.items():
            due.clear()
            call()

    return listener


@pytest.mark.parametrize(
    ("mode", "first", "second"),
    [("all", ["A", "B", "C"], []), ("one_at_a_time", ["A", "B"], ["C"])],
)
def test_what_is_queued_before_the_start_goes_into_turn_1_after_the_prompt(
    watch: Any, mode: str, first: Any, second: Any
) -> None:
    watched = watch(ECHO, steering_mode=mode)
    watched.agent.steer("B")
    watched.agent.steer({"role": "user", "text": "C"})

    watched.prompt("A")

    assert turns(watched.events) == [turn for turn in (first, second) if turn]
    assert told(watched.events) == ["steering api: B", "steering api: C"]


@pytest.mark.parametrize(
    ("mode", "rest"), [("all", [["B", "C"]]), ("one_at_a_time", [["B"], ["C"]])]
)
def test_steering_during_a_turn_goes_into_the_next(
    watch: Any, tool: Any, calls: Any, mode: str, rest: Any
) -> None:
    def look() -> str:
        watched.agent.steer("B")
        watched.agent.steer("C")
        return "x"

    watched = watch(calls("look"), ECHO, tools=[tool("look", look)], steering_mode=mode)

    watched.prompt("A")

    assert turns(watched.events) == [["A"], *rest]
    assert watched.events.said("assistant")[-1] == "assistant: got C"
    assert queued(watched.events[-1]) == []


def test_steering_opens_a_turn_even_where_there_were_no_calls(watch: Any) -> None:
    watched = watch(ECHO)
    watched.agent.subscribe(on("message_update", lambda: watched.agent.steer("B")))

    watched.prompt("A")

    assert turns(watched.events) == [["A"], ["B"]]


@pytest.mark.parametrize(
    ("mode", "rest"), [("all", [["B", "C"]]), ("one_at_a_time", [["B"], ["C"]])]
)
def test_follow_ups_wait_until_the_agent_would_stop(
    watch: Any, tool: Any, calls: Any, mode: str, rest: Any
) -> None:
    watched = watch(calls("look"), ECHO, tools=[tool("look", lambda: "x")], follow_up_mode=mode)
    watched.agent.follow_up("B")
    watched.agent.follow_up("C")

    watched.prompt("A")

    assert turns(watched.events) == [["A"], [], *rest]
    assert len(watched.events.of("agent_start")) == 1


def test_steering_comes_before_follow_ups(watch: Any) -> None:
    watched = watch(ECHO, steering_mode="one_at_a_time")
    for text in ("F1", "F2"):
        watched.agent.follow_up(text)
    for text in ("S1", "S2"):
        watched.agent.steer(text)

    watched.prompt("A")

    assert turns(watched.events) == [["A", "S1"], ["S2"], ["F1"], ["F2"]]


def test_a_message_is_told_when_it_joins_its_queue_and_before_it_is_taken(watch: Any) -> None:
    watched = watch(ECHO)
    watched.agent.subscribe(on("message_update", lambda: watched.agent.steer("B")))
    watched.agent.follow_up("C")

    watched.prompt("A")

    events = watched.events
    place = {
        (e["type"], (e.get("message") or {}).get("content", [{}])[0].get("text")): e["seq"]
        for e in events.of("message_queued", "message_start")
        if (e["message"].get("content"))
    }
    for text in ("B", "C"):
        assert place["message_queued", text] < place["message_start", text]
    assert events.of("message_queued")[0]["message"] == {
        "role": "user",
        "content": [{"type": "text", "text": "C"}],
    }


def test_custom_messages_may_be_queued_too(watch: Any) -> None:
    watched = watch({"text": "{{ count }}"})
    watched.agent.steer({"role": "custom", "content": []})

    watched.prompt("A")

    assert watched.events.said() == ["user: A", "custom: ", "assistant: 1"]


def test_what_is_scheduled_is_queued_at_its_point(watch: Any, tool: Any, calls: Any) -> None:
    scheduled = [
        Scheduled("after turn 1", after_turn=1),
        Scheduled("before", after_turn=0),
        Scheduled("after look", after_tool="look"),
        Scheduled("never", after_tool="other"),
    ]
    watched = watch(
        calls("look", "look"), ECHO, tools=[tool("look", lambda: "x")], scheduled=scheduled
    )

    watched.prompt("A")

    assert turns(watched.events) == [["A", "before"], ["after look", "after turn 1"]]
    assert told(watched.events) == [
        "steering spec: before",
        "steering spec: after look",
        "steering spec: after turn 1",
    ]
    types = watched.events.types()
    assert types[1] == "message_queued"
    assert types.index("tool_execution_end") < types.index("message_queued", 2)


def test_suppliers_are_polled_at_each_turns_end_and_when_the_run_would_stop(
    watch: Any, tool: Any, calls: Any
) -> None:
    polled: Any = []
    steering, follow_ups = iter([[], ["S"], [], [], []]), iter([["F1", {"text": "F2"}], None, []])

    async def supply_steering() -> Any:
        polled.append("steering")
        return next(steering)

    def supply_follow_ups() -> Any:
        polled.append("follow_up")
        return next(follow_ups)

    hooks = Hooks(steering_messages=supply_steering, follow_up_messages=supply_follow_ups)
    watched = watch(calls("look"), ECHO, tools=[tool("look", lambda: "x")], hooks=hooks)

    watched.prompt("A")

    assert turns(watched.events) == [["A"], [], ["S"], ["F1"], ["F2"]]
    assert polled == [
        *["steering"] * 3,
        "follow_up",
        "steering",
        "follow_up",
        "steering",
        "follow_up",
    ]
    assert told(watched.events) == ["steering hook: S", "follow_up hook: F1", "follow_up hook: F2"]


def test_steering_that_comes_while_follow_ups_are_asked_for_goes_first(watch: Any) -> None:
    def supply() -> list[str]:
        if len(watched.events.of("turn_start")) == 1:
            watched.agent.steer("S")
        return []

    watched = watch(ECHO, hooks=Hooks(follow_up_messages=supply))

    watched.prompt("A")

    assert turns(watched.events) == [["A"], ["S"]]


# --- what is not taken ----------------------------------------------------------------------------


def test_after_an_error_nothing_is_taken(watch: Any) -> None:
    failing = {"text": "par", "error": "no", "status": 400}
    watched = watch(failing, ECHO)
    watched.agent.subscribe(on("message_update", lambda: watched.agent.steer("S")))
    watched.agent.follow_up("F")

    watched.prompt("A")

    assert turns(watched.events) == [["A"]]
    assert queued(watched.events[-1]) == ["steering: S", "follow_up: F"]

    watched.prompt("B")

    assert turns(watched.events) == [["A"], ["B", "S"], ["F"]]
    assert told(watched.events) == ["follow_up api: F", "steering api: S"]


@pytest.mark.parametrize("at", ["message_start", "message_end"])
@pytest.mark.parametrize("kind", ["steer", "follow_up"])
def test_an_abort_between_two_messages_puts_the_rest_in_front_again(
    watch: Any, kind: str, at: str
) -> None:
    watched = watch(ECHO, steering_mode="all", follow_up_mode="all")

    def listener(event: Any) -> None:
        if event["type"] == at and event["message"].get("content", [{}])[0].get("text") == "2":
            watched.agent.abort()
            put("4")

    put = getattr(watched.agent, kind)
    for text in ("1", "2", "3"):
        put(text)
    watched.agent.subscribe(listener)

    answer = watched.prompt("A")

    assert answer["stop_reason"] == "aborted"
    queue = "steering" if kind == "steer" else "follow_up"
    assert queued(watched.events[-1]) == [f"{queue}: 3", f"{queue}: 4"]
    taken = [text for turn in turns(watched.events) for text in turn]
    assert taken == ["A", "1", "2"]


def test_stop_after_turn_leaves_both_queues_untouched(watch: Any) -> None:
    watched = watch(ECHO, hooks=Hooks(stop_after_turn=lambda turn: True))
    watched.agent.subscribe(on("turn_end", lambda: watched.agent.steer("S")))
    watched.agent.follow_up("F")

    watched.prompt("A")

    assert watched.agent.state.error is None
    assert queued(watched.events[-1]) == ["steering: S", "follow_up: F"]


def test_a_message_in_the_last_moment_is_told_as_queued_or_waits_for_the_next_run(
    watch: Any,
) -> None:
    watched = watch(ECHO)
    watched.agent.subscribe(on("agent_end", lambda: watched.agent.steer("after the end")))

    watched.prompt("A")

    assert watched.events[-1]["type"] == "agent_end"
    assert queued(watched.events[-1]) == []

    watched.prompt("B")

    assert turns(watched.events) == [["A"], ["B", "after the end"]]
    types = watched.events.types()
    second = types.index("agent_start", 1)
    assert types[second : second + 2] == ["agent_start", "message_queued"]


def test_ten_thousand_messages_from_each_of_eight_threads_are_each_taken_once(model: Any) -> None:
    threads, each = 8, 10_000
    options = AgentOptions(model({"text": "ok", "repeat": "forever"}), follow_up_mode="all")
    options.limits.turns = None
    agent = Agent(options)
    barrier = threading.Barrier(threads + 1)
    taken: list[str] = []
    told: list[str] = []
    left: list[int] = []

    def listen(event: Any) -> None:
        if event["type"] == "message_end" and event["message"]["role"] == "user":
            taken.append(event["message"]["content"][0]["text"])
        elif event["type"] == "message_queued":
            told.append(event["message"]["content"][0]["text"])
        elif event["type"] == "agent_end":
            left.append(len(event["queued"]))

    def put(number: int) -> None:
        barrier.wait()
        for n in range(each):
            (agent.steer if n % 2 else agent.follow_up)(f"{number} {n}")

    async def run() -> None:
        workers = [threading.Thread(target=put, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        barrier.wait()
        await agent.prompt("go")
        for worker in workers:
            worker.join()
        await agent.prompt("rest")

    agent.subscribe(listen)
    asyncio.run(run())

    of_threads = [text for text in taken if text not in ("go", "rest")]
    assert left[-1] == 0
    assert len(of_threads) == len(told) == threads * each
    for number in range(threads):
        own = [int(text.split()[1]) for text in of_threads if text.startswith(f"{number} ")]
        assert sorted(own) == list(range(each))
        for odd in (0, 1):  # each queue keeps the thread's order
            in_queue = [n for n in own if n % 2 == odd]
            assert in_queue == sorted(in_queue)
