"""The eight extension points: what each gets and gives, and in which order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.engine.contract import ToolResult
from runner.engine.hook import Hooks

BYE = {"text": "Bye."}
LAST = {"text": "{{ count }}: {{ last.text }}"}


def later(function: Any) -> Any:
    """The same function, async."""

    async def call(*args: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args)

    return call


both = pytest.mark.parametrize("made", [lambda function: function, later], ids=["sync", "async"])


def told(said: str) -> Any:
    return [{"type": "text", "text": said}]


def decisions(events: Any) -> list[dict[str, Any]]:
    head = ("seq", "t", "type")
    return [
        {key: value for key, value in event.items() if key not in head}
        for event in events.of("hook_decision")
    ]


# --- the context ----------------------------------------------------------------------------------


@both
def test_transform_context_decides_what_is_read_and_changes_no_history(
    watch: Any, made: Any
) -> None:
    seen: Any = []

    def keep_last(messages: Any) -> Any:
        seen.append([message["role"] for message in messages])
        return messages[-1:]

    def shout(messages: Any) -> Any:
        return [*messages, {"role": "user", "text": "LOUD"}]

    watched = watch(
        {**LAST, "repeat": "forever"}, hooks=Hooks(transform_context=[made(keep_last), made(shout)])
    )

    watched.prompt("One")
    watched.prompt("Two")

    assert seen == [["user"], ["user", "assistant", "user"]]
    assert watched.events.said("assistant") == ["assistant: 2: LOUD"] * 2
    assert [m["role"] for m in watched.agent.state.messages] == ["user", "assistant"] * 2


def test_the_context_of_hooks_has_no_failed_answers_and_convert_comes_after_transform(
    watch: Any,
) -> None:
    order: Any = []

    def named(name: str) -> Any:
        return lambda messages: order.append((name, len(messages)))

    watched = watch(
        {"text": "par", "error": "overloaded", "status": 529},
        BYE,
        attempts=2,
        hooks=Hooks(convert_to_llm=named("convert"), transform_context=named("transform")),
    )

    watched.prompt("Hello")

    assert order == [("transform", 1), ("convert", 1)]


def test_custom_messages_are_left_out_unless_convert_to_llm_says_otherwise(watch: Any) -> None:
    def convert(messages: Any) -> Any:
        return [{**m, "role": "user"} if m["role"] == "custom" else m for m in messages]

    note = {"role": "custom", "text": "a note"}
    for hooks, said in (
        (Hooks(), "1: Hello"),
        (Hooks(transform_context=lambda messages: None), "1: Hello"),
        (Hooks(convert_to_llm=convert), "2: a note"),
    ):
        watched = watch(LAST, hooks=hooks)
        watched.prompt("Hello", note)
        assert watched.events.said("assistant") == [f"assistant: {said}"]
        assert watched.agent.state.messages[1]["role"] == "custom"


@pytest.mark.parametrize("point", ["transform_context", "convert_to_llm"])
@pytest.mark.parametrize(
    "given", [7, "text", {"role": "user"}, [1], [{"role": "odd", "text": "x"}], [{"role": "user"}]]
)
def test_a_hook_of_the_context_that_gives_no_messages_has_failed(
    run_plan: Any, point: str, given: Any
) -> None:
    done = run_plan(BYE, hooks=Hooks(**{point: lambda messages: given}))

    assert (done.end["status"], done.end["exit_code"]) == ("error", 3)
    assert done.end["error"].startswith(f"the hook {point} failed: ")
    assert decisions(done.events)[0]["action"] == "fail"


def test_a_context_that_is_not_json_is_an_error_of_the_run(run_plan: Any) -> None:
    odd = [{"role": "user", "content": [{"type": "text", "text": "x", "odd": object()}]}]
    done = run_plan(BYE, hooks=Hooks(transform_context=lambda messages: odd))

    assert (done.end["status"], done.end["exit_code"]) == ("error", 3)
    assert "is not JSON" in done.end["error"]


# --- tool calls -----------------------------------------------------------------------------------


def look_at(seen: Any) -> Any:
    def look(**arguments: Any) -> str:
        seen.append(arguments)
        return "seen"

    return look


@both
def test_before_tool_call_gets_the_call_and_may_let_it_pass(
    watch: Any, tool: Any, made: Any
) -> None:
    got: Any = []
    reply = {"tool_calls": [{"name": "look", "arguments": {"at": 1}}]}
    hooks = Hooks(before_tool_call=[made(got.append), made(got.append)])
    watched = watch(reply, BYE, tools=[tool("look", look_at([]))], hooks=hooks)

    watched.prompt("Hello")

    assert got == [{"tool_name": "look", "tool_call_id": "call_1", "arguments": {"at": 1}}] * 2
    assert decisions(watched.events) == []
    assert watched.events.results() == {"call_1": "seen"}


@both
def test_the_first_that_blocks_decides(watch: Any, tool: Any, calls: Any, made: Any) -> None:
    seen: Any = []
    hooks = Hooks(
        before_tool_call=[
            made(lambda call: {"block": True, "reason": "No looking."}),
            made(seen.append),
        ]
    )
    watched = watch(calls("look"), BYE, tools=[tool("look", look_at(seen))], hooks=hooks)

    watched.prompt("Hello")

    assert seen == []
    assert watched.events.results() == {"call_1": "Not run: No looking."}
    assert watched.events.about() == ["start call_1", "end call_1", "message call_1"]
    assert decisions(watched.events) == [
        {
            "hook": "before_tool_call",
            "tool_call_id": "call_1",
            "action": "block",
            "reason": "No looking.",
        }
    ]


def test_one_that_allows_keeps_the_others_from_being_asked(
    watch: Any, tool: Any, calls: Any
) -> None:
    hooks = Hooks(before_tool_call=[lambda call: {"allow": True}, lambda call: {"block": True}])
    watched = watch(calls("look"), BYE, tools=[tool("look", look_at([]))], hooks=hooks)

    watched.prompt("Hello")

    assert watched.events.results() == {"call_1": "seen"}


def test_a_block_that_stops_ends_the_run_as_denied(run_plan: Any, tool: Any, calls: Any) -> None:
    def stops(call: Any) -> Any:
        return {"block": True, "stop": True, "reason": "no"}

    seen: Any = []
    done = run_plan(
        calls("look", "look"),
        BYE,
        tools=[tool("look", look_at(seen))],
        hooks=Hooks(before_tool_call=stops),
    )

    assert (done.end["status"], done.end["exit_code"]) == ("denied", 5)
    assert done.end["error"] == "look: no"
    assert seen == []
    assert list(done.events.results().values()) == ["Not run: no", "Not run: the run ends."]
    assert decisions(done.events)[0]["stop"] is True


@both
def test_arguments_that_are_rewritten_are_checked_again_by_the_tool_and_by_later_hooks(
    watch: Any, tool: Any, made: Any
) -> None:
    checked: Any = []
    seen: Any = []
    got: Any = []

    def check(arguments: Any) -> Any:
        checked.append(dict(arguments))
        return ["at must be less than 3"] if arguments["at"] > 2 else []

    def more(call: Any) -> Any:
        got.append(call["arguments"])
        return {"arguments": {"at": call["arguments"]["at"] + 1}}

    def reply(at: int) -> Any:
        return {"tool_calls": [{"name": "look", "arguments": {"at": at}}]}

    watched = watch(
        reply(0),
        reply(1),
        BYE,
        tools=[tool("look", look_at(seen), checks=check)],
        hooks=Hooks(before_tool_call=[made(more), made(more)]),
    )

    watched.prompt("Hello")

    assert checked == [{"at": n} for n in (0, 1, 2, 1, 2, 3)]
    assert got == [{"at": 0}, {"at": 1}, {"at": 1}, {"at": 2}]
    assert seen == [{"at": 2}]
    assert watched.events.results() == {
        "call_1": "seen",
        "call_2": "The arguments don't fit, and the tool was not run:\n- at must be less than 3",
    }
    rewrites = [(d["action"], d["arguments"]) for d in decisions(watched.events)]
    assert rewrites == [("rewrite", {"at": n}) for n in (1, 2, 2, 3)]
    starts = watched.events.of("tool_execution_start")
    assert [event["arguments"] for event in starts] == [{"at": 0}, {"at": 1}]


def test_a_hook_that_changes_what_it_got_changes_nothing(watch: Any, tool: Any, calls: Any) -> None:
    def change(call: Any) -> None:
        call["arguments"]["at"] = "changed"
        for block in call.get("result", {}).get("content", ()):
            block["text"] = "changed"

    seen: Any = []
    hooks = Hooks(before_tool_call=change, after_tool_call=change)
    watched = watch(calls("look"), BYE, tools=[tool("look", look_at(seen))], hooks=hooks)

    watched.prompt("Hello")

    assert seen == [{}]
    assert watched.events.results() == {"call_1": "seen"}
    assert watched.agent.state.messages[1]["content"][0]["arguments"] == {}


@both
def test_after_tool_call_gets_the_result_and_replaces_field_by_field(
    watch: Any, tool: Any, calls: Any, made: Any
) -> None:
    got: Any = []
    replaced = iter(
        [
            {"content": "short"},
            {"details": {"n": 2}},
            {"content": [{"type": "text", "text": "as a block"}], "is_error": True},
            {"is_error": False, "terminate": True},
        ]
    )

    def after(call: Any) -> Any:
        got.append(call)
        return next(replaced)

    tools = [tool("look", lambda: ToolResult("long", details={"n": 1}))]
    hooks = Hooks(after_tool_call=[made(after)] * 4)
    watched = watch(calls("look"), tools=tools, hooks=hooks)

    watched.prompt("Hello")

    assert [call["result"] for call in got] == [
        {"content": told("long"), "details": {"n": 1}, "is_error": False},
        {"content": told("short"), "details": {"n": 1}, "is_error": False},
        {"content": told("short"), "details": {"n": 2}, "is_error": False},
        {"content": told("as a block"), "details": {"n": 2}, "is_error": True},
    ]
    [end] = watched.events.of("tool_execution_end")
    assert end["result"] == {"content": told("as a block"), "details": {"n": 2}}
    assert (end["is_error"], end["terminate"]) == (False, True)
    assert [d["action"] for d in decisions(watched.events)] == ["replace"] * 4
    assert len(watched.events.of("turn_start")) == 1


def test_after_tool_call_does_not_see_calls_that_were_not_run(
    watch: Any, tool: Any, calls: Any
) -> None:
    seen: Any = []
    bad = tool("bad", lambda: "", checks=lambda arguments: ["wrong"])
    watched = watch(
        calls("none", "bad"), BYE, tools=[bad], hooks=Hooks(after_tool_call=seen.append)
    )

    watched.prompt("Hello")

    assert seen == []


def test_the_result_that_counts_for_repeats_is_the_one_that_hooks_made(
    run_plan: Any, tool: Any, calls: Any
) -> None:
    from runner.engine.limit import Limits

    numbers = iter(range(10))
    done = run_plan(
        calls("count", repeat="forever"),
        tools=[tool("count", lambda: str(next(numbers)))],
        hooks=Hooks(after_tool_call=lambda call: {"content": "same"}),
        limits=Limits(repeats=2),
    )

    assert done.end["turns"] == 2


# --- the rest -------------------------------------------------------------------------------------


@both
def test_stop_after_turn_gets_the_turn_and_ends_the_run_as_done(
    run_plan: Any, tool: Any, calls: Any, made: Any
) -> None:
    got: Any = []

    def stop(turn: Any) -> bool:
        got.append(turn)
        return "DONE" in turn["text"]

    done = run_plan(
        calls("look"),
        calls("look", text="DONE"),
        BYE,
        tools=[tool("look", look_at([]))],
        hooks=Hooks(stop_after_turn=[made(lambda turn: None), made(stop)]),
    )

    assert done.end["status"] == "ok"
    assert [(t["turn"], t["text"], t["stop_reason"]) for t in got] == [
        (1, "", "tool_use"),
        (2, "DONE", "tool_use"),
    ]
    assert got[0]["message"]["role"] == "assistant"
    assert len(done.events.results()) == 2


@both
def test_the_key_is_asked_for_before_every_request(
    watch: Any, tool: Any, calls: Any, made: Any
) -> None:
    from runner.engine.contract import Model, Stop, ToolCallStart

    asked: Any = []
    used: Any = []

    class Keyed:
        name = "keyed"

        async def stream(self, request: Any) -> Any:
            used.append(request.api_key)
            if request.number < 2:
                yield ToolCallStart(0, "", "look")
            yield Stop("stop")

        async def close(self) -> None:
            pass

    keys = iter(["first", None, None])

    def key(*names: Any) -> Any:
        asked.append(names)
        return next(keys)

    model = Model(Keyed(), "k-1", api_key=lambda: "the model's own")
    hooks = Hooks(api_key=[made(lambda *names: None), made(key)])
    watched = watch(model=model, tools=[tool("look", look_at([]))], hooks=hooks)

    watched.prompt("Hello")

    assert asked == [("keyed", "k-1")] * 3
    assert used == ["first", "the model's own", "the model's own"]
