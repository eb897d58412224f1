"""Agents as tools of other agents: paths, limits, aborts and nesting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from runner.engine.contract import ToolResult
from runner.engine.hook import Hooks
from runner.engine.limit import Limits
from runner.engine.plan import OutputCheck, Task
from runner.engine.sub_agent import AgentTool
from runner.error import TemplateError

ECHO = {"text": "got {{ last.text }}", "repeat": "forever"}
LONG = {"text": "a b c", "deltas": 3, "delay": 30.0}
FAIL = {"text": "par", "error": "no", "status": 400}


@pytest.fixture
def agent(plan: Any) -> Callable[..., AgentTool]:
    """Make a tool of an agent with a script; ``options`` are those of its plan."""

    def make(*script: Any, name: str = "helper", **options: Any) -> AgentTool:
        tool_options = {k: options.pop(k) for k in ("timeout", "execution") if k in options}

        def bind(inputs: Any) -> Any:
            return plan(*script, name=name, prompt=str(inputs.get("text", "Help.")), **options)

        return AgentTool(name, "Helps.", {"type": "object"}, bind, lambda _: [], **tool_options)

    return make


def paths(events: Any, event_type: str = "agent_start") -> list[str | None]:
    return [event.get("agent") for event in events.of(event_type)]


# --- as a tool ------------------------------------------------------------------------------------


def test_an_agent_as_a_tool_gets_its_inputs_and_gives_its_text(run_plan: Any, agent: Any) -> None:
    reply = {"tool_calls": [{"name": "helper", "arguments": {"text": "Look."}}]}
    done = run_plan(reply, {"text": "{{ last.text }}"}, tools=[agent(ECHO)])

    assert done.end["text"] == "got Look."
    assert done.events.results()["call_1"] == "got Look."
    inner = done.events.types(agent="main/helper#1")
    assert inner == [
        "agent_start",
        "task_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start",
        "message_end",
        "turn_end",
        "task_end",
        "agent_end",
    ]
    outer = [event["type"] for event in done.events.of(agent=None)]
    start, end = outer.index("tool_execution_start"), outer.index("tool_execution_end")
    assert end == start + 1
    ids = [e["message"]["id"] for e in done.events.of("message_end", agent="main/helper#1")]
    assert ids == ["m1", "m2"]
    assert [e for e in done.events.of("run_start", "run_end") if "agent" in e] == []


def test_its_output_is_the_result_where_it_has_one(run_plan: Any, agent: Any, calls: Any) -> None:
    helper = agent({"text": "x"}, output=OutputCheck(lambda text: ({"b": 1, "a": [text]}, None)))
    done = run_plan(calls("helper"), ECHO, tools=[helper])

    assert done.events.results()["call_1"] == '{"b":1,"a":["x"]}'


def test_agents_are_numbered_by_name_in_the_order_of_their_calls(
    run_plan: Any, agent: Any, calls: Any
) -> None:
    inner = agent(ECHO, name="inner")
    helper = agent(calls("inner", "inner"), ECHO, tools=[inner])
    other = agent(ECHO, name="other")
    done = run_plan(
        calls("helper", "other", "helper"), calls("helper"), ECHO, tools=[helper, other]
    )

    starts = paths(done.events)
    outer = ["main/helper#1", "main/other#1", "main/helper#2", "main/helper#3"]
    assert [path for path in starts if path in outer] == outer
    assert sorted(path for path in starts if path and "inner" in path) == [
        f"main/helper#{n}/inner#{m}" for n in (1, 2, 3) for m in (1, 2)
    ]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([FAIL], "The agent helper ended as error: no\nIt said so far: par"),
        ([{"text": "x", "stop": "length"}], "ended as limit: the limit output is reached"),
        ([{"text": "x", "stop": "aborted"}], "ended as aborted: the model's answer was aborted"),
    ],
)
def test_one_that_did_not_end_well_is_an_error_result(
    run_plan: Any, agent: Any, calls: Any, script: Any, said: str
) -> None:
    done = run_plan(calls("helper"), {"text": "Sorry."}, tools=[agent(*script)])

    assert said in done.events.results()["call_1"]
    assert done.events.of("tool_execution_end", agent=None)[0]["is_error"] is True
    assert (done.end["status"], done.end["text"]) == ("ok", "Sorry.")


def test_one_that_is_denied_denies_the_run(
    run_plan: Any, agent: Any, calls: Any, tool: Any
) -> None:

    hooks = Hooks(before_tool_call=lambda call: {"block": True, "stop": True, "reason": "no"})
    helper = agent(calls("rm"), tools=[tool("rm", lambda: "x")], hooks=hooks)
    done = run_plan(calls("helper"), ECHO, tools=[helper])

    assert (done.end["status"], done.end["exit_code"]) == ("denied", 5)


def test_inputs_that_can_not_be_bound_are_told_to_the_model(run_plan: Any, calls: Any) -> None:
    def bind(inputs: Any) -> Any:
        raise TemplateError("text is not there")

    helper = AgentTool("helper", "Helps.", {}, bind, lambda _: [])
    done = run_plan(calls("helper"), ECHO, tools=[helper])

    assert done.events.results()["call_1"] == "text is not there"


def test_a_bug_in_an_agent_is_one_of_the_run(run_plan: Any, agent: Any, calls: Any) -> None:
    def buggy(scope: Any) -> bool:
        raise KeyError("bug")

    helper = agent(ECHO, tasks=[Task("x", lambda scope: "x", when=buggy)])
    done = run_plan(calls("helper"), ECHO, tools=[helper])

    assert isinstance(done.ended.bug, KeyError)
    assert done.end["exit_code"] == 70


# --- limits ---------------------------------------------------------------------------------------


def test_what_agents_use_their_parents_use_too(
    run_plan: Any, agent: Any, calls: Any, tool: Any
) -> None:
    usage = {"input": 10, "output": 5}
    look = tool("look", lambda: "x")
    helper = agent(calls("look", usage=usage), {"text": "x", "usage": usage}, tools=[look])
    done = run_plan(
        calls("helper", "helper", usage=usage), {"text": "y", "usage": usage}, tools=[helper]
    )

    assert done.end["turns"] == 6
    assert done.end["tool_calls"] == 4
    assert (done.end["usage"]["input"], done.end["usage"]["output"]) == (60, 30)


@pytest.mark.parametrize(
    "limits", [Limits(turns=3), Limits(tokens=40), Limits(tool_calls=2, turns=None)]
)
def test_a_limit_of_the_run_holds_for_the_sum(
    run_plan: Any, agent: Any, calls: Any, tool: Any, limits: Any
) -> None:
    numbers = iter(range(100))
    usage = {"input": 10}
    helper = agent(
        calls("look", usage=usage, repeat="forever"),
        tools=[tool("look", lambda: str(next(numbers)))],
    )
    done = run_plan(calls("helper", usage=usage), ECHO, tools=[helper], limits=limits)

    assert done.end["status"] == "limit"
    assert len(done.events.of("limit_reached")) == 1
    assert done.events.of("limit_reached")[0]["agent"] == "main/helper#1"
    assert "ended as limit" in done.events.results()["call_1"]
    # It ends where it would go on: in the agent, and then in the one that called it.
    assert [e["stop_reason"] for e in done.events.of("agent_end")] == ["tool_use", "tool_use"]


def test_an_agents_own_limit_is_its_own_and_told_for_each(
    run_plan: Any, agent: Any, calls: Any, tool: Any
) -> None:
    numbers = iter(range(100))
    helper = agent(
        calls("look", repeat="forever"),
        tools=[tool("look", lambda: str(next(numbers)))],
        limits=Limits(turns=2),
    )
    done = run_plan(calls("helper", "helper"), calls("helper"), {"text": "Bye."}, tools=[helper])

    assert done.end["status"] == "ok"
    assert paths(done.events, "limit_reached") == [f"main/helper#{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(("depth", "deepest"), [(1, 1), (2, 2), (3, 3), (None, 5)])
def test_agents_stand_only_so_deep_within_agents(
    run_plan: Any, agent: Any, calls: Any, depth: Any, deepest: int
) -> None:
    closed: Any = []

    async def close() -> None:
        closed.append(1)

    helper = agent(ECHO, close=[close])
    for _ in range(4):
        helper = agent(calls("helper"), ECHO, tools=[helper], close=[close])
    done = run_plan(calls("helper"), ECHO, tools=[helper], limits=Limits(depth=depth))

    assert len(paths(done.events)) == deepest + 1
    assert done.end["status"] == "ok"
    if depth is not None:
        assert f"the limit depth of {depth} agents within agents" in "".join(
            done.events.said("tool_result")
        )
    assert len(closed) == deepest


# --- aborts ---------------------------------------------------------------------------------------


def aborting(event_type: str, **fields: Any) -> Callable[[Any], None]:
    """Abort a run at the first event of a type."""

    def before(run: Any) -> None:
        def listener(event: Any) -> None:
            if event["type"] == event_type and event.items() >= fields.items():
                run.abort(15)

        run._emitter.subscribe(listener)

    return before


def test_an_abort_reaches_all_agents(run_plan: Any, agent: Any, calls: Any) -> None:
    inner = agent(LONG, name="inner")
    helper = agent(calls("inner", "inner"), tools=[inner])
    deepest = "main/helper#2/inner#2"
    done = run_plan(
        calls("helper", "helper"),
        tools=[helper],
        before=aborting("model_request", agent=deepest),
    )

    assert (done.end["status"], done.end["exit_code"]) == ("aborted", 143)
    reasons = {e.get("agent"): e["stop_reason"] for e in done.events.of("agent_end")}
    assert len(reasons) == 7
    assert {reason for path, reason in reasons.items() if path and "inner" in path} == {"aborted"}
    stopped = done.events.of("tool_execution_end")
    assert [event["stopped"] for event in stopped] == ["it was terminated"] * 6


def test_an_agent_that_takes_too_long_ends_all_of_its_own_first(
    run_plan: Any, agent: Any, calls: Any
) -> None:
    inner = agent(LONG, name="inner")
    helper = agent(calls("inner"), tools=[inner], timeout=0.03)
    done = run_plan(calls("helper"), {"text": "Bye."}, tools=[helper])

    result = done.events.results()["call_1"]
    assert "The agent helper ended as aborted" in result
    assert result.endswith("The tool was stopped: timed out after 0.03 s.")
    assert done.end["status"] == "ok"


def test_a_tool_deep_below_that_ignores_its_cancellation_holds_nobody_up_for_long(
    run_plan: Any, agent: Any, calls: Any, tool: Any
) -> None:
    async def stubborn(update: Any, cancellation: Any) -> ToolResult:
        update("begun")
        for _ in range(8):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
        return ToolResult("too late")

    inner = agent(
        calls("slow"), name="inner", tools=[tool("slow", stubborn, told=True)], grace=0.02
    )
    helper = agent(calls("inner"), tools=[inner], grace=0.02)
    done = run_plan(
        calls("helper"),
        tools=[helper],
        grace=0.02,
        before=aborting("tool_execution_update"),
    )

    assert "left behind" in done.events.said("tool_result")[0]
    assert done.end["status"] == "aborted"


def test_an_agent_beside_it_does_not_keep_a_stubborn_tool_from_being_left_behind(
    run_plan: Any, agent: Any, calls: Any, tool: Any
) -> None:
    async def stubborn() -> ToolResult:
        for _ in range(5):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
        return ToolResult("at last")

    helper = agent({"text": "a b c", "deltas": 3, "delay": 0.05})
    done = run_plan(
        calls("helper", "slow"),
        ECHO,
        tools=[helper, tool("slow", stubborn, timeout=0.01)],
        grace=0.01,
    )

    assert "left behind" in done.events.results()["call_2"]
    assert done.events.results()["call_1"] == "a b c"
