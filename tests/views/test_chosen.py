from typing import Any

from runner.views.chosen import Chosen

Events = list[dict[str, Any]]


def run() -> Events:
    below = {"agent": "main/helper#1"}
    call = {"tool_call_id": "a", "tool_name": "helper"}
    inner = {"tool_call_id": "a", "tool_name": "look"}
    return [
        {"type": "run_start"},
        {"type": "agent_start"},
        {"type": "turn_start", "turn": 1},
        {"type": "tool_execution_start", **call},
        {"type": "agent_start", **below},
        {"type": "turn_start", "turn": 1, **below},
        {"type": "tool_execution_start", **inner, **below},
        {"type": "tool_execution_end", **inner, **below},
        {"type": "turn_start", "turn": 2, **below},
        {"type": "tool_execution_end", **call},
        {"type": "turn_start", "turn": 2},
        {"type": "message_end"},
        {"type": "run_end"},
    ]


def places(chosen: Chosen) -> list[int]:
    events = [{**event, "seq": seq} for seq, event in enumerate(run())]
    return [event["seq"] for event in chosen.among(events)]


def test_without_a_choice_all_pass() -> None:
    assert places(Chosen()) == list(range(13))


def test_a_turn_has_what_other_agents_did_in_it() -> None:
    assert places(Chosen(turns=(1, 1))) == list(range(2, 10))
    assert places(Chosen(turns=(2, 2))) == [10, 11]


def test_a_turn_of_an_agent_is_its_own() -> None:
    assert places(Chosen(turns=(2, 2), agent="main/helper#1")) == [8]


def test_a_tool_s_calls_come_with_their_turn() -> None:
    assert places(Chosen(tool="look")) == [5, 6, 7]


def test_the_main_agent_alone() -> None:
    assert places(Chosen(agent="main")) == [0, 1, 2, 3, 9, 10, 11, 12]


def test_it_says_what_could_have_been_chosen() -> None:
    chosen = Chosen(agent="main/helpr#1")

    assert places(chosen) == []
    assert chosen.why_nothing() == (
        'there is no agent "main/helpr#1" in it; did you mean "main/helper#1"?'
    )
