"""Hooks that fail, or give what is no decision, at each of the eight extension points."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.engine.hook import Hook, Hooks

BYE = {"text": "Bye."}
LAST = {"text": "{{ count }}: {{ last.text }}"}


def later(function: Any) -> Any:
    """The same function, async."""

    async def call(*args: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args)

    return call


both = pytest.mark.parametrize("made", [lambda function: function, later], ids=["sync", "async"])


def decisions(events: Any) -> list[dict[str, Any]]:
    head = ("seq", "t", "type")
    return [
        {key: value for key, value in event.items() if key not in head}
        for event in events.of("hook_decision")
    ]


def look_at(seen: Any) -> Any:
    def look(**arguments: Any) -> str:
        seen.append(arguments)
        return "seen"

    return look


def failing(*args: Any) -> Any:
    raise ValueError("out of order")


FAILED = "The hook {} failed: out of order"
REST = [
    "transform_context",
    "convert_to_llm",
    "stop_after_turn",
    "steering_messages",
    "follow_up_messages",
    "api_key",
]


@both
@pytest.mark.parametrize("on_error", [None, "block", "fail"])
@pytest.mark.parametrize("point", REST)
def test_a_hook_that_fails_ends_the_run_as_an_error(
    run_plan: Any, point: str, on_error: Any, made: Any
) -> None:
    done = run_plan(BYE, hooks=Hooks(**{point: Hook(made(failing), on_error)}))

    assert (done.end["status"], done.end["exit_code"]) == ("error", 3)
    assert done.end["error"] == f"the hook {point} failed: out of order"
    assert decisions(done.events) == [
        {
            "hook": point,
            "action": "fail",
            "reason": "out of order",
            "on_error": on_error or "fail",
        }
    ]


@both
@pytest.mark.parametrize("point", REST)
def test_one_that_only_warns_lets_the_run_go_on(run_plan: Any, point: str, made: Any) -> None:
    hooks: Any = [Hook(made(failing), "warn"), lambda *args: None]
    done = run_plan(LAST, hooks=Hooks(**{point: hooks}))

    assert (done.end["status"], done.end["text"]) == ("ok", "1: Hello")
    assert [(d["hook"], d["on_error"]) for d in decisions(done.events)] == [(point, "warn")]


@both
@pytest.mark.parametrize(
    ("point", "on_error", "status", "result", "is_error"),
    [
        ("before_tool_call", None, "ok", FAILED, True),
        ("before_tool_call", "block", "ok", FAILED, True),
        ("before_tool_call", "warn", "ok", "seen", False),
        (
            "before_tool_call",
            "fail",
            "error",
            FAILED,
            True,
        ),
        ("after_tool_call", None, "ok", FAILED, True),
        ("after_tool_call", "block", "ok", FAILED, True),
        ("after_tool_call", "warn", "ok", "seen", False),
        ("after_tool_call", "fail", "error", FAILED, True),
    ],
)
def test_a_hook_of_tool_calls_that_fails(
    run_plan: Any,
    tool: Any,
    calls: Any,
    made: Any,
    point: str,
    on_error: Any,
    status: str,
    result: str,
    is_error: bool,
) -> None:
    done = run_plan(
        calls("look"),
        BYE,
        tools=[tool("look", look_at([]))],
        hooks=Hooks(**{point: Hook(made(failing), on_error)}),
    )

    assert done.end["status"] == status
    assert done.events.results() == {"call_1": result.format(point)}
    assert done.events.of("tool_execution_end")[0]["is_error"] is is_error
    [decision] = decisions(done.events)
    assert decision == {
        "hook": point,
        "tool_call_id": "call_1",
        "action": "fail",
        "reason": "out of order",
        "on_error": on_error or "block",
    }


@pytest.mark.parametrize(
    ("point", "given"),
    [
        ("before_tool_call", "no"),
        ("before_tool_call", {"blocked": True}),
        ("before_tool_call", {"arguments": [1]}),
        ("before_tool_call", {"arguments": {"at": object()}}),
        ("after_tool_call", ["x"]),
        ("after_tool_call", {"text": "x"}),
        ("after_tool_call", {"content": None}),
        ("after_tool_call", {"content": [{"type": "odd"}]}),
        ("after_tool_call", {"details": object()}),
    ],
)
def test_a_decision_that_is_none_counts_as_a_failure(
    watch: Any, tool: Any, calls: Any, point: str, given: Any
) -> None:
    hooks = Hooks(**{point: lambda call: given})
    watched = watch(calls("look"), BYE, tools=[tool("look", look_at([]))], hooks=hooks)

    watched.prompt("Hello")

    assert watched.events.results()["call_1"].startswith(f"The hook {point} failed: ")
    assert decisions(watched.events)[-1]["action"] == "fail"


@pytest.mark.parametrize("point", ["steering_messages", "follow_up_messages"])
@pytest.mark.parametrize("given", ["one text", 7, [3], [{"role": "system", "text": "x"}]])
def test_a_supplier_that_gives_no_messages_has_failed(
    run_plan: Any, point: str, given: Any
) -> None:
    done = run_plan(BYE, hooks=Hooks(**{point: lambda: given}))

    assert done.end["error"].startswith(f"the hook {point} failed: ")
    assert done.end["exit_code"] == 3


def leaving(*args: Any) -> Any:
    raise SystemExit("bye")


def cancelling(*args: Any) -> Any:
    raise asyncio.CancelledError


@both
@pytest.mark.parametrize("raising", [leaving, cancelling])
@pytest.mark.parametrize("point", [*REST, "before_tool_call", "after_tool_call"])
def test_no_hook_can_leave_the_program_or_the_loop(
    run_plan: Any, tool: Any, calls: Any, made: Any, point: str, raising: Any
) -> None:
    hooks = Hooks(**{point: Hook(made(raising), "fail")})
    done = run_plan(calls("look"), BYE, tools=[tool("look", look_at([]))], hooks=hooks)

    assert (done.end["status"], done.end["exit_code"]) == ("error", 3)
