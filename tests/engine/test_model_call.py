"""Requests that fail: asked again, asked of another model, or told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from runner.engine.contract import (
    BlockEnd,
    Model,
    ModelRequest,
    OpaqueBlock,
    Price,
    Retry,
    Stop,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageReport,
)
from runner.engine.limit import Limits
from runner.engine.message import no_usage
from runner.error import ProviderError

OVERLOADED = {"error": "overloaded", "status": 529}


class Speaker:
    """A provider whose stream is a function of the request."""

    name = "speaker"

    def __init__(self, stream: Callable[[ModelRequest], AsyncIterator[StreamEvent]]) -> None:
        self.stream = stream

    async def close(self) -> None:
        pass


def speaking(stream: Any, attempts: int = 1) -> Model:
    return Model(Speaker(stream), "speaker-1", retry=Retry(attempts, 0.01))


def kinds(events: Any) -> list[str]:
    return [e["type"] for e in events if e["type"].startswith(("model", "message"))][2:]


def test_a_request_that_fails_before_any_content_is_made_again(watch: Any) -> None:
    watched = watch(OVERLOADED, OVERLOADED, {"text": "Hi."}, attempts=3)

    watched.prompt("Hello")

    assert kinds(watched.events) == [
        "model_request",
        "model_retry",
        "model_request",
        "model_retry",
        "model_request",
        "message_start",
        "message_update",
        "message_end",
    ]
    assert [e["attempt"] for e in watched.events.of("model_request")] == [1, 2, 3]
    retries = watched.events.of("model_retry")
    assert [(e["attempt"], e["delay"], e["error"]) for e in retries] == [
        (1, 0.01, "overloaded"),
        (2, 0.01, "overloaded"),
    ]
    assert [e["context_change"] for e in watched.events.of("model_request")] == [
        {"added": ["m1"], "dropped": []},
        {"added": [], "dropped": []},
        {"added": [], "dropped": []},
    ]


def test_one_that_fails_after_content_ends_its_message_and_stays_out(watch: Any) -> None:
    failing = {"text": "part", "usage": {"output": 3}, **OVERLOADED}
    watched = watch(failing, {"text": "{{ count }}", "usage": {"output": 4}}, attempts=2)

    watched.prompt("Hello")

    assert kinds(watched.events) == [
        "model_request",
        "message_start",
        "message_update",
        "message_end",
        "model_retry",
        "model_request",
        "message_start",
        "message_update",
        "message_end",
    ]
    answers = [e["message"] for e in watched.events.of("message_end")][1:]
    assert [m["stop_reason"] for m in answers] == ["error", "stop"]
    assert answers[0]["error"] == {"message": "overloaded", "kind": "overloaded", "status": 529}
    assert answers[0]["usage"] == no_usage() | {"output": 3}
    assert answers[1]["content"] == [{"type": "text", "text": "1"}]
    assert len(watched.events.of("turn_start")) == 1
    assert watched.events.of("turn_end")[0]["message_id"] == answers[1]["id"]


def test_when_all_attempts_failed_the_answer_is_an_error(watch: Any) -> None:
    watched = watch({**OVERLOADED, "repeat": 2}, attempts=2)

    answer = watched.prompt("Hello")

    assert answer["stop_reason"] == "error"
    assert kinds(watched.events)[-3:] == ["model_request", "message_start", "message_end"]
    assert len(watched.events.of("model_retry")) == 1


def test_what_no_other_attempt_can_mend_is_not_tried_again(watch: Any) -> None:
    watched = watch({"error": "bad", "status": 400}, {"text": "Hi."}, attempts=3)

    assert watched.prompt("Hello")["error"]["kind"] == "bad_request"
    assert watched.events.of("model_retry") == []


def test_the_fallback_is_asked_when_the_first_model_is_given_up(watch: Any, model: Any) -> None:
    second = model({"text": "Hi from the second."}, id="second")
    watched = watch(OVERLOADED, OVERLOADED, attempts=2, fallback=[second])

    answer = watched.prompt("Hello")

    assert (answer["model"], answer["stop_reason"]) == ("second", "stop")
    retries = watched.events.of("model_retry")
    assert [e.get("fallback") for e in retries] == [None, "scripted/second"]
    requests = watched.events.of("model_request")
    assert [(e["model"], e["attempt"]) for e in requests] == [
        ("scripted", 1),
        ("scripted", 2),
        ("second", 3),
    ]


def test_each_turn_begins_with_the_first_model(
    watch: Any, model: Any, tool: Any, calls: Any
) -> None:
    second = model(calls("look"), id="second")
    watched = watch(
        OVERLOADED, {"text": "Back."}, fallback=[second], tools=[tool("look", lambda: "x")]
    )

    assert watched.prompt("Hello")["model"] == "scripted"


@pytest.mark.parametrize(("wait", "attempts"), [(0.005, 2), (5.0, 1)])
def test_a_server_that_asks_for_more_patience_than_there_is_ends_the_call(
    watch: Any, wait: float, attempts: int
) -> None:
    async def stream(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if request.number == 0:
            raise ProviderError("later", "rate_limit", retry_after=wait)
        yield TextDelta(0, "Hi.")
        yield Stop("stop")

    watched = watch(model=speaking(stream, attempts=2))
    watched.prompt("Hello")

    assert len(watched.events.of("model_request")) == attempts
    assert [e["delay"] for e in watched.events.of("model_retry")] == [wait] * (attempts - 1)


def test_a_stream_without_its_terminal_mark_is_an_error_however_whole_it_looks(
    watch: Any, tool: Any
) -> None:
    async def stream(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield ToolCallStart(0, "a", "look")
        yield ToolCallDelta(0, "{}")
        yield UsageReport(no_usage() | {"input": 7})

    ran: Any = []
    watched = watch(model=speaking(stream), tools=[tool("look", lambda: ran.append(1))])
    answer = watched.prompt("Hello")

    assert answer["stop_reason"] == "error"
    assert answer["error"]["kind"] == "protocol"
    assert answer["usage"]["input"] == 7
    assert ran == []


def test_what_a_provider_lets_out_is_its_fault(watch: Any) -> None:
    async def stream(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta(0, "Hi")
        raise KeyError("choices")

    answer = watch(model=speaking(stream, attempts=3)).prompt("Hello")

    assert answer["error"] == {"message": "KeyError: 'choices'", "kind": "protocol"}


def test_a_provider_that_cancels_itself_fails_and_the_run_ends(watch: Any) -> None:
    async def stream(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta(0, "Hi")
        raise asyncio.CancelledError

    answer = watch(model=speaking(stream)).prompt("Hello")

    assert (answer["stop_reason"], answer["error"]["kind"]) == ("error", "protocol")


def test_an_answer_that_was_whole_survives_a_fault_of_the_cleanup(watch: Any) -> None:
    async def stream(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        try:
            yield TextDelta(0, "Hi.")
            yield Stop("stop")
        finally:
            raise OSError("can't close")

    assert watch(model=speaking(stream)).prompt("Hello")["stop_reason"] == "stop"


def test_a_key_that_can_not_be_had_is_told_as_the_answer(watch: Any, model: Any) -> None:
    def key() -> str:
        raise FileNotFoundError("no key file")

    asked = model({"text": "Hi."})
    asked.api_key = key
    answer = watch(model=asked).prompt("Hello")

    assert answer["error"] == {"message": "there is no key: no key file", "kind": "auth"}


def test_signatures_redaction_and_blocks_of_a_provider_are_kept(watch: Any) -> None:
    async def stream(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield BlockEnd(0, signature="secret", redacted=True)
        yield ThinkingDelta(1, "Hm.")
        yield BlockEnd(1, signature="sig")
        yield OpaqueBlock(2, {"any": "thing"})
        yield TextDelta(3, "")
        yield TextDelta(3, "Hi.")
        yield ToolCallStart(4, "", "look")
        yield BlockEnd(4, signature="s", arguments={"a": 1})
        yield Stop("stop")

    watched = watch(model=speaking(stream), limits=limits(turns=1))
    answer = watched.prompt("Hello")

    assert answer["content"] == [
        {"type": "thinking", "text": "", "signature": "secret", "redacted": True},
        {"type": "thinking", "text": "Hm.", "signature": "sig"},
        {"type": "provider", "provider": "speaker", "data": {"any": "thing"}},
        {"type": "text", "text": "Hi."},
        {"type": "tool_call", "id": "call_1", "name": "look", "arguments": {"a": 1}}
        | {"signature": "s"},
    ]
    assert answer["stop_reason"] == "tool_use"
    watched.events.clear()  # the deltas of this stream do not add up, on purpose


def limits(**given: Any) -> Any:
    from runner.engine.limit import Limits

    return Limits(**given)


def test_a_request_tells_the_provider_all_that_it_needs(watch: Any, tool: Any) -> None:
    seen: list[ModelRequest] = []

    async def stream(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        seen.append(request)
        yield Stop("stop")

    look = tool("look", lambda: "", parameters={"type": "object", "properties": {}})
    asked = speaking(stream)
    asked.api_key = lambda: "key"
    schema = {"type": "object"}
    watched = watch(model=asked, system_prompt="Be.", tools=[look], output_schema=schema)
    watched.prompt("Hello")
    watched.prompt("Again")

    one = seen[0]
    assert (one.system_prompt, one.model, one.api_key) == ("Be.", "speaker-1", "key")
    assert one.output_schema is schema
    assert [(t.name, t.description, t.parameters) for t in one.tools] == [
        ("look", "Do it.", {"type": "object", "properties": {}})
    ]
    assert [request.number for request in seen] == [0, 1]


def test_the_usage_and_the_cost_of_failed_answers_count(run_plan: Any, model: Any) -> None:
    failing = {"text": "part", "usage": {"input": 10, "output": 3}, **OVERLOADED}
    answer = {"text": "Hi.", "usage": {"input": 10, "output": 5}}
    asked = model(failing, answer, attempts=2, price=Price(input=1.0, output=2.0))
    done = run_plan(model=asked)

    assert done.end["usage"] == no_usage() | {"input": 20, "output": 8}
    assert done.end["cost_usd"] == 36e-6


def test_a_price_that_is_not_known_makes_the_cost_unknown(run_plan: Any, model: Any) -> None:
    asked = model({"text": "Hi.", "usage": {"input": 1}})
    asked.price = None

    assert run_plan(model=asked).end["cost_usd"] is None


def test_a_stream_that_waits_for_nothing_leaves_the_others_their_turn(watch: Any) -> None:
    async def stream(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        while True:
            yield TextDelta(0, "more ")

    watched = watch(model=speaking(stream), limits=Limits(seconds=0.05))

    assert watched.prompt("Hello")["stop_reason"] == "aborted"
