from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.error import LogError, UsageError
from runner.log.compare import compare, compare_logs
from runner.log.difference import ABSENT, Difference, Ignored, differences

Event = dict[str, Any]
Events = Callable[..., list[Event]]


def told(a: list[Event], b: list[Event], *ignored: str) -> list[Any]:
    return [(found.turn, found.path, found.a, found.b) for found in compare(a, b, Ignored(ignored))]


def changed(events: list[Event], kind: str, n: int = 0, **fields: Any) -> list[Event]:
    """The events with some fields of the n-th of a type changed."""
    places = [place for place, event in enumerate(events) if event["type"] == kind]
    new = list(events)
    new[places[n]] = events[places[n]] | fields
    return new


def without(events: list[Event], *dropped: int) -> list[Event]:
    kept = [event for place, event in enumerate(events) if place not in dropped]
    return [event | {"seq": n} for n, event in enumerate(kept)]


def test_runs_of_the_same_thing_are_the_same(events: Events) -> None:
    assert told(events(), events(run_id="1xyz", started_at="2027-01-01T00:00:00Z")) == []


def test_what_differs_is_told_by_turn_and_path(events: Events) -> None:
    assert told(events(), events(prompt="Bye", last="over")) == [
        (0, "run_start.plan.prompt", "Hello", "Bye"),
        (1, "message_end.message.content[0].text", "Hello", "Bye"),
        (2, "message_end.message.content[0].text", "done", "over"),
        (2, "task_end.text", "done", "over"),
        (2, "run_end.text", "done", "over"),
    ]


def test_a_changed_system_prompt_is_told_once(events: Events) -> None:
    assert told(events(), events(system="Be brief.")) == [
        (0, "run_start.plan.system_prompt", "", "Be brief.")
    ]


def test_a_digest_is_told_where_nothing_else_says_why(events: Events) -> None:
    other = changed(events(), "model_request", 1, context_digest="x")
    assert told(events(), other) == [(2, "model_request.context_digest", "s+m2+m3", "x")]
    for n in (0, 1):
        other = changed(other, "model_request", n, tools_digest="u", context_digest="y")
    assert told(events(), other) == [(1, "model_request.tools_digest", "t", "u")]


def test_a_changed_id_is_told_once(events: Events) -> None:
    renamed = json.loads(json.dumps(events()).replace("call_1", "call_x"))
    assert told(events(), renamed) == [(1, "message_end.message.content[1].id", "call_1", "call_x")]


def test_deltas_are_told_where_the_message_is_the_same(events: Events) -> None:
    ((turn, path, *_),) = told(events(pieces=1), events(pieces=2), "message_update.deltas[1]")[:1]
    assert (turn, path) == (1, "message_update.deltas[0].text")
    assert all("message_update" in found[1] for found in told(events(pieces=2), events(pieces=3)))
    assert told(events(pieces=0), events(pieces=2), "message_update") == []


def test_a_start_is_told_where_the_end_is_the_same(events: Events) -> None:
    other = changed(events(), "message_start", message={"id": "m1", "role": "user", "odd": 1})
    assert [found[1] for found in told(events(), other)] == [
        "message_start.message.content",
        "message_start.message.odd",
    ]


def test_what_only_one_has_is_told_and_the_rest_still_compared(events: Events) -> None:
    whole = events()
    retry = {"type": "model_retry", "attempt": 1, "delay": 1.0, "error": "x"}
    place = next(n for n, event in enumerate(whole) if event["type"] == "model_request")
    more = [*whole[: place + 1], retry, *whole[place + 1 :]]
    more = changed([event | {"seq": n} for n, event in enumerate(more)], "run_end", turns=3)
    assert told(whole, more) == [
        (1, "model_retry", ABSENT, retry),
        (2, "run_end.turns", 2, 3),
    ]
    assert told(more, whole) == [
        (1, "model_retry", retry, ABSENT),
        (2, "run_end.turns", 3, 2),
    ]


def test_a_log_that_breaks_off_differs_by_what_it_lacks(events: Events) -> None:
    whole = events()
    paths = [found[1] for found in told(whole, whole[:-3])]
    assert paths == ["task_end", "agent_end", "run_end"]


def test_a_turn_more_is_told_by_its_messages(events: Events) -> None:
    whole = events()
    first = [n for n, event in enumerate(whole) if event["type"] == "turn_start"]
    less = without(whole, *range(first[1], first[1] + 7))
    assert [(turn, path) for turn, path, *_ in told(whole, less)] == [
        (2, "turn_start"),
        (2, "model_request"),
        (2, "message_end"),
        (2, "turn_end"),
    ]


def test_a_comment_in_the_spec_is_no_difference(events: Events) -> None:
    spec = {"name": "spec", "sha256": "1"}
    assert told(events(), changed(events(), "run_start", spec=spec)) == []


def test_parallel_calls_may_end_in_another_order(events: Events) -> None:
    def calls(*order: str) -> Iterator[Event]:
        for call in ("a", "b"):
            yield {"type": "tool_execution_start", "tool_call_id": call, "tool_name": "x"}
        for call in order:
            yield {"type": "tool_execution_end", "tool_call_id": call, "tool_name": "x"}

    def log(*order: str) -> list[Event]:
        return [event | {"seq": n} for n, event in enumerate(calls(*order))]

    assert told(log("a", "b"), log("b", "a")) == []


def test_neither_log_is_in_memory_as_a_whole(events: Events) -> None:
    taken = [0, 0]

    def long(side: int) -> Iterator[Event]:
        yield events()[0]
        for n in itertools.count(1):
            taken[side] += 1
            yield {"seq": n, "type": "turn_start", "turn": n + (side and n > 5000)}

    first = next(compare(long(0), long(1)))
    assert first.turn == 5001
    assert max(taken) < 5300


def test_a_sub_agents_lines_are_told_with_its_path(events: Events) -> None:
    def log(turn: int) -> list[Event]:
        path = "main/rev#1"
        return [
            {"seq": 0, "agent": path, "type": "agent_start"},
            {"seq": 1, "agent": path, "type": "turn_start", "turn": 1},
            {"seq": 2, "agent": path, "type": "limit_reached", "limit": "x", "value": turn},
        ]

    (found,) = compare(log(1), log(2))
    assert found.as_json() == {
        "turn": 1,
        "agent": "main/rev#1",
        "path": "limit_reached.value",
        "a": 1,
        "b": 2,
    }


def test_logs_are_compared_by_their_files(log: Callable[..., Path], tmp_path: Path) -> None:
    a, b = log("a.jsonl"), log("b.jsonl", last="over")
    assert [found.path for found in compare_logs(a, b, ignore=[".text"])] == [
        "message_end.message.content[0].text"
    ]
    b.write_bytes(b.read_bytes()[:-5])
    warnings: list[str] = []
    assert list(compare_logs(a, b, warn=warnings.append))
    assert len(warnings) == 1
    with pytest.raises(LogError):
        list(compare_logs(a, tmp_path / "none"))


# --- values and paths -----------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (1, 1.0, []),
        (1, True, [("x", 1, True)]),
        ({"a": 1}, {"a": 1, "b c": 2}, [('x["b c"]', ABSENT, 2)]),
        ([1, 2, 3], [1, 3], [("x[1]", 2, ABSENT)]),
        ([2, 3], [1, 2, 3], [("x[0]", ABSENT, 1)]),
        ([1, 2], [1, 3], [("x[1]", 2, 3)]),
        ([1, [2, {"a": 3}]], [1, [2, {"a": 4}]], [("x[1][1].a", 3, 4)]),
        ({"a": []}, {"a": {}}, [("x.a", [], {})]),
        ({"a": None}, {}, [("x.a", None, ABSENT)]),
    ],
)
def test_places_that_differ(a: Any, b: Any, found: list[Any]) -> None:
    assert list(differences(a, b, "x")) == found


@settings(deadline=None)
@given(VALUES, VALUES)
def test_what_is_equal_has_no_difference_and_what_is_not_has_one(a: Any, b: Any) -> None:
    assert list(differences(a, a, "x")) == []
    assert bool(list(differences(a, b, "x"))) == (repr(a) != repr(b) and not _equal(a, b))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b) and type(a) is type(b)


def test_deep_values_are_compared() -> None:
    a: Any = 1
    b: Any = 2
    for _ in range(5000):
        a, b = [a], [b]
    ((path, *_),) = differences(a, b, "x")
    assert path == "x" + "[0]" * 5000


@pytest.mark.parametrize(
    ("pattern", "path", "is_in"),
    [
        ("run_end.usage", "run_end.usage.input", True),
        ("run_end.usage", "run_end.usage", True),
        ("run_end.usage", "run_end.usages", False),
        ("run_end", "run_end.text", True),
        ("run_end", "run_ended", False),
        (".usage", "message_end.usage.input", True),
        (".usage", "message_end.message.usage", False),
        ("message_end.*.usage", "message_end.message.usage", True),
        ("message_end.message.content[*].text", "message_end.message.content[12].text", True),
        ("message_end.message.content[1]", "message_end.message.content[1].text", True),
        ("message_end.message.content[1]", "message_end.message.content[12].text", False),
        ("*.text", "run_end.text", True),
        ("$.text", "run_end.text", True),
    ],
)
def test_paths_that_are_ignored(pattern: str, path: str, is_in: bool) -> None:
    assert (path in Ignored([pattern])) is is_in


@pytest.mark.parametrize("pattern", ["", " ", ".", "$"])
def test_what_is_no_path_is_told(pattern: str) -> None:
    with pytest.raises(UsageError, match="is no path to ignore"):
        Ignored([pattern])


def test_a_difference_as_json_leaves_out_what_is_not_there() -> None:
    assert Difference(1, None, "run_end", ABSENT, None).as_json() == {
        "turn": 1,
        "path": "run_end",
        "b": None,
    }
