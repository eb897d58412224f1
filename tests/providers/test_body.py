"""Values as the bytes of a request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.error import ProviderError
from runner.providers.body import merged, spliced, to_bytes, whole

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def has_half(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


@given(ANY_TEXT)
def test_any_text_can_be_sent_and_keeps_all_but_lone_surrogates(text: str) -> None:
    sent = json.loads(to_bytes({"text": text}))["text"]
    assert not has_half(sent)
    assert sent == (whole(text) if has_half(text) else text)


def test_two_halves_that_meet_are_one_character() -> None:
    assert to_bytes("a\ud83d\ude42b \ud83d \ude42") == '"a🙂b \ufffd \ufffd"'.encode()


@pytest.mark.parametrize("value", [float("nan"), {"a": object()}, {("a",): 1}])
def test_what_is_not_json_is_a_fault_of_the_request(value: Any) -> None:
    with pytest.raises(ProviderError, match="can't be written as JSON") as caught:
        to_bytes(value)
    assert caught.value.kind == "bad_request"


def test_a_body_has_its_fields_and_its_parts() -> None:
    assert spliced({"model": "m"}, {"a": b"[1]", "b": b"[]"}) == b'{"model":"m","a":[1],"b":[]}'
    assert spliced({}, {"a": b"[1]"}) == b'{"a":[1]}'
    assert spliced({"model": "m"}, {}) == b'{"model":"m"}'


@pytest.mark.parametrize(
    ("part", "option", "sent"),
    [
        (b"[1]", [2, 3], [1, 2, 3]),
        (b"[]", [2], [2]),
        (b"[1]", [], [1]),
        (b"[1]", None, None),
    ],
)
def test_an_option_adds_to_the_part_of_its_name(part: bytes, option: Any, sent: Any) -> None:
    body = json.loads(spliced({"tools": option, "x": 1}, {"tools": part}))
    assert body == {"tools": sent, "x": 1}


def test_options_win_and_maps_are_merged() -> None:
    fields = {"a": 1, "b": {"c": 1, "d": 2}}
    assert merged(fields, {"a": 2, "b": {"c": 3}, "e": None}) == {
        "a": 2,
        "b": {"c": 3, "d": 2},
        "e": None,
    }
    assert fields == {"a": 1, "b": {"c": 1, "d": 2}}
