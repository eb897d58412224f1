"""Tools while they run: their time, their updates, and messages that interrupt them."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from runner.engine.hook import Hooks

BYE = {"text": "Bye."}


class Odd:
    def __repr__(self) -> str:
        return "Odd()"


# --- time -----------------------------------------------------------------------------------------


def test_a_tool_that_takes_too_long_is_stopped_and_answered(
    watch: Any, tool: Any, calls: Any
) -> None:
    watched = watch(
        calls("slow", "quick"),
        BYE,
        tools=[
            tool("slow", lambda: asyncio.sleep(60), timeout=0.01),
            tool("quick", lambda: "done", timeout=60),
        ],
    )

    watched.prompt("Hello")

    assert watched.events.results() == {
        "call_1": "The tool was stopped: timed out after 0.01 s.",
        "call_2": "done",
    }
    ends = {e["tool_call_id"]: e for e in watched.events.of("tool_execution_end")}
    assert ends["call_1"]["stopped"] == "timed out after 0.01 s"
    assert "stopped" not in ends["call_2"]


def test_a_tool_that_is_stopped_may_say_what_it_has_so_far(
    watch: Any, tool: Any, calls: Any
) -> None:
    async def slow(update: Any, cancellation: Any) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            assert cancellation.cancelled
            return f"half of it ({cancellation.reason})"
        return "all"

    watched = watch(calls("slow"), BYE, tools=[tool("slow", slow, timeout=0.01, told=True)])

    watched.prompt("Hello")

    assert watched.events.results()["call_1"] == (
        "half of it (timed out after 0.01 s)\nThe tool was stopped: timed out after 0.01 s."
    )
    assert watched.events.of("tool_execution_end")[0]["is_error"] is True


def test_a_tool_that_ignores_its_cancellation_is_left_behind(
    watch: Any, tool: Any, calls: Any
) -> None:
    ended: Any = []

    async def stubborn(update: Any, cancellation: Any) -> str:
        for _ in range(4):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
        update("too late")
        ended.append("at last")
        raise OSError("nobody is told")

    async def both() -> None:
        await watched.agent.prompt("Hello")
        assert ended == []
        await asyncio.sleep(0.1)

    watched = watch(
        calls("slow"),
        BYE,
        tools=[tool("slow", stubborn, timeout=0.01, told=True)],
        grace=0.01,
    )
    asyncio.run(both())

    assert ended == ["at last"]
    assert "left behind" in watched.events.results()["call_1"]
    assert watched.events.of("tool_execution_update") == []


# --- updates --------------------------------------------------------------------------------------


def test_updates_come_as_they_are_from_the_loop_and_from_threads(
    watch: Any, tool: Any, calls: Any
) -> None:
    async def work(update: Any, cancellation: Any) -> str:
        update({"done": 1})
        await asyncio.to_thread(lambda: [update(f"line {n}") for n in range(3)])
        return "x"

    watched = watch(calls("work"), BYE, tools=[tool("work", work, told=True)])

    watched.prompt("Hello")

    updates = watched.events.of("tool_execution_update")
    assert [e["update"] for e in updates] == [{"done": 1}, "line 0", "line 1", "line 2"]
    assert updates[0]["tool_name"] == "work"


def test_an_update_that_is_not_json_is_the_tools_own_fault(
    watch: Any, tool: Any, calls: Any
) -> None:
    def work(update: Any, cancellation: Any) -> str:
        update(Odd())
        return "x"

    watched = watch(calls("work"), BYE, tools=[tool("work", work, told=True)])

    watched.prompt("Hello")

    assert "not JSON serializable" in watched.events.results()["call_1"]


def test_updates_after_a_calls_end_and_after_the_loops_end_are_dropped(
    watch: Any, tool: Any, calls: Any
) -> None:
    go, failed = threading.Event(), []

    def late(update: Any) -> None:
        try:
            for _ in range(50):
                update("late")
                time.sleep(0.001)
            go.wait(10)
            update("later than all")
        except Exception as error:
            failed.append(error)

    def work(update: Any, cancellation: Any) -> str:
        thread = threading.Thread(target=late, args=(update,))
        thread.start()
        threads.append(thread)
        return "x"

    threads: list[threading.Thread] = []
    watched = watch(calls("work"), BYE, tools=[tool("work", work, told=True)])
    watched.prompt("Hello")
    go.set()
    for thread in threads:
        thread.join()

    assert failed == []


# --- interrupt ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_an_interrupt_skips_the_calls_that_have_not_begun(
    watch: Any, tool: Any, calls: Any, mode: str
) -> None:
    ran: Any = []

    def read() -> str:
        ran.append("read")
        watched.agent.steer("Stop reading.")
        return "x"

    tools = [tool("read", read), tool("note", lambda: ran.append("note") or "y")]
    watched = watch(
        calls("read", "note", "note"),
        {"text": "{{ last.text }}"},
        tools=tools,
        tool_execution=mode,
        max_parallel_tools=1,
        interrupt=True,
    )

    watched.prompt("Hello")

    assert ran == ["read"]
    results = watched.events.results()
    assert results["call_1"] == "x"
    assert results["call_2"].startswith("Skipped")
    assert results["call_3"].startswith("Skipped")
    assert watched.events.said("assistant")[-1] == "assistant: Stop reading."


def test_an_interrupt_while_a_hook_decides_skips_its_call(
    watch: Any, tool: Any, calls: Any
) -> None:
    ran: Any = []
    watched = watch(
        calls("note"),
        BYE,
        tools=[tool("note", lambda: ran.append("note") or "y")],
        hooks=Hooks(before_tool_call=lambda call: watched.agent.steer("Wait.")),
        interrupt=True,
    )

    watched.prompt("Hello")

    assert ran == []
    assert watched.events.results()["call_1"].startswith("Skipped")


def test_without_interrupt_the_calls_of_the_turn_are_still_run(
    watch: Any, tool: Any, calls: Any
) -> None:
    ran: Any = []

    def read() -> str:
        watched.agent.steer("Stop reading.")
        return "x"

    tools = [tool("read", read), tool("note", lambda: ran.append("note") or "y")]
    watched = watch(calls("read", "note"), BYE, tools=tools, tool_execution="sequential")

    watched.prompt("Hello")

    assert ran == ["note"]
