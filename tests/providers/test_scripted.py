"""The scripted model: which reply comes when, and what it streams."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.contract import (
    ModelRequest,
    Stop,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageReport,
)
from runner.engine.message import Message, user_message
from runner.error import ProviderError, TemplateError
from runner.providers.scripted import MessageViews, create, pieces
from runner.providers.settings import ModelSettings

Script = Sequence[Mapping[str, Any]]


def request(number: int = 0, messages: Sequence[Message] = ()) -> ModelRequest:
    return ModelRequest(
        messages=messages or [user_message("Hello")],
        system_prompt="",
        tools=[],
        model="m",
        api_key=None,
        number=number,
    )


def render(template: str, values: Mapping[str, Any]) -> str:
    """Enough of a template: ``{{ last }}`` and ``{{ count }}``."""
    return template.replace("{{ last }}", values["last"].text).replace(
        "{{ count }}", str(len(values["messages"]))
    )


def streamed(
    script: Script, number: int = 0, messages: Sequence[Message] = ()
) -> tuple[list[StreamEvent], ProviderError | None]:
    """What a request gets: the events, and the error that ends them."""
    provider = create(ModelSettings("scripted", "scripted", script=script, render=render))

    async def collect() -> tuple[list[StreamEvent], ProviderError | None]:
        events: list[StreamEvent] = []
        try:
            async for event in provider.stream(request(number, messages)):
                events.append(event)
        except ProviderError as error:
            return events, error
        return events, None

    return asyncio.run(collect())


def error_of(script: Script, number: int = 0) -> ProviderError:
    _, error = streamed(script, number)
    assert error is not None
    return error


def text_at(script: Script, number: int) -> str:
    events, _ = streamed(script, number)
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_thinking_comes_before_text_and_text_before_calls() -> None:
    script = [
        {
            "tool_calls": [{"name": "add", "arguments": {"a": 2, "b": "ü"}}, {"name": "now"}],
            "text": "Let me add.",
            "thinking": "Two numbers.",
            "deltas": 2,
            "usage": {"input": 20, "output": 6},
        }
    ]
    events, error = streamed(script)
    assert error is None
    match events:
        case [
            ThinkingDelta(index=0, text="Two numbers."),
            TextDelta(index=1, text="Let m"),
            TextDelta(index=1, text="e add."),
            ToolCallStart(index=2, id="", name="add"),
            ToolCallDelta(index=2, arguments='{"a":2,"b":"ü"}'),
            ToolCallStart(index=3, id="", name="now"),
            ToolCallDelta(index=3, arguments="{}"),
            UsageReport(usage={"input": 20, "output": 6, "cache_read": 0}),
            Stop(reason="tool_use"),
        ]:
            pass
        case _:
            pytest.fail(repr(events))


def test_each_request_gets_the_reply_of_its_number() -> None:
    script: Script = [
        {"text": "a"},
        {"text": "b", "repeat": 2},
        {"text": "c", "times": 1},
        {"text": "d"},
    ]
    assert [text_at(script, number) for number in (4, 1, 0, 2, 3)] == ["d", "b", "a", "b", "c"]


def test_a_reply_that_is_repeated_forever_never_ends() -> None:
    script = [{"text": "a"}, {"text": "again", "repeat": "forever"}]
    assert text_at(script, 10**12) == "again"


def test_a_script_that_is_used_up_says_how_many_replies_it_had() -> None:
    error = error_of([{"text": "a"}, {"text": "b", "repeat": 2}], 3)
    assert error.kind == "exhausted"
    assert not error.retryable
    assert "the script has no more replies: it has 3" in str(error)
    assert "request 4" in str(error)


def test_an_empty_script_has_no_reply() -> None:
    assert "it has 0" in str(error_of([]))


def test_raw_arguments_are_sent_as_they_are() -> None:
    events, _ = streamed([{"tool_calls": [{"name": "look", "arguments": '{"path": "a.t'}]}])
    assert [e.arguments for e in events if isinstance(e, ToolCallDelta)] == ['{"path": "a.t']


def test_an_id_of_the_script_is_kept() -> None:
    events, _ = streamed([{"tool_calls": [{"id": "mine", "name": "look"}]}])
    assert [e.id for e in events if isinstance(e, ToolCallStart)] == ["mine"]


def test_a_text_is_a_template_that_sees_the_messages() -> None:
    messages: list[Message] = [user_message("first"), user_message("second")]
    events, _ = streamed([{"text": "{{ count }}: {{ last }}"}], messages=messages)
    assert isinstance(events[0], TextDelta)
    assert events[0].text == "2: second"


def test_messages_are_seen_with_role_and_text() -> None:
    views = MessageViews([user_message("first"), user_message("second")])
    assert [(view.role, view.text) for view in views] == [("user", "first"), ("user", "second")]
    assert [view.text for view in views[-1:]] == ["second"]


def test_a_text_that_cannot_be_rendered_is_a_provider_error() -> None:
    def fail(template: str, values: Mapping[str, Any]) -> str:
        raise TemplateError("'nobody' is undefined")

    script = [{"text": "{{ nobody }}"}]
    provider = create(ModelSettings("scripted", "scripted", script=script, render=fail))

    async def first() -> None:
        async for _ in provider.stream(request()):
            pass

    with pytest.raises(ProviderError, match="nobody") as caught:
        asyncio.run(first())
    assert not caught.value.retryable


@pytest.mark.parametrize("stop", ["stop", "tool_use", "length", "aborted"])
def test_a_stop_reason_of_the_script_is_kept(stop: str) -> None:
    events, _ = streamed([{"text": "partial", "tool_calls": [{"name": "look"}], "stop": stop}])
    assert isinstance(events[-1], Stop)
    assert events[-1].reason == stop


@pytest.mark.parametrize(
    ("entry", "kind", "retryable"),
    [
        ({"error": "overloaded", "status": 529}, "overloaded", True),
        ({"error": "slow down", "status": 429}, "rate_limit", True),
        ({"error": "bad request", "status": 400}, "bad_request", False),
        ({"error": "broken", "status": 500}, "server", True),
        ({"error": "no such key", "status": 401}, "auth", False),
        ({"error": "too big", "status": 413}, "context_overflow", False),
        ({"error": "rate_limit"}, "rate_limit", True),
        ({"error": "refused"}, "refused", False),
        ({"error": "something broke"}, "server", True),
        ({"error": "overloaded", "status": 529, "stop": "error"}, "overloaded", False),
        ({"stop": "error"}, "server", False),
    ],
)
def test_the_kind_of_an_error_comes_from_its_status(
    entry: Mapping[str, Any], kind: str, retryable: bool
) -> None:
    error = error_of([entry])
    assert (error.kind, error.retryable) == (kind, retryable)
    assert error.status == entry.get("status")
    assert entry.get("error", "error") in str(error)


def test_an_error_comes_after_the_content_and_its_usage() -> None:
    entry = {"text": "so far", "error": "gone", "status": 500, "usage": {"input": 20, "output": 3}}
    events, error = streamed([entry])
    assert [type(event) for event in events] == [TextDelta, UsageReport]
    assert str(error) == "gone"


def test_a_lone_surrogate_passes() -> None:
    assert text_at([{"text": "a\ud83d"}], 0) == "a\ud83d"


@given(st.text(), st.integers(1, 50))
def test_pieces_add_up_and_differ_by_one_at_most(text: str, count: int) -> None:
    made = list(pieces(text, count)) if text else []
    assert "".join(made) == text
    assert len(made) == min(count, len(text))
    assert not made or max(map(len, made)) - min(map(len, made)) <= 1


def test_importing_it_needs_neither_jinja_nor_httpx() -> None:
    code = (
        "import runner.providers.scripted, sys; "
        "print(sorted({'httpx', 'jinja2', 'pydantic', 'yaml'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
