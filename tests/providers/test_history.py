"""From any history to one that a server takes."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.message import Message, no_usage, text_block, user_message
from runner.providers.history import NO_RESULT, Entry, History, Rules, legal_name

RULES = Rules("openai", "m", re.compile(r"[a-z_0-9]{1,40}"), longest_id=40)


def assistant(*blocks: Any, **other: Any) -> Message:
    message = {
        "id": "m1",
        "role": "assistant",
        "content": list(blocks),
        "provider": "openai",
        "model": "m",
        "stop_reason": "tool_use",
        "usage": no_usage(),
    }
    return cast("Message", message | other)


def call(call_id: str, name: str = "add", arguments: Any = None) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments or {}}


def result(call_id: str, text: str = "done") -> Message:
    return {
        "id": "m2",
        "role": "tool_result",
        "tool_call_id": call_id,
        "tool_name": "add",
        "is_error": False,
        "content": [text_block(text)] if text else [],
    }


def encode(entry: Entry) -> Sequence[Any]:
    results = [
        [r.id, r.name, "".join(b["text"] for b in r.content if b["type"] == "text"), r.is_error]
        for r in entry.results
    ]
    return [[entry.role, entry.content, results]]


def sent(messages: Sequence[Message], rules: Rules = RULES) -> Any:
    return joined(History(rules, encode), messages)


def joined(history: History, messages: Sequence[Message]) -> Any:
    return json.loads(b"[" + b",".join(history.parts(messages)) + b"]")


def results(messages: Sequence[Message]) -> list[list[Any]]:
    return [found[:3] for entry in sent(messages) for found in entry[2]]


def test_a_conversation_goes_as_it_is() -> None:
    messages = [user_message("Hi"), assistant(text_block("Hello")), user_message("Bye")]
    assert sent(messages) == [
        ["user", [text_block("Hi")], []],
        ["assistant", [text_block("Hello")], []],
        ["user", [text_block("Bye")], []],
    ]


@pytest.mark.parametrize("stop_reason", ["error", "aborted"])
def test_an_answer_that_failed_stays_out_with_all_that_belongs_to_it(stop_reason: str) -> None:
    failed = assistant(call("a"), stop_reason=stop_reason)
    assert sent([user_message("Hi"), failed, result("a")]) == [["user", [text_block("Hi")], []]]


def test_a_call_without_a_result_gets_one() -> None:
    messages = [assistant(call("a"), call("b")), result("b"), user_message("So?")]
    assert results(messages) == [["a", "add", NO_RESULT], ["b", "add", "done"]]
    assert sent(messages)[0][2][0][3] is True


def test_results_stand_with_their_calls_in_the_order_of_the_calls() -> None:
    late = [assistant(call("a"), call("b")), result("b"), user_message("!"), result("a", "late")]
    assert results(late) == [["a", "add", "late"], ["b", "add", "done"]]


def test_a_result_without_a_call_is_left_out() -> None:
    assert results([result("a"), assistant(call("b")), result("b"), result("b", "again")]) == [
        ["b", "add", "done"]
    ]


def test_an_id_that_is_used_again_is_another_one_with_the_result_that_follows_it() -> None:
    messages = [
        assistant(call("a")),
        assistant(call("a"), call("a")),
        result("a", "1"),
        result("a", "2"),
    ]
    (first, *_), (second, *_), (third, *_) = found = results(messages)
    assert [text for _, _, text in found] == [NO_RESULT, "1", "2"]
    assert first == "a"
    assert len({first, second, third}) == 3


def test_ids_that_are_not_legal_are_replaced_by_ones_that_stay_apart() -> None:
    long = "x" * 60
    given = [long + "1", long + "2", "a|b", "a.b", "", "ok", "A"]
    messages = [assistant(*map(call, given)), *map(result, given)]
    ids = [entry[0] for entry in results(messages)]
    assert len(set(ids)) == len(given)
    assert all(re.fullmatch(r"[a-zA-Z_0-9]{1,40}", i) for i in ids)
    assert ids[5] == "ok"
    assert [block["id"] for block in sent(messages)[0][1]] == ids
    assert ids == [entry[0] for entry in results(messages)]


def test_only_the_model_itself_gets_its_thinking_back() -> None:
    thought = {"type": "thinking", "text": "Hm", "signature": "s"}
    opaque = {"type": "provider", "provider": "openai", "data": 1}
    foreign = {"type": "provider", "provider": "google", "data": 2}
    signed = call("a") | {"signature": "t"}
    blocks = (thought, opaque, foreign, {"type": "text", "text": "Hi", "signature": "u"}, signed)
    assert sent([assistant(*blocks)])[0][1] == [thought, opaque, blocks[3], signed]
    for other in ({"provider": "google"}, {"model": "n"}):
        assert sent([assistant(*blocks, **other)])[0][1] == [text_block("Hi"), call("a")]


def test_what_says_nothing_is_left_out() -> None:
    nothing = [user_message(""), assistant(text_block("")), assistant(), user_message(" ")]
    assert sent(nothing) == [["user", [text_block(" ")], []]]
    strict = Rules("openai", "m", RULES.legal_id, blank_text=False)
    assert sent(nothing, strict) == []
    assert sent([assistant(text_block("\n"), call("a")), result("a", "")], strict) == [
        ["assistant", [call("a")], [["a", "add", "", False]]]
    ]


def test_arguments_are_an_object_and_a_name_is_legal() -> None:
    (_, [block], _), *_ = sent([assistant(call("a", "bad name!", '{"a": '))])
    assert block["arguments"] == {"unparsed_arguments": '{"a": '}
    assert block["name"] == "bad_name_"
    assert legal_name("") == "unnamed"
    assert len(legal_name("x" * 100)) == 64


def test_messages_of_the_application_stay_out() -> None:
    custom: Message = {"id": "m1", "role": "custom", "content": [text_block("x")]}
    assert sent([custom]) == []


def test_what_was_sent_before_is_not_made_again() -> None:
    made: list[Entry] = []

    def noting(entry: Entry) -> Sequence[Any]:
        made.append(entry)
        return encode(entry)

    history = History(RULES, noting)
    messages = [user_message("Hi"), assistant(call("a"))]
    first = history.parts(messages)
    assert len(made) == 2
    messages += [result("a")]
    second = history.parts(messages)
    assert len(made) == 3
    assert second[0] is first[0]
    history.parts([*messages, user_message("More")])
    assert len(made) == 4
    history.parts([*(copy.deepcopy(message) for message in messages), user_message("Less")])
    assert len(made) == 7


def a_message() -> st.SearchStrategy[Message]:
    ids = st.sampled_from(["a", "b", "c d", "x" * 50])
    blocks = st.one_of(
        st.builds(text_block, st.sampled_from(["", "t"])),
        st.builds(call, ids),
        st.just({"type": "thinking", "text": "t"}),
    )
    return st.one_of(
        st.builds(user_message, st.sampled_from(["", "u"])),
        st.builds(result, ids, st.sampled_from(["", "r"])),
        st.lists(blocks, max_size=4).map(lambda found: assistant(*found)),
        st.builds(call, ids).map(lambda block: assistant(block, stop_reason="error")),
        st.lists(blocks, max_size=2).map(lambda found: assistant(*found, provider="google")),
    )


@given(st.lists(a_message()), st.data())
def test_every_history_comes_out_sound_and_grows_to_what_it_is_at_once(
    messages: list[Message], data: st.DataObject
) -> None:
    history = History(RULES, encode)
    for _ in range(3):
        part = data.draw(st.integers(0, len(messages)))
        assert joined(history, messages[:part]) == sent(messages[:part])
    ids = []
    for role, content, found in sent(messages):
        assert content
        assert role == "assistant" or not found
        calls = [block["id"] for block in content if block["type"] == "tool_call"]
        assert calls == [r[0] for r in found]
        ids += calls
    assert len(set(ids)) == len(ids)
