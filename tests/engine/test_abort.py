"""Aborts: whatever is under way is stopped soon, and every start has its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from runner.engine.contract import Model, Retry, Stop, TextDelta
from runner.engine.hook import Hooks

LONG = {"text": "a b c", "deltas": 3, "delay": 30.0}
BYE = {"text": "Bye."}


def abort_at(watched: Any, event_type: str, **fields: Any) -> None:
    """Abort an agent at the first event of a type."""

    def listener(event: Any) -> None:
        if event["type"] == event_type and event.items() >= fields.items():
            watched.agent.abort()

    watched.agent.subscribe(listener)


def test_an_abort_in_a_stream_keeps_what_came_and_what_it_used(watch: Any) -> None:
    from runner.engine.contract import UsageReport
    from runner.engine.message import no_usage

    class Slow:
        name = "slow"

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            usage = no_usage()
            usage["input"] = 7
            yield UsageReport(usage)
            yield TextDelta(0, "par")
            watched.agent.abort()
            await asyncio.sleep(30)

        async def close(self) -> None:
            pass

    watched: Any = watch(model=Model(Slow(), "s-1"))
    watched.agent.steer("before")
    answer = watched.prompt("Hello")

    assert answer["stop_reason"] == "aborted"
    assert answer["content"] == [{"type": "text", "text": "par"}]
    assert answer["usage"]["input"] == 7
    assert watched.events.types()[-3:] == ["message_end", "turn_end", "agent_end"]
    assert watched.events[-1]["stop_reason"] == "aborted"
    assert watched.agent.state.error == "it was aborted"


def test_an_abort_before_the_request_sends_none(watch: Any) -> None:
    watched = watch(LONG)
    abort_at(watched, "turn_start")

    assert watched.prompt("Hello")["stop_reason"] == "aborted"
    assert watched.events.of("model_request") == []


def test_an_abort_while_a_retry_is_waited_for(watch: Any, model: Any) -> None:
    watched = watch({"error": "overloaded"}, BYE, attempts=2)
    watched.agent._clock.sleep = lambda seconds: asyncio.sleep(30)
    abort_at(watched, "model_retry")

    answer = watched.prompt("Hello")

    assert (answer["stop_reason"], answer["content"]) == ("aborted", [])
    assert len(watched.events.of("model_request")) == 1


def test_a_provider_that_ignores_its_cancellation_is_left_behind(watch: Any) -> None:
    class Stubborn:
        name = "stubborn"

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            yield TextDelta(0, "a")
            watched.agent.abort()
            for _ in range(3):
                try:
                    await asyncio.sleep(0.02)
                except asyncio.CancelledError:
                    continue
                yield TextDelta(0, "more")
            yield Stop("stop")

        async def close(self) -> None:
            pass

    watched: Any = watch(model=Model(Stubborn(), "s-1"), grace=0.01)

    async def runs() -> Any:
        answer = await watched.agent.prompt("Hello")
        ended = len(watched.events)
        await asyncio.sleep(0.08)
        assert len(watched.events) == ended
        return answer

    assert asyncio.run(runs())["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_an_abort_while_tools_run_answers_every_call(
    watch: Any, tool: Any, calls: Any, mode: str
) -> None:
    ran: Any = []

    async def slow(update: Any, cancellation: Any) -> str:
        ran.append(1)
        watched.agent.abort()
        try:
            await asyncio.sleep(30)
        finally:
            ran.append(cancellation.reason)
        return "x"

    watched: Any = watch(
        calls(*["slow"] * 4),
        BYE,
        tools=[tool("slow", slow, told=True)],
        tool_execution=mode,
        max_parallel_tools=1,
    )
    watched.prompt("Hello")

    assert ran == [1, "it was aborted"]
    assert list(watched.events.results().values()) == [
        "The tool was stopped: it was aborted.",
        *["Not run: it was aborted."] * 3,
    ]
    stopped = [event["stopped"] for event in watched.events.of("tool_execution_end")]
    assert stopped == ["it was aborted"] * 4
    assert watched.events.types()[-2:] == ["turn_end", "agent_end"]
    assert len(watched.events.of("model_request")) == 1


@pytest.mark.parametrize(("obeys", "seconds"), [(True, 0.1), (False, 2.0)])
def test_an_abort_takes_a_moment_or_for_those_who_ignore_it_the_grace_time(
    watch: Any, tool: Any, calls: Any, virtual: Any, obeys: bool, seconds: float
) -> None:
    async def work() -> str:
        while True:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                if obeys or gone.is_set():
                    raise

    gone = asyncio.Event()
    watched = watch(calls("work", "work"), tools=[tool("work", work)])
    started = asyncio.Event()

    def listener(event: Any) -> None:
        if event.get("tool_call_id") == "call_2":
            started.set()

    async def runs() -> float:
        loop = asyncio.get_running_loop()
        run = asyncio.ensure_future(watched.agent.prompt("Hello"))
        await started.wait()
        await asyncio.sleep(10)
        before = loop.time()
        watched.agent.abort()
        await run
        gone.set()
        return loop.time() - before

    watched.agent.subscribe(listener)
    assert virtual(runs) == pytest.approx(seconds, abs=0.1)


def test_what_a_tool_gives_when_it_is_stopped_is_kept_and_hooks_see_it(
    watch: Any, tool: Any, calls: Any
) -> None:
    async def slow() -> str:
        watched.agent.abort()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "the key is 123"
        return "all"

    async def redact(call: Any) -> Any:
        await asyncio.sleep(0)
        text = call["result"]["content"][0]["text"]
        return {"content": text.replace("123", "[key]")}

    watched: Any = watch(
        calls("slow"), tools=[tool("slow", slow)], hooks=Hooks(after_tool_call=redact)
    )
    watched.prompt("Hello")

    assert watched.events.results()["call_1"].startswith("the key is [key]")


@pytest.mark.parametrize(
    "point",
    [
        "transform_context",
        "convert_to_llm",
        "api_key",
        "before_tool_call",
        "after_tool_call",
        "stop_after_turn",
        "steering_messages",
        "follow_up_messages",
    ],
)
def test_an_abort_stops_a_hook(watch: Any, tool: Any, calls: Any, point: str) -> None:
    stopped: Any = []

    async def slow(*args: Any) -> None:
        watched.agent.abort()
        try:
            await asyncio.sleep(30)
        finally:
            stopped.append(point)

    watched: Any = watch(
        calls("look") if "tool" in point else BYE,
        tools=[tool("look", lambda: "x")],
        hooks=Hooks(**{point: slow}),
    )
    watched.prompt("Hello")

    assert stopped == [point]
    assert watched.agent.state.error == "it was aborted"
    if point in ("transform_context", "convert_to_llm", "api_key"):
        assert watched.events.of("turn_end")[0]["stop_reason"] == "aborted"


def test_a_hook_that_ignores_its_cancellation_is_left_behind(
    watch: Any, tool: Any, calls: Any
) -> None:
    async def stubborn(call: Any) -> None:
        watched.agent.abort()
        for _ in range(5):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue

    watched: Any = watch(
        calls("look"),
        tools=[tool("look", lambda: "x")],
        hooks=Hooks(before_tool_call=stubborn),
        grace=0.01,
    )
    watched.prompt("Hello")

    assert watched.events.results() == {"call_1": "Not run: it was aborted."}


def test_an_abort_from_the_last_event_of_a_run_does_not_reach_the_next(watch: Any) -> None:
    watched = watch(BYE, BYE)
    abort_at(watched, "agent_end")

    assert watched.prompt("One")["stop_reason"] == "stop"
    assert watched.prompt("Two")["stop_reason"] == "stop"


def test_one_from_another_thread_that_comes_too_late_does_not_reach_the_next_run(
    watch: Any,
) -> None:
    watched = watch(BYE, BYE)

    def abort_in_thread(event: Any) -> None:
        if event["type"] == "agent_end":
            thread = threading.Thread(target=watched.agent.abort)
            thread.start()
            thread.join()

    async def runs() -> list[str]:
        # Without a pause between: what the thread asked for comes while the second one runs.
        return [(await watched.agent.prompt(text))["stop_reason"] for text in ("One", "Two")]

    watched.agent.subscribe(abort_in_thread)

    assert asyncio.run(runs()) == ["stop", "stop"]


def test_the_request_that_was_aborted_is_made_again_when_the_run_goes_on(watch: Any) -> None:
    watched = watch({"text": "{{ count }}"}, BYE)

    def listener(event: Any) -> None:
        if event["type"] == "model_request" and event["context_change"]["added"]:
            watched.agent.abort()

    watched.agent.subscribe(listener)

    assert watched.prompt("Hello")["stop_reason"] == "aborted"
    assert asyncio.run(watched.agent.continue_())["content"] == [{"type": "text", "text": "1"}]


def test_retries_do_not_outlive_an_abort(watch: Any) -> None:
    class Failing:
        name = "failing"

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            from runner.error import ProviderError

            watched.agent.abort()
            raise ProviderError("down", "network")
            yield

        async def close(self) -> None:
            pass

    watched: Any = watch(model=Model(Failing(), "f-1", retry=Retry(5, 0.01)))

    assert watched.prompt("Hello")["stop_reason"] == "aborted"
    assert len(watched.events.of("model_request")) == 1
