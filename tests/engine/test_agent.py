"""The Python surface: an agent as a program prompts, steers, watches and stops it."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from runner.engine.hook import Hooks

ECHO = {"text": "got {{ last.text }}", "repeat": "forever"}
SLOW = {"text": "a b c d e f g h", "deltas": 8, "delay": 0.01}
LONG = {"text": "a b c", "deltas": 3, "delay": 30.0}


async def until(holds: Any) -> None:
    """Wait until something holds."""
    while not holds():  # noqa: ASYNC110 - not all of it has an event
        await asyncio.sleep(0.001)


# --- prompt and continue_ -------------------------------------------------------------------------


def test_prompt_gives_the_last_answer(watch: Any, tool: Any, calls: Any) -> None:
    watched = watch(calls("look"), ECHO, tools=[tool("look", lambda: "seen")])

    answer = watched.prompt("Hello")

    assert answer is watched.agent.state.messages[-1]
    assert answer["content"] == [{"type": "text", "text": "got seen"}]


def test_prompt_gives_no_answer_of_an_earlier_run(watch: Any) -> None:
    hooks = Hooks(transform_context=lambda messages: None if len(messages) < 2 else 1)
    watched = watch(ECHO, hooks=hooks)

    assert watched.prompt("One") is not None
    assert watched.prompt("Two") is None
    assert watched.agent.state.error.startswith("the hook transform_context failed")
    ends = watched.events.of("agent_end", "turn_end")
    assert [event["stop_reason"] for event in ends] == ["stop", "stop", "error", None]


def test_an_agent_works_in_one_event_loop_after_the_other(watch: Any) -> None:
    watched = watch(ECHO)

    async def listener(event: Any) -> None:
        await asyncio.sleep(0)

    watched.agent.subscribe(listener)
    for text in ("One", "Two", "Three"):
        assert watched.prompt(text)["content"][0]["text"] == f"got {text}"


def test_a_second_prompt_during_a_run_raises(watch: Any) -> None:
    watched = watch(SLOW, ECHO)

    async def both() -> None:
        first = asyncio.ensure_future(watched.agent.prompt("One"))
        await until(lambda: watched.events)
        with pytest.raises(RuntimeError, match="running"):
            await watched.agent.prompt("Two")
        with pytest.raises(RuntimeError, match="running"):
            await watched.agent.continue_()
        with pytest.raises(RuntimeError, match="running"):
            watched.agent.reset()
        assert (await first)["stop_reason"] == "stop"
        await watched.agent.prompt("Three")

    asyncio.run(both())

    assert watched.events.said("user") == ["user: One", "user: Three"]


def test_continue_goes_on_from_the_history(watch: Any) -> None:
    watched = watch({"text": "par", "error": "no", "status": 400}, ECHO)

    async def both() -> Any:
        await watched.agent.prompt("Hello")
        return await watched.agent.continue_()

    assert asyncio.run(both())["content"][0]["text"] == "got Hello"
    assert watched.events.said("user") == ["user: Hello"]


@pytest.mark.parametrize(
    "history",
    [[], [{"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Hello."}]],
)
def test_continue_with_nothing_to_go_on_with_raises(watch: Any, history: Any) -> None:
    watched = watch(ECHO, messages=history)

    with pytest.raises(RuntimeError, match="prompt"):
        asyncio.run(watched.agent.continue_())

    assert watched.events == []


@pytest.mark.parametrize(
    ("mode", "turns"),
    [("all", [["S1", "S2"], ["F1"]]), ("one_at_a_time", [["S1"], ["S2"], ["F1"]])],
)
def test_continue_takes_steering_first_and_then_follow_ups(
    watch: Any, mode: str, turns: Any
) -> None:
    history = [{"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Hello."}]
    watched = watch(ECHO, messages=history, steering_mode=mode)
    watched.agent.follow_up("F1")
    watched.agent.steer("S1")
    watched.agent.steer("S2")

    asyncio.run(watched.agent.continue_())

    users = [text for turn in turns for text in turn]
    assert watched.events.said("user") == [f"user: {text}" for text in users]
    assert len(watched.events.of("turn_start")) == len(turns)


def test_continue_takes_one_follow_up_where_nothing_else_is_queued(watch: Any) -> None:
    history = [{"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Hello."}]
    watched = watch(ECHO, messages=history)
    watched.agent.follow_up("F1")
    watched.agent.follow_up("F2")

    asyncio.run(watched.agent.continue_())

    assert watched.events.said() == [
        "user: F1",
        "assistant: got F1",
        "user: F2",
        "assistant: got F2",
    ]


# --- state ----------------------------------------------------------------------------------------


def test_the_state_while_an_answer_streams(watch: Any, tool: Any) -> None:
    watched = watch(SLOW, system_prompt="Be.", tools=[tool("look", lambda: "")])
    state, seen = watched.agent.state, []

    def listener(event: Any) -> None:
        if event["type"] == "message_update":
            message = state.streaming_message
            assert message is not None
            seen.append((state.is_streaming, message["content"][0]["text"]))

    watched.agent.subscribe(listener)
    assert (state.is_streaming, state.streaming_message) == (False, None)
    watched.prompt("Hello")

    assert seen[0] == (True, "a")
    assert seen[-1] == (True, "a b c d e f g h")
    assert (state.is_streaming, state.streaming_message, state.error) == (False, None, None)
    assert [each.name for each in state.tools] == ["look"]
    assert (state.system_prompt, state.model.id) == ("Be.", "scripted")
    assert [message["role"] for message in state.messages] == ["user", "assistant"]


def test_the_calls_that_are_pending(watch: Any, tool: Any, calls: Any) -> None:
    seen: Any = []

    def look() -> str:
        seen.append(watched.agent.state.pending_tool_calls)
        return "x"

    watched: Any = watch(
        calls("look", "look"), ECHO, tools=[tool("look", look)], tool_execution="sequential"
    )
    watched.prompt("Hello")

    assert seen == [{"call_1", "call_2"}, {"call_2"}]
    assert watched.agent.state.pending_tool_calls == frozenset()


def test_the_state_may_be_set_while_the_agent_rests(
    watch: Any, tool: Any, calls: Any, model: Any
) -> None:
    watched = watch(ECHO)
    watched.prompt("One")
    state = watched.agent.state
    state.messages = [{"id": "m1", "role": "user", "text": "another history"}]
    state.tools = [tool("look", lambda: "seen")]
    state.system_prompt = "Look."
    state.model = model(calls("look"), {"text": "{{ count }}"}, id="other")

    answer = watched.prompt("Two")

    assert (answer["model"], answer["content"][0]["text"]) == ("other", "4")
    system = [event["system_digest"] for event in watched.events.of("model_request")]
    assert system[0] != system[1] == system[2]


def test_reset_forgets_the_history_and_both_queues(watch: Any) -> None:
    watched = watch({"text": "no", "error": "no", "status": 400}, {"text": "{{ count }}"})
    watched.prompt("One")
    watched.agent.steer("S")
    watched.agent.follow_up("F")

    watched.agent.reset()

    assert watched.agent.state.messages == []
    assert watched.agent.state.error is None
    assert watched.prompt("Two")["content"][0]["text"] == "1"
    assert watched.events.of("message_queued") == []


# --- idle and abort -------------------------------------------------------------------------------


def test_wait_for_idle_waits_until_the_agent_may_be_prompted_again(watch: Any, model: Any) -> None:
    watched = watch(SLOW, LONG)

    async def runs() -> None:
        agent = watched.agent
        await agent.wait_for_idle()
        first = asyncio.ensure_future(agent.prompt("One"))
        await until(lambda: watched.events)
        await agent.wait_for_idle()
        second = asyncio.ensure_future(agent.prompt("Two"))
        await until(lambda: agent.state.is_streaming)
        second.cancel()
        await agent.wait_for_idle()
        agent.state.model = model(ECHO)
        await agent.prompt("Three")
        assert first.done()
        assert second.cancelled() or second.cancelling()

    asyncio.run(runs())

    assert watched.events.said("user") == ["user: One", "user: Two", "user: Three"]


def test_an_abort_while_an_agent_rests_does_nothing(watch: Any) -> None:
    watched = watch(ECHO)
    watched.agent.abort()
    watched.prompt("One")
    watched.agent.abort()

    assert watched.prompt("Two")["stop_reason"] == "stop"


def test_an_abort_from_another_thread_stops_the_stream(watch: Any) -> None:
    watched = watch({"text": "a b", "deltas": 2}, LONG)

    async def runs() -> Any:
        await watched.agent.prompt("One")
        run = asyncio.ensure_future(watched.agent.prompt("Two"))
        await until(lambda: watched.agent.state.is_streaming)
        await asyncio.to_thread(watched.agent.abort)
        return await run

    answer = asyncio.run(runs())

    assert answer["stop_reason"] == "aborted"
    assert watched.agent.state.error == "it was aborted"


def test_steering_and_following_up_from_another_thread(watch: Any) -> None:
    watched = watch(SLOW, ECHO)

    def speak() -> None:
        watched.agent.steer("S")
        watched.agent.follow_up("F")

    async def runs() -> None:
        run = asyncio.ensure_future(watched.agent.prompt("One"))
        await until(lambda: watched.agent.state.is_streaming)
        await asyncio.to_thread(speak)
        await run

    asyncio.run(runs())

    assert watched.events.said("user") == ["user: One", "user: S", "user: F"]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("where", ["stream", "tool", "hook", "retry", "listener"])
def test_cancelling_those_who_wait_ends_every_start(
    watch: Any, tool: Any, calls: Any, where: str, times: int
) -> None:
    async def slow(*args: Any) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0.005)
            raise

    async def slow_listener(event: Any) -> None:
        if event["type"] == "message_start":
            await asyncio.sleep(0.02)

    scripts = {"stream": LONG, "tool": calls("slow"), "retry": {"error": "overloaded"}}
    watched = watch(
        scripts.get(where, {"text": "x"}),
        tools=[tool("slow", slow)],
        attempts=2,
        hooks=Hooks(transform_context=slow if where == "hook" else ()),
    )
    if where == "listener":
        watched.agent.subscribe(slow_listener)
    if where == "retry":
        watched.agent._clock.sleep = slow

    async def runs() -> None:
        waiting = asyncio.ensure_future(watched.agent.prompt("One"))
        await until(lambda: watched.events)
        await asyncio.sleep(0.01)
        for _ in range(times):
            waiting.cancel()
            await asyncio.sleep(0.001)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert watched.events[-1]["type"] == "agent_end"
        assert watched.agent.state.error == "it was cancelled"
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(runs())


@pytest.mark.parametrize("where", ["stream", "tool", "tools", "hook", "listener"])
def test_an_event_loop_that_ends_in_the_middle_ends_every_start(
    watch: Any, tool: Any, calls: Any, where: str
) -> None:
    async def slow(*args: Any) -> None:
        await asyncio.sleep(30)

    async def slow_listener(event: Any) -> None:
        if event["type"] == "turn_start":
            await asyncio.sleep(30)

    scripts = {"stream": LONG, "tool": calls("slow"), "tools": calls(*["slow"] * 5)}
    watched = watch(
        scripts.get(where, {"text": "x"}),
        tools=[tool("slow", slow)],
        hooks=Hooks(before_tool_call=(), transform_context=slow if where == "hook" else ()),
        max_parallel_tools=2,
    )
    if where == "listener":
        watched.agent.subscribe(slow_listener)
    background: Any = []

    async def leaves() -> None:
        background.append(asyncio.ensure_future(watched.agent.prompt("One")))
        await until(lambda: watched.events)
        await asyncio.sleep(0.01)

    asyncio.run(leaves())

    assert watched.events[-1]["type"] == "agent_end"
    assert len(watched.events.results()) == {"tool": 1, "tools": 5}.get(where, 0)


def test_a_run_leaves_nothing_behind(watch: Any, tool: Any, calls: Any) -> None:
    watched = watch(calls("look", "look"), ECHO, tools=[tool("look", lambda: "x", timeout=60)])

    async def runs() -> None:
        await watched.agent.prompt("Hello")
        for _ in range(20):
            await watched.agent.prompt("Again")
        assert len(asyncio.all_tasks()) == 1
        session = watched.agent._session
        assert session.cancellation._callbacks == []
        timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        assert [timer for timer in timers if not timer.cancelled()] == []

    asyncio.run(runs())
    gc.collect()
    assert threading.active_count() == 1
