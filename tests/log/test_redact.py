from __future__ import annotations

import base64
import json
import random
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runner.engine.contract import Redactor
from runner.error import UsageError
from runner.log.redact import LogRedactor
from runner.log.redact_pattern import PatternRedactor

BODY = "q7RmZ2xKp9VbT4nWc8LsD1hJf6GyA3eUo5Xi0BtN"
PEM = "\n".join(
    ["-----BEGIN RSA PRIVATE KEY-----", "MIIEow" + "IBAAKCAQEA0" * 5, "abc=", "-----END"]
)
KEYS = {
    "openai": "sk-" + BODY,
    "anthropic": "sk-ant-api03-" + BODY,
    "github": "ghp_" + BODY[:36],
    "gitlab": "glpat-" + BODY[:20],
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIza" + BODY[:35],
    "slack": "xoxb-123456789012-" + BODY[:20],
    "stripe": "sk_live_" + BODY[:24],
    "sendgrid": f"SG.{BODY[:22]}.{BODY}",
    "huggingface": "hf_" + BODY[:34],
    "npm": "npm_" + BODY[:36],
    "pypi": "pypi-AgEI" + BODY * 2,
    "groq": "gsk_" + BODY,
    "xai": "xai-" + BODY,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "bearer": "Bearer " + BODY,
    "basic": "Authorization: Basic dXNlcjpwYXNzd29yZA==",
    "private_key": PEM,
}
SECRETS = {"token": "wren-4711-lark", "odd": 'a"b\\ü/\n', "redacted": "secret:t", "pem": PEM}


def streamed(redactor: LogRedactor, pieces: list[str]) -> list[str]:
    shown = [redactor.delta(("m1", 0), piece) for piece in pieces]
    return [*shown, redactor.rest(("m1", 0))]


def cut(rng: random.Random, text: str, most: int = 6) -> list[str]:
    pieces = []
    while text:
        n = rng.randint(1, most)
        pieces.append(text[:n])
        text = text[n:]
    return pieces


def test_is_what_the_engine_asks_for() -> None:
    redactor: Redactor = LogRedactor()
    assert redactor.value({"a": 1}) == {"a": 1}
    assert redactor.count == 0


# --- known secrets --------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["wren-4711-lark", 'a"b\\ü/\n x', "päß wörd+/=?"])
def test_a_secret_is_found_in_every_form(value: str) -> None:
    redactor = LogRedactor({"t": value})
    for form in (
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(value))[3:-3],
        quote(value),
        quote(value, safe=""),
        quote_plus(value),
    ):
        assert redactor.text(f"<{form}>") == "<[secret:t]>"


@settings(deadline=None)
@given(st.binary(max_size=9), st.binary(max_size=9))
def test_a_secret_is_found_within_base64(before: bytes, after: bytes) -> None:
    secret = b"wren-4711-lark"
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        shown = LogRedactor({"t": secret.decode()}).text(encode(before + secret + after).decode())
        assert "[secret:t]" in shown
        left = shown.replace("[secret:t]", "").rstrip("=")
        assert len(left) <= (len(before) + len(after)) * 8 / 6 + 3


def test_the_longest_secret_wins() -> None:
    redactor = LogRedactor({"short": "abc", "long": "abcdef"})
    assert redactor.text("abcdef abcd") == "[secret:long] [secret:short]d"
    assert "".join(streamed(redactor, list("abcdef abcd"))) == "[secret:long] [secret:short]d"


@pytest.mark.parametrize("value", ["", " ", "\n"])
def test_a_blank_secret_is_none(value: str) -> None:
    redactor = LogRedactor({"t": value}, known=False)
    text = "a b\nc"
    assert redactor.text(text) is text


def test_a_secret_may_become_known_later() -> None:
    redactor = LogRedactor(patterns=[r"\w+!"])
    assert redactor.delta(("m1", 0), "a b") == "a "
    redactor.add("t", "bird")
    assert redactor.delta(("m1", 0), "ird ") == "bird "
    assert streamed(redactor, [" bi", "rd bird"]) == [" ", "[secret:t] [secret:t]", ""]


def test_a_name_that_is_odd_breaks_nothing() -> None:
    shown = LogRedactor({'my "key"]': "wren-4711"}).text('{"a": "wren-4711"}')
    assert json.loads(shown) == {"a": "[secret:my__key__]"}


def test_a_secret_in_raw_json_leaves_json() -> None:
    value = 'qu"ote\n\\ä'
    for ascii_only in (True, False):
        raw = json.dumps({"x": f"is {value}!"}, ensure_ascii=ascii_only)
        shown = "".join(streamed(LogRedactor({"t": value}), list(raw)))
        assert json.loads(shown) == {"x": "is [secret:t]!"}


# --- keys of well-known services ------------------------------------------------------------------


@pytest.mark.parametrize("kind", KEYS)
def test_a_well_known_key_is_redacted_after_its_public_beginning(kind: str) -> None:
    redactor = LogRedactor()
    shown = redactor.text(f"it is {KEYS[kind]}, you know")
    assert f"[redacted:{kind}]" in shown
    assert shown.startswith("it is ")
    assert shown.endswith(", you know")
    assert BODY[:20] not in shown
    assert "IBAAKC" not in shown
    assert redactor.count == 1


def test_an_aws_secret_is_told_by_its_name() -> None:
    key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    for text in ("aws_secret_access_key = {}\nregion=x", '{{"SecretAccessKey": "{}"}}'):
        shown = LogRedactor().text(text.format(key))
        assert shown == text.format("[redacted:aws]")
    assert LogRedactor().text(f"my_access_key = {key}") == f"my_access_key = {key}"


@pytest.mark.parametrize(
    "text",
    [
        "sk-circle-fade-dot-2-large-and-wide",
        "a risk-" + BODY,
        "the bearer of good news, a bearer ofthelongestwordthatthereis",
        "AKIA is how they begin, ghp_short and eyJhbGci too",
        "-----BEGIN CERTIFICATE-----\n" + BODY * 3,
        "a file begins with -----BEGIN PRIVATE KEY----- and goes on for several lines of base64",
        "data:image/png;base64,AKIAAIzaeyJhp_" + BODY * 20,
        "hf_hub_download(repo_id)",
        "https://example.com/services/T" + BODY,
    ],
)
def test_what_only_looks_a_little_like_a_key_stays(text: str) -> None:
    redactor = LogRedactor()
    assert redactor.text(text) is text
    assert "".join(streamed(redactor, list(text))) == text
    assert redactor.count == 0


@pytest.mark.parametrize("before", ["\n", '"', "=", "%3D", "\x1b[32m", "\\n", "\\u001b[0m", "_"])
def test_a_key_may_come_right_after_an_escape(before: str) -> None:
    assert LogRedactor().text("a" + before + KEYS["openai"]).endswith("sk-[redacted:openai]")


def test_well_known_keys_can_be_left_alone() -> None:
    redactor = LogRedactor(known=False)
    assert redactor.text(KEYS["openai"]) is KEYS["openai"]


# --- the user's patterns --------------------------------------------------------------------------


def test_a_pattern_is_redacted() -> None:
    redactor = LogRedactor(patterns=[r"\d{16}", r"(?x) card\ no  # of whatever"])
    assert redactor.text("Card 1234567812345678 card no") == "Card [redacted] [redacted]"
    assert redactor.count == 2


def test_a_pattern_that_may_be_empty_takes_only_what_is_there() -> None:
    assert LogRedactor(patterns=["x*"]).text("axxb") == "a[redacted]b"


def test_a_pattern_leaves_what_was_redacted_before() -> None:
    redactor = LogRedactor({"t": "wren"}, patterns=[r"\w+"])
    once = redactor.text("wren is here")
    assert once == "[secret:t] [redacted] [redacted]"
    assert redactor.text(once) is once or redactor.text(once) == once


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2", r"(?P<x>a)(?P<x>b)", "*"])
def test_what_is_no_pattern_is_told(pattern: str) -> None:
    if pattern == "a{2":
        assert LogRedactor(patterns=[pattern]).text("a{2") == "[redacted]"
    else:
        with pytest.raises(UsageError, match="is no regular expression"):
            LogRedactor(patterns=[pattern])


ATOMS = ["a", "b", "c", " ", r"\d", r"\w", r"\s", ".", "[ab]", "[^a]", "1", r"\b", r"\B", "$", "^"]
EXPRESSIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds("".join, st.lists(inner, min_size=2, max_size=3)),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "*?", "+?"])),
        st.builds("{}{}{}".format, st.sampled_from(["(?=", "(?!", "(?>"]), inner, st.just(")")),
        st.builds("{}{}".format, st.sampled_from(["(?<=a)", r"(?<!\w)", r"(?<!ab)"]), inner),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, st.text("abbc 1\n", max_size=14), st.randoms(use_true_random=False))
@example(r"foo\B", "foobar", random.Random(1))
@example(r"foo(?!bar)", "foobaz foobar", random.Random(2))
@example(r"ab.*z|ab", "abcdz", random.Random(3))
@example(r"b$", "b\nb\n", random.Random(4))
def test_a_pattern_finds_the_same_in_pieces(pattern: str, text: str, rng: random.Random) -> None:
    redactor = PatternRedactor(pattern, lambda: None)
    stream = redactor.stream()
    shown = "".join(map(stream.feed, cut(rng, text, 3))) + stream.finish()
    assert shown == redactor.whole(text)


# --- in pieces ------------------------------------------------------------------------------------

PARTS = st.sampled_from(
    [
        *KEYS.values(),
        *SECRETS.values(),
        *(json.dumps(value)[1:-1] for value in (*SECRETS.values(), PEM)),
        base64.b64encode(b"user:wren-4711-lark").decode(),
        *("[redacted]", "[secret:token]", "[redacted:aws]", "1234567812345678", "123456781234567"),
        *("sk-", "eyJ", "Bearer ", "ghp_", "KEY-----", "access_key", '"', "\\n", "wren-", "-----"),
    ]
)
TEXTS = st.lists(PARTS | st.text("ab1-_. \n[:", max_size=4), max_size=6).map("".join)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.randoms(use_true_random=False), st.booleans())
def test_any_cut_gives_the_same_text(text: str, rng: random.Random, patterns: bool) -> None:
    redactor = LogRedactor(SECRETS, patterns=[r"\d{16}(?!\d)", r"\[.*?b"] if patterns else [])
    whole = redactor.text(text)
    found = redactor.count
    assert "".join(streamed(redactor, cut(rng, text))) == whole
    assert redactor.count == 2 * found


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_what_is_redacted_stays_as_it_is(text: str) -> None:
    redactor = LogRedactor(SECRETS, patterns=[r"\d{16}", r"\w{30,}"])
    once = redactor.text(text)
    assert redactor.text(once) == once


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_no_secret_is_left(text: str) -> None:
    shown = LogRedactor(SECRETS).text(text)
    assert "wren-4711-lark" not in shown
    assert 'a"b\\ü/\n' not in shown


def test_a_clean_stream_passes_at_once_and_unchanged() -> None:
    redactor = LogRedactor({"token": "wren-4711-lark"}, patterns=[r"\d{16}"])
    pieces = ["Some text", " that has", " keys, tasks", " and ris", "ks", ": A", "KI", "A 12,", "."]
    shown = streamed(redactor, pieces)
    assert shown == [*pieces, ""]


def test_streams_are_kept_apart() -> None:
    redactor = LogRedactor({"token": "wren-4711-lark"})
    assert redactor.delta(("m1", 0), "wren-") == ""
    assert redactor.delta(("m1", 1), "4711-lark") == "4711-lark"
    assert redactor.delta(("m2", 0), "wren-") == ""
    assert redactor.delta(("m1", 0), "4711-lark!") == "[secret:token]!"
    assert redactor.rest(("m1", 0)) == ""
    assert redactor.rest(("m2", 0)) == "wren-"
    assert redactor.rest(("m3", 0)) == ""


def test_a_long_match_costs_the_same_per_piece() -> None:
    redactor = LogRedactor(patterns=[r"\d+"])
    pieces = ["1234"] * 30_000
    assert "".join(streamed(redactor, [*pieces, "."])) == "[redacted]."
    redactor = LogRedactor()
    assert "".join(streamed(redactor, ["sk-", *["aB3x"] * 30_000])) == "sk-[redacted:openai]"


# --- values ---------------------------------------------------------------------------------------


def test_a_clean_value_is_the_same_object() -> None:
    redactor = LogRedactor(SECRETS, patterns=[r"\d{16}"])
    value = {"type": "text", "a": [1, None, True, {"b": "c"}], "d": "e" * 5000}
    assert redactor.value(value) is value


def test_only_what_has_to_change_is_copied() -> None:
    redactor = LogRedactor({"t": "wren"})
    value = {"type": "message_end", "a": {"b": "c"}, "d": ["x", "a wren"]}
    shown = redactor.value(value)
    assert shown == {"type": "message_end", "a": {"b": "c"}, "d": ["x", "a [secret:t]"]}
    assert shown["a"] is value["a"]
    assert value["d"] == ["x", "a wren"]


def test_keys_are_redacted_and_none_is_lost() -> None:
    redactor = LogRedactor({"t": "wren", "u": "lark"}, patterns=["[0-9]+"])
    assert redactor.value({"wren": 1, "1": 2, "2": 3}) == {
        "[secret:t]": 1,
        "[redacted]": 2,
        "[redacted]'": 3,
    }


def test_a_secret_number_is_redacted_where_it_is_not_the_formats() -> None:
    redactor = LogRedactor({"pin": "4711"})
    event = {
        "type": "run_start",
        "inputs": {"pin": 4711, "other": 4712, "on": True},
        "usage": {"input": 4711},
        "turns": 4711,
    }
    assert redactor.value(event) == event | {
        "inputs": {"pin": "[secret:pin]", "other": 4712, "on": True}
    }


def test_the_formats_own_words_and_ids_stay() -> None:
    event: dict[str, Any] = {
        "type": "message_end",
        "message": {
            "id": "m1",
            "role": "user",
            "content": [{"type": "text", "text": "text user 1234567812345678"}],
            "tool_call_id": "call_1234567812345678",
        },
    }
    redactor = LogRedactor({"a": "text", "b": "user"}, patterns=[r"\d+"])
    shown = redactor.value(event)
    assert shown["message"] == {
        "id": "m1",
        "role": "user",
        "content": [{"type": "text", "text": "[secret:a] [secret:b] [redacted]"}],
        "tool_call_id": "call_1234567812345678",
    }
    free = {"type": "tool_execution_start", "arguments": {"type": "text", "id": "7"}}
    assert redactor.value(free)["arguments"] == {
        "type": "[secret:a]",
        "id": "[redacted]",
    }
    assert redactor.value({"type": ["text"]}) == {"type": ["[secret:a]"]}


def test_opaque_data_is_only_searched_for_secrets() -> None:
    redactor = LogRedactor({"t": "wren-4711"}, patterns=["[A-Z]+"])
    image = {"type": "image", "mime_type": "image/png", "data": "AKIAIOSFODNN7EXAMPLE wren-4711"}
    assert redactor.value(image)["data"] == "AKIAIOSFODNN7EXAMPLE [secret:t]"
    thought = {"type": "thinking", "text": "X", "signature": KEYS["jwt"]}
    assert redactor.value(thought) == {**thought, "text": "[redacted]"}


@pytest.mark.parametrize("depth", [90, 150, 900, 100_000])
def test_a_deep_value_is_no_trouble(depth: int) -> None:
    redactor = LogRedactor({"t": "wren"})
    value: Any = ["wren", KEYS["openai"]]
    for _ in range(depth):
        value = {"a": value} if depth % 2 else [value]
    shown = redactor.value(value)
    for _ in range(min(depth, 90)):
        shown = shown[0]
    if depth == 90:
        assert shown == ["[secret:t]", "sk-[redacted:openai]"]
    elif depth <= 900:
        assert "wren" not in json.dumps(shown)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | PARTS,
        lambda inner: st.lists(inner) | st.dictionaries(PARTS, inner),
        max_leaves=8,
    )
)
def test_a_value_has_no_secret_left_and_keeps_its_shape(value: Any) -> None:
    redactor = LogRedactor(SECRETS, patterns=[r"\d{16}"])
    shown = redactor.value(value)
    assert "wren-4711-lark" not in json.dumps(shown)
    assert redactor.value(shown) == shown
    if isinstance(value, dict | list):
        assert type(shown) is type(value)
        assert len(shown) == len(value)


@pytest.mark.parametrize("piece", ["sk-", "xoxb-", "eyJ-", "AIza-", "SG."])
def test_many_beginnings_in_a_row_take_no_time_of_their_own(piece: str) -> None:
    # Each beginning used to look at all that follows, for minutes.
    text = piece * (120_000 // len(piece))
    redactor = LogRedactor()
    shown = redactor.delta(("a", 0), text) + redactor.rest(("a", 0))

    assert redactor.text(text) == text == shown
