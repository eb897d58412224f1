"""The seven steps of a tool call: in parallel and in sequence, and each way in which one fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.engine.contract import ToolResult
from runner.engine.hook import Hooks
from runner.engine.limit import Limits

BYE = {"text": "Bye."}


class Gates:
    """Lets tools end in an order that a test decides."""

    def __init__(self) -> None:
        self.events: dict[str, asyncio.Event] = {}
        self.running = self.most = 0

    def of(self, name: str) -> asyncio.Event:
        return self.events.setdefault(name, asyncio.Event())

    async def wait(self, name: str) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        await self.of(name).wait()
        self.running -= 1
        return name


def test_parallel_calls_end_as_they_finish_and_are_told_in_the_models_order(
    watch: Any, tool: Any, calls: Any
) -> None:
    gates = Gates()

    async def second() -> str:
        gates.of("first").set()
        return "second"

    tools = [tool("first", lambda: gates.wait("first")), tool("second", second)]
    watched = watch(calls("first", "second"), BYE, tools=tools)

    watched.prompt("Hello")

    assert watched.events.about() == [
        "start call_1",
        "start call_2",
        "end call_2",
        "end call_1",
        "message call_1",
        "message call_2",
    ]
    assert watched.events.of("turn_end")[0]["tool_result_ids"] == ["m3", "m4"]


IN_SEQUENCE = [
    "start call_1",
    "end call_1",
    "message call_1",
    "start call_2",
    "end call_2",
    "message call_2",
]


@pytest.mark.parametrize(
    ("mode", "execution"), [("sequential", "parallel"), ("parallel", "sequential")]
)
def test_in_sequence_one_call_is_over_before_the_next_begins(
    watch: Any, tool: Any, calls: Any, mode: str, execution: str
) -> None:
    tools = [
        tool("any", lambda: asyncio.sleep(0, "x")),
        tool("own", lambda: asyncio.sleep(0, "y"), execution=execution),
    ]
    watched = watch(calls("any", "own"), BYE, tools=tools, tool_execution=mode)

    watched.prompt("Hello")

    assert watched.events.about() == IN_SEQUENCE


def test_a_sequential_tool_that_is_not_called_changes_nothing(
    watch: Any, tool: Any, calls: Any
) -> None:
    tools = [tool("any", lambda: "x"), tool("own", lambda: "y", execution="sequential")]
    watched = watch(calls("any", "any"), BYE, tools=tools)

    watched.prompt("Hello")

    assert watched.events.about("start", "end")[:2] == ["start call_1", "start call_2"]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_so_many_calls_run_at_once_as_may(watch: Any, tool: Any, calls: Any, most: int) -> None:
    gates = Gates()

    async def work() -> str:
        gates.running += 1
        gates.most = max(gates.most, gates.running)
        for _ in range(5):
            await asyncio.sleep(0)
        gates.running -= 1
        return "done"

    reply = calls(*["work"] * 7)
    watched = watch(reply, BYE, tools=[tool("work", work)], max_parallel_tools=most)

    watched.prompt("Hello")

    assert gates.most == most
    assert len(watched.events.results()) == 7


def test_hooks_and_checks_come_one_call_after_the_other_before_any_tool_runs(
    watch: Any, tool: Any, calls: Any
) -> None:
    order: Any = []

    async def before(call: Any) -> None:
        order.append(f"before {call['tool_call_id']}")
        await asyncio.sleep(0)
        order.append(f"passed {call['tool_call_id']}")

    tools = [tool("look", lambda: order.append("run") or "x")]
    watched = watch(calls("look", "look"), BYE, tools=tools, hooks=Hooks(before_tool_call=before))

    watched.prompt("Hello")

    first, second = "call_1", "call_2"
    assert order[:4] == [
        f"before {first}",
        f"passed {first}",
        f"before {second}",
        f"passed {second}",
    ]


def test_a_tool_that_is_not_there_is_answered_with_the_names_there_are(
    watch: Any, tool: Any, calls: Any
) -> None:
    tools = [tool("look", lambda: "x"), tool("peek", lambda: "y")]
    watched = watch(calls("lok"), BYE, tools=tools)

    watched.prompt("Hello")

    assert watched.events.about() == ["start call_1", "end call_1", "message call_1"]
    assert watched.events.results()["call_1"] == (
        'There is no tool "lok". The tools are: look, peek.'
    )


def test_arguments_that_do_not_fit_are_answered_with_all_that_is_wrong(
    watch: Any, tool: Any, calls: Any
) -> None:
    ran: Any = []
    look = tool(
        "look", lambda: ran.append(1), checks=lambda arguments: ["a is no number", "b is missing"]
    )
    watched = watch(calls("look"), BYE, tools=[look])

    watched.prompt("Hello")

    assert ran == []
    assert watched.events.results()["call_1"] == (
        "The arguments don't fit, and the tool was not run:\n- a is no number\n- b is missing"
    )


@pytest.mark.parametrize("raw", ['{"path": "a', "[1]", "null", '"x"', '{"a": NaN}', "[" * 5000])
def test_arguments_that_are_no_object_stay_as_they_came_and_are_answered(
    watch: Any, tool: Any, raw: str
) -> None:
    ran: Any = []
    reply = {"tool_calls": [{"name": "look", "arguments": raw}]}
    watched = watch(reply, BYE, tools=[tool("look", lambda: ran.append(1))])

    watched.prompt("Hello")

    assert ran == []
    assert watched.events.of("tool_execution_start")[0]["arguments"] == raw
    assert "not a JSON object" in watched.events.results()["call_1"]


def test_no_arguments_at_all_are_an_empty_object(watch: Any, tool: Any) -> None:
    reply = {"tool_calls": [{"name": "look", "arguments": ""}]}
    watched = watch(reply, BYE, tools=[tool("look", lambda: "seen")])

    watched.prompt("Hello")

    assert watched.events.results()["call_1"] == "seen"


class Odd:
    def __repr__(self) -> str:
        return "Odd()"


def raising(error: BaseException) -> Any:
    def function() -> None:
        raise error

    return function


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (raising(ValueError("too hot\nto touch")), "too hot\nto touch"),
        (raising(ValueError()), "ValueError"),
        (raising(SystemExit(3)), "it tried to end the program, exit code 3"),
        (raising(asyncio.CancelledError()), "The tool was stopped: it was cancelled."),
        (lambda: None, "the tool gave no ToolResult, but None"),
        (raising(KeyError("screw")), "KeyError: 'screw'"),
        (lambda: Odd(), "the tool gave no ToolResult, but Odd()"),
        (lambda: ToolResult([{"type": "text"}]), 'a block of type text needs "text"'),  # type: ignore[list-item]
        (lambda: ToolResult(["x"]), "a block has a type"),  # type: ignore[list-item]
        (lambda: ToolResult(None), "a content is a list of blocks, not None"),  # type: ignore[arg-type]
        (lambda: ToolResult("x", details=Odd()), "not JSON serializable"),
        (lambda: ToolResult("x", details=float("nan")), "not JSON compliant"),
    ],
)
def test_a_tool_that_raises_or_gives_nonsense_is_answered_with_what_is_wrong(
    watch: Any, tool: Any, calls: Any, function: Any, said: str
) -> None:
    watched = watch(calls("bad"), BYE, tools=[tool("bad", function)])

    assert watched.prompt("Hello")["content"] == [{"type": "text", "text": "Bye."}]

    assert said in watched.events.results()["call_1"]
    assert watched.events.of("tool_execution_end")[0]["is_error"] is True


def test_an_execute_that_raises_at_once_is_answered_too(watch: Any, tool: Any, calls: Any) -> None:
    class Bad(tool):  # type: ignore[misc]
        def execute(self, *args: Any) -> Any:
            raise LookupError("not even a coroutine")

    watched = watch(calls("bad", "bad"), BYE, tools=[Bad("bad", None)])

    watched.prompt("Hello")

    assert list(watched.events.results().values()) == ["not even a coroutine"] * 2


def test_details_are_told_and_the_model_does_not_read_them(
    watch: Any, tool: Any, calls: Any
) -> None:
    look = tool("look", lambda: ToolResult("seen", details={"exit_code": 0}))
    watched = watch(calls("look"), BYE, tools=[look])

    watched.prompt("Hello")

    assert watched.events.of("tool_execution_end")[0]["result"] == {
        "content": [{"type": "text", "text": "seen"}],
        "details": {"exit_code": 0},
    }
    assert watched.agent.state.messages[2]["details"] == {"exit_code": 0}


def test_what_a_tool_does_with_its_arguments_changes_no_history(watch: Any, tool: Any) -> None:
    def greedy(**arguments: Any) -> str:
        arguments["deep"]["list"].clear()
        return "done"

    reply = {"tool_calls": [{"name": "eat", "arguments": {"deep": {"list": [1]}}}]}
    watched = watch(reply, BYE, tools=[tool("eat", greedy)])

    watched.prompt("Hello")

    block = watched.agent.state.messages[1]["content"][0]
    assert block["arguments"] == {"deep": {"list": [1]}}


def test_only_calls_that_are_run_count_against_the_limit(
    run_plan: Any, tool: Any, calls: Any
) -> None:
    tools = [
        tool("bad", lambda: "", checks=lambda arguments: ["wrong"]),
        tool("blocked", lambda: ""),
        tool("good", lambda: "x"),
    ]
    blocks = lambda call: {"block": True} if call["tool_name"] == "blocked" else None  # noqa: E731
    done = run_plan(
        calls("none", "bad", "blocked", "good", "good"),
        BYE,
        tools=tools,
        hooks=Hooks(before_tool_call=blocks),
        limits=Limits(tool_calls=2),
    )

    assert (done.end["status"], done.end["tool_calls"]) == ("ok", 2)
