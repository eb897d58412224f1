"""The order of events: turns, messages, and how a run ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

ONE_ANSWER = [
    "agent_start",
    "turn_start",
    "message_start",
    "message_end",
    "message_start",
    "message_end",
    "turn_end",
    "agent_end",
]


def test_one_answer(watch: Any) -> None:
    watched = watch({"text": "Hi there.", "deltas": 3, "usage": {"input": 5, "output": 2}})

    answer = watched.prompt("Hello")

    events = watched.events
    assert events.types() == ONE_ANSWER
    assert [event["type"] for event in events][4:9] == [
        "model_request",
        "message_start",
        "message_update",
        "message_update",
        "message_update",
    ]
    assert events.said() == ["user: Hello", "assistant: Hi there."]
    assert answer == events.of("message_end")[1]["message"]
    assert answer["usage"] == {
        "input": 5,
        "output": 2,
        "cache_read": 0,
        "cache_write": 0,
        "reasoning": 0,
    }
    assert events.of("turn_end")[0] | {"seq": 0, "t": 0} == {
        "seq": 0,
        "t": 0,
        "type": "turn_end",
        "turn": 1,
        "stop_reason": "stop",
        "message_id": "m2",
        "tool_result_ids": [],
    }
    assert events[-1] | {"seq": 0, "t": 0} == {
        "seq": 0,
        "t": 0,
        "type": "agent_end",
        "stop_reason": "stop",
        "message_ids": ["m1", "m2"],
        "queued": [],
    }


def test_several_prompts_have_a_pair_each_in_one_turn(watch: Any) -> None:
    watched = watch({"text": "Hi."})

    watched.prompt("One", {"role": "user", "text": "Two"}, {"role": "custom", "text": "Three"})

    said = ["user: One", "user: Two", "custom: Three", "assistant: Hi."]
    assert watched.events.said() == said
    assert len(watched.events.of("turn_start")) == 1


def test_an_answer_without_content_starts_with_its_end(watch: Any) -> None:
    watched = watch({"text": ""})

    watched.prompt("Hello")

    assert watched.events.types() == ONE_ANSWER
    assert watched.events.of("message_update") == []


def test_thinking_text_and_calls_are_told_as_they_come(watch: Any, tool: Any) -> None:
    reply = {
        "thinking": "Hm.",
        "text": "Let me look.",
        "deltas": 2,
        "tool_calls": [{"name": "look", "arguments": {"at": "ü"}}, {"name": "look"}],
    }
    watched = watch(reply, {"text": "Done."}, tools=[tool("look", lambda **_: "seen")])

    watched.prompt("Hello")

    deltas = [event["delta"] for event in watched.events.of("message_update")][:-1]
    assert deltas == [
        {"kind": "thinking", "index": 0, "text": "Hm."},
        {"kind": "text", "index": 1, "text": "Let me"},
        {"kind": "text", "index": 1, "text": " look."},
        {"kind": "tool_call", "index": 2, "arguments": "", "id": "call_1", "name": "look"},
        {"kind": "tool_call", "index": 2, "arguments": '{"at":"ü"}'},
        {"kind": "tool_call", "index": 3, "arguments": "", "id": "call_2", "name": "look"},
        {"kind": "tool_call", "index": 3, "arguments": "{}"},
    ]


def test_a_call_its_result_and_the_answer_to_it(watch: Any, tool: Any, calls: Any) -> None:
    watched = watch(calls("look"), {"text": "Seen."}, tools=[tool("look", lambda: "a sheep")])

    watched.prompt("Hello")

    turn = ["turn_start", "message_start", "message_end"]
    assert watched.events.types() == [
        "agent_start",
        *turn,
        "message_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "message_start",
        "message_end",
        "turn_end",
        *turn,
        "turn_end",
        "agent_end",
    ]
    ends = watched.events.of("turn_end")
    assert [(e["stop_reason"], e["message_id"], e["tool_result_ids"]) for e in ends] == [
        ("tool_use", "m2", ["m3"]),
        ("stop", "m4", []),
    ]


def test_an_error_ends_the_run_and_none_of_its_calls_is_run(watch: Any, tool: Any) -> None:
    reply = {"text": "so", "tool_calls": [{"name": "look"}], "error": "no", "status": 400}
    watched = watch(reply, tools=[tool("look", lambda: "")])

    answer = watched.prompt("Hello")

    assert watched.events.types() == ONE_ANSWER
    assert answer["stop_reason"] == "error"
    assert answer["error"] == {"message": "no", "kind": "bad_request", "status": 400}
    assert watched.agent.state.error == "no"
    assert watched.events[-1]["stop_reason"] == "error"


def test_an_answer_that_failed_is_not_part_of_later_contexts(watch: Any) -> None:
    watched = watch({"text": "no", "error": "no", "status": 400}, {"text": "{{ count }}"})

    watched.prompt("Hello")
    watched.prompt("Again")

    assert watched.events.said("assistant") == ["assistant: no", "assistant: 2"]
    assert len(watched.agent.state.messages) == 4


def test_a_model_that_says_that_it_was_aborted_ends_the_run(watch: Any) -> None:
    watched = watch({"text": "par", "stop": "aborted"})

    answer = watched.prompt("Hello")

    assert answer["stop_reason"] == "aborted"
    assert watched.events.types() == ONE_ANSWER
    assert watched.agent.state.error == "the model's answer was aborted"


def test_the_calls_of_an_answer_that_was_cut_are_answered_and_not_run(
    watch: Any, tool: Any, calls: Any
) -> None:
    ran = []
    watched = watch(
        calls("look", "look", stop="length"),
        {"text": "Shorter."},
        tools=[tool("look", lambda: ran.append(1))],
    )

    watched.prompt("Hello")

    assert ran == []
    assert all("cut" in result for result in watched.events.results().values())
    assert [event["is_error"] for event in watched.events.of("tool_execution_end")] == [True, True]
    assert watched.events.said("assistant") == ["assistant: ", "assistant: Shorter."]


def test_an_answer_that_was_cut_without_calls_reaches_the_limit_output(run_plan: Any) -> None:
    done = run_plan({"text": "Once upon", "stop": "length", "usage": {"output": 9}})

    assert done.events.types()[-4:] == ["task_end", "limit_reached", "agent_end", "run_end"]
    limit = done.events.of("limit_reached")[0]
    assert (limit["limit"], limit["value"], limit["allowed"]) == ("output", 9, None)
    assert (done.end["status"], done.end["exit_code"]) == ("limit", 4)
    assert done.end["text"] == "Once upon"


class Paused:
    """A provider that pauses its first answers."""

    name = "paused"

    def __init__(self, pauses: int) -> None:
        self.pauses = pauses
        self.read: list[list[str]] = []

    async def stream(self, request: Any) -> Any:
        from runner.engine.contract import Stop, TextDelta

        self.read.append([message["role"] for message in request.messages])
        yield TextDelta(0, "…")
        yield Stop("stop", paused=request.number < self.pauses)

    async def close(self) -> None:
        pass


def test_a_paused_turn_goes_on_with_no_message_between(watch: Any) -> None:
    from runner.engine.contract import Model

    provider = Paused(2)
    watched = watch(model=Model(provider, "one"))
    watched.agent.subscribe(
        lambda event: (
            watched.agent.steer("Stop it.")
            if event["type"] == "turn_end" and event["turn"] == 1
            else None
        )
    )

    watched.prompt("Hello")

    user, own = "user", "assistant"
    assert provider.read == [
        [user],
        [user, own],
        [user, own, own],
        [user, own, own, own, user],
    ]
    messages = [event["message"] for event in watched.events.of("message_end")]
    assert [m.get("paused") for m in messages if m["role"] == own] == [True, True, None, None]


def test_a_turn_whose_every_result_says_terminate_is_the_last(
    watch: Any, tool: Any, calls: Any
) -> None:
    from runner.engine.contract import ToolResult

    done = tool("done", lambda: ToolResult("ok", terminate=True))
    watched = watch(calls("done", "done"), tools=[done])

    watched.prompt("Hello")

    assert len(watched.events.of("turn_start")) == 1
    assert [e["terminate"] for e in watched.events.of("tool_execution_end")] == [True, True]
    assert watched.agent.state.error is None


def test_a_turn_of_which_one_result_says_terminate_is_not(
    watch: Any, tool: Any, calls: Any
) -> None:
    from runner.engine.contract import ToolResult

    tools = [tool("done", lambda: ToolResult("ok", terminate=True)), tool("look", lambda: "x")]
    watched = watch(calls("done", "look"), {"text": "Bye."}, tools=tools)

    watched.prompt("Hello")

    assert len(watched.events.of("turn_start")) == 2


def test_after_a_turn_that_terminates_the_queues_are_looked_at(
    watch: Any, tool: Any, calls: Any
) -> None:
    from runner.engine.contract import ToolResult

    done = tool("done", lambda: ToolResult("ok", terminate=True))
    watched = watch(calls("done"), {"text": "Bye."}, tools=[done])
    watched.agent.follow_up("And now?")

    watched.prompt("Hello")

    assert watched.events.said("user", "assistant") == [
        "user: Hello",
        "assistant: ",
        "user: And now?",
        "assistant: Bye.",
    ]


def test_an_agent_goes_on_counting_from_run_to_run(watch: Any) -> None:
    watched = watch({"text": "One."}, {"text": "Two."})

    watched.prompt("Hello")
    watched.prompt("Again")

    assert [event["turn"] for event in watched.events.of("turn_start")] == [1, 2]
    ids = [event["message"]["id"] for event in watched.events.of("message_end")]
    assert ids == ["m1", "m2", "m3", "m4"]
    assert [event["message_ids"] for event in watched.events.of("agent_end")] == [
        ["m1", "m2"],
        ["m3", "m4"],
    ]


def test_ids_go_on_after_those_of_the_history(watch: Any) -> None:
    history = [
        {"role": "user", "text": "I like blue."},
        {"id": "m7", "role": "user", "content": [{"type": "text", "text": "And red."}]},
    ]
    watched = watch({"text": "{{ count }}"}, messages=history)

    watched.prompt("Hello")

    ids = [message["id"] for message in watched.agent.state.messages]
    assert ids == ["m1", "m7", "m8", "m9"]
    assert watched.events.said("assistant") == ["assistant: 3"]


def test_calls_of_one_agent_have_ids_of_their_own(watch: Any, tool: Any, calls: Any) -> None:
    twice = {"tool_calls": [{"name": "look", "id": "x"}, {"name": "look", "id": "x"}]}
    watched = watch(
        calls("look"), twice, twice, {"text": "Bye."}, tools=[tool("look", lambda: "seen")]
    )

    watched.prompt("Hello")

    ids = list(watched.events.results())
    assert len(ids) == len(set(ids)) == 5
    assert ids[:2] == ["call_1", "x"]


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [1],
        [{"role": "system", "text": "x"}],
        {"content": "x"},
        {"content": [{"type": "text"}]},
        {"content": [{"text": "x"}]},
        {"content": ["x"]},
    ],
)
def test_what_is_no_message_is_refused_before_anything_happens(watch: Any, bad: Any) -> None:
    watched = watch({"text": "Hi."})

    with pytest.raises(ValueError, match=r"message|content|role|block"):
        asyncio.run(watched.agent.prompt(bad))

    assert watched.events == []
