from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runner.engine.digest import digest_of
from runner.error import UsageError
from runner.log.context import context_at, context_change, turns_of

Event = dict[str, Any]
Events = Callable[..., list[Event]]


def texts(messages: list[Event]) -> list[str]:
    return [message["content"][0]["text"] for message in messages]


def with_plan(events: list[Event], **plan: Any) -> list[Event]:
    return [events[0] | {"plan": events[0]["plan"] | plan}, *events[1:]]


def test_the_messages_that_the_model_read(events: Events) -> None:
    first = context_at(events(), 1)
    assert texts(first.messages) == ["Hello"]
    assert (first.turn, first.provider, first.model) == (1, "scripted", "scripted")
    assert texts(context_at(events(), 2).messages) == ["Hello", "Looking.", "the tool says"]


def test_what_changed_between_two_turns(events: Events) -> None:
    change = context_change(events(), 1, 2)
    assert texts(change.added) == ["Looking.", "the tool says"]
    assert change.dropped == []
    back = context_change(events(), 2, 1)
    assert texts(back.dropped) == ["Looking.", "the tool says"]
    assert context_change(events(), 1, 1).added == []


def test_messages_before_the_prompt_come_from_the_plan(events: Events) -> None:
    before = {"id": "h1", "role": "user", "content": [{"type": "text", "text": "Before"}]}
    log = with_plan(events(), messages=[before])
    place = next(n for n, event in enumerate(log) if event["type"] == "model_request")
    log[place] = log[place] | {"context_change": {"added": ["h1", "m1"], "dropped": []}}
    assert texts(context_at(log, 1).messages) == ["Before", "Hello"]


def test_what_was_dropped_and_what_a_hook_made_up(events: Events) -> None:
    log = events()
    place = [n for n, event in enumerate(log) if event["type"] == "model_request"][1]
    change = {"added": ["summary", "m3"], "dropped": ["m1"]}
    log[place] = log[place] | {"context_change": change}
    context = context_at(log, 2)
    assert texts(context.messages) == ["the tool says"]
    assert context.missing == ["summary"]


def test_the_last_request_of_a_turn_counts(events: Events) -> None:
    log = events()
    place = next(n for n, event in enumerate(log) if event["type"] == "model_request")
    again = log[place] | {"model": "other", "context_change": {"added": [], "dropped": []}}
    assert context_at([*log[: place + 1], again, *log[place + 1 :]], 1).model == "other"


def test_the_system_prompt_and_tools_are_shown_where_they_were_sent(events: Events) -> None:
    tool = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
    log = with_plan(
        events(system="Be brief."), resolved={"tools": [tool | {"execution": "parallel"}]}
    )
    assert context_at(log, 1).system_prompt is None
    assert context_at(log, 1).tools is None
    sent = {"system_digest": digest_of("Be brief."), "tools_digest": digest_of([tool])}
    log = [event | sent if event["type"] == "model_request" else event for event in log]
    assert context_at(log, 1).system_prompt == "Be brief."
    assert context_at(log, 1).tools == [tool]


def test_a_sub_agent_has_a_context_of_its_own(events: Events) -> None:
    path = "main/rev#1"
    inner = [event | {"agent": path} for event in events(prompt="Inside")[3:-1]]
    log = [*events()[:-2], *inner, *events()[-2:]]
    assert texts(context_at(log, 1, agent=path).messages) == ["Inside"]
    assert texts(context_at(log, 1).messages) == ["Hello"]
    with pytest.raises(UsageError, match=r"no request of main/rev#2 to a model"):
        context_at(log, 1, agent="main/rev#2")


def test_a_turn_that_is_not_there_is_told(events: Events) -> None:
    with pytest.raises(
        UsageError, match=r"turn 3: the log has no request in it; it has turns 1 to 2"
    ):
        context_at(events(), 3)
    with pytest.raises(UsageError, match="turn 7"):
        context_change(events(), 1, 7)


@pytest.mark.parametrize(("text", "turns"), [("2", (2,)), ("1..12", (1, 12)), (" 3 ", (3,))])
def test_turns_are_named(text: str, turns: tuple[int, ...]) -> None:
    assert turns_of(text) == turns


@pytest.mark.parametrize("text", ["", "x", "1..", "..2", "-1", "1.5", "1...2", "9" * 20])
def test_what_names_no_turn_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="is no turn"):
        turns_of(text)
