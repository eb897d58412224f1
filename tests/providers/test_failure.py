"""What the errors of servers come to."""

from __future__ import annotations

import email.utils
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.error import ErrorKind
from runner.providers.failure import failure, failure_of_answer, short


def kind_of(status: int, body: Any = "", **headers: str) -> ErrorKind:
    text = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return failure_of_answer(status, named, text.encode(), None).kind


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "bad_request", False),
        (401, "auth", False),
        (402, "quota", False),
        (403, "auth", False),
        (404, "not_found", False),
        (405, "bad_request", False),
        (408, "timeout", True),
        (409, "server", True),
        (413, "context_overflow", False),
        (418, "bad_request", False),
        (422, "bad_request", False),
        (425, "server", True),
        (429, "rate_limit", True),
        (500, "server", True),
        (502, "server", True),
        (503, "overloaded", True),
        (504, "server", True),
        (524, "server", True),
        (529, "overloaded", True),
        (599, "server", True),
    ],
)
def test_a_status_alone(status: int, kind: ErrorKind, retryable: bool) -> None:
    found = failure_of_answer(status, {}, b"", None)
    assert (found.kind, found.retryable, found.status) == (kind, retryable, status)
    assert str(status) in str(found)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "m", "code": "context_length_exceeded"}, "context_overflow"),
        (400, {"message": "prompt is too long: 210000 tokens > 200000"}, "context_overflow"),
        (400, {"message": "This model's maximum context length is 8192"}, "context_overflow"),
        (400, {"message": "the request exceeds the available context size"}, "context_overflow"),
        (400, {"message": "The input token count (9) exceeds the maximum"}, "context_overflow"),
        (400, {"message": "temperature is too high"}, "bad_request"),
        (400, {"message": "API key not valid.", "status": "INVALID_ARGUMENT"}, "auth"),
        (400, {"message": "m", "code": "content_filter"}, "refused"),
        (400, {"message": "Output blocked by content filtering policy"}, "refused"),
        (403, {"message": "Your input was flagged"}, "refused"),
        (400, {"message": "Your credit balance is too low"}, "quota"),
        (400, {"message": "m", "type": "billing_error"}, "quota"),
        (404, {"message": "m", "code": "model_not_found"}, "not_found"),
        (429, {"message": "m", "code": "insufficient_quota"}, "quota"),
        (429, {"message": "You exceeded your current quota, check billing"}, "quota"),
        (429, {"message": "Limit of tokens a minute", "code": "rate_limit_exceeded"}, "rate_limit"),
        (500, {"message": "m", "type": "invalid_request_error"}, "server"),
        (None, {"message": "m", "code": 429}, "rate_limit"),
        (None, {"message": "m", "code": "429"}, "rate_limit"),
        (None, {"message": "m", "type": "overloaded_error"}, "overloaded"),
        (None, {"message": "m", "status": "UNAVAILABLE", "code": 503}, "overloaded"),
        (None, {"message": "m", "code": "context_length_exceeded"}, "context_overflow"),
        (
            None,
            {"message": "m", "code": "tool_use_failed", "type": "invalid_request_error"},
            "bad_request",
        ),
        (None, {"message": "m", "type": "authentication_error"}, "auth"),
        (None, {"message": "m"}, "server"),
        (None, "m", "server"),
    ],
)
def test_an_error_that_says_what_it_is(status: int | None, error: Any, kind: ErrorKind) -> None:
    assert failure(error, status=status, default="bad_request" if status else "server").kind == kind
    if status:
        assert kind_of(status, {"error": error}) == kind


def test_a_wait_makes_a_quota_a_rate() -> None:
    error: dict[str, Any] = {"error": {"message": "You exceeded your current quota", "code": 429}}
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    assert kind_of(429, error) == "quota"
    assert kind_of(429, error, retry_after="3") == "rate_limit"
    error["error"]["details"] = [delay]
    found = failure_of_answer(429, {}, json.dumps([error]).encode(), None)
    assert (found.kind, found.retry_after) == ("rate_limit", 34.5)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": email.utils.formatdate(0, usegmt=True)}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Mon, 99 Foo 2020"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert failure("m", status=429, headers=headers).retry_after == seconds


def test_a_date_to_wait_for() -> None:
    date = email.utils.formatdate(time.time() + 90, usegmt=True)
    wait = failure("m", status=429, headers={"retry-after": date}).retry_after
    assert wait is not None
    assert 60 < wait < 100


@pytest.mark.parametrize(("told", "retryable"), [("true", True), ("false", False)])
def test_a_server_may_say_whether_to_retry(told: str, retryable: bool) -> None:
    for status in (400, 500):
        found = failure("m", status=status, headers={"x-should-retry": told})
        assert found.retryable is retryable


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"error": {"message": "No such\\n model"}}', "No such model"),
        ('{"error": "plain"}', "plain"),
        ('{"message": "top"}', "top"),
        ('{"detail": "fast"}', "fast"),
        ('{"detail": [{"msg": "one", "loc": []}, {"msg": "two"}]}', "one; two"),
        ('[{"error": {"message": "listed", "status": "INTERNAL"}}]', "listed"),
        (
            '{"error": {"message": "Provider returned error", "metadata": {"raw": "{\\"error\\": '
            '{\\"message\\": \\"upstream\\"}}"}}}',
            "upstream",
        ),
        ('{"error": {"code": "just_a_code"}}', "just_a_code"),
        ('{"error": {"message": "see <function=x> there"}}', "see <function=x> there"),
        ("not json", "not json"),
        (
            "<html><head><title>Bad\nGateway</title></head><body>b</body></html>",
            "Bad Gateway (a web page)",
        ),
        ("<h1>Oh</h1><script>x < 1</script>", "Oh (a web page)"),
        ("<html></html>", "no text (a web page)"),
        ("{}", "HTTP status 500"),
        ("[" * 100_000, "[" * 299 + "…"),
    ],
)
def test_the_message_is_the_servers_own(body: str, message: str) -> None:
    assert str(failure_of_answer(500, {}, body.encode(), None)) == message


def test_no_key_is_in_a_message() -> None:
    key = "sk-" + "x" * 40
    text = "y" * 290 + key
    assert key[:10] not in str(failure({"message": text}, secret=key))
    assert str(failure("bad key " + key, secret=key)) == "bad key [key]"
    assert short("a key", "a") == "a key"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "code", "type", "status", "details", "metadata", "retryDelay"]
            ),
            inner,
        )
    ),
)


@given(JSON, st.none() | st.integers(400, 599))
def test_any_error_is_one(error: Any, status: int | None) -> None:
    found = failure(error, status=status)
    assert 0 < len(str(found)) <= 300
    assert "\n" not in str(found)


@given(st.binary(), st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms"]), st.text()))
def test_any_answer_is_one(body: bytes, headers: dict[str, str]) -> None:
    found = failure_of_answer(500, headers, body, "secret-key")
    assert 0 < len(str(found)) <= 300
