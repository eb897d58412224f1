"""What a Messages request says, and what an answer means, beyond the recorded quirks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from runner.engine.contract import (
    BlockEnd,
    ModelRequest,
    OpaqueBlock,
    Stop,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolSchema,
    UsageReport,
)
from runner.engine.message import Block, Message, no_usage, user_message
from runner.error import ProviderError
from runner.providers.anthropic import Anthropic
from runner.providers.closed_schema import closed
from runner.providers.messages_answer import MessagesAnswer
from runner.providers.settings import ModelSettings

TOOL = ToolSchema("look", "Look.", {"type": "object", "properties": {"n": {"type": "integer"}}})
LONG = "word " * 1200
MARK = {"type": "ephemeral"}


def answer(*content: Block, model: str = "m", provider: str = "anthropic") -> Message:
    return {
        "id": "m2",
        "role": "assistant",
        "content": list(content),
        "provider": provider,
        "model": model,
        "stop_reason": "stop",
        "usage": no_usage(),
    }


def call(id: str = "c1") -> Block:
    return {"type": "tool_call", "id": id, "name": "look", "arguments": {"n": 1}}


def result(*content: Block, id: str = "c1", is_error: bool = False) -> Message:
    return {
        "id": "m3",
        "role": "tool_result",
        "tool_call_id": id,
        "tool_name": "look",
        "is_error": is_error,
        "content": list(content),
    }


def body(
    messages: Sequence[Message] = (),
    *,
    system: str = "",
    tools: Sequence[ToolSchema] = (),
    output_schema: dict[str, Any] | None = None,
    model: str = "m",
    provider: Anthropic | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """The JSON of a request."""
    provider = provider or Anthropic(ModelSettings("anthropic", model, **settings))
    request = ModelRequest(
        messages=messages or [user_message("Hi.")],
        system_prompt=system,
        tools=tools,
        model=model,
        api_key="k",
        number=0,
        output_schema=output_schema,
    )
    made: dict[str, Any] = json.loads(provider._body(request))
    return made


def read(*events: dict[str, Any] | str) -> list[StreamEvent]:
    """What an answer's events come to."""
    answer = MessagesAnswer()
    found = [
        event
        for given in events
        for event in answer.read("", given if isinstance(given, str) else json.dumps(given))
    ]
    return [*found, *answer.end()]


def finish(reason: str, **more: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **more}}


# --- requests -------------------------------------------------------------------------------------


def test_a_request_has_what_the_settings_say() -> None:
    made = body(
        system="Be brief.",
        tools=[TOOL],
        temperature=0,
        max_output_tokens=77,
        options={"top_p": 0.9, "stop_sequences": ["x"]},
    )
    assert made == {
        "model": "m",
        "max_tokens": 77,
        "stream": True,
        "temperature": 0,
        "top_p": 0.9,
        "stop_sequences": ["x"],
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}],
        "tools": [
            {
                "name": "look",
                "description": "Look.",
                "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
            }
        ],
    }


def test_an_image_is_sent_as_base64() -> None:
    image: Block = {"type": "image", "mime_type": "image/png", "data": "QUJD"}
    message: Message = {"id": "m1", "role": "user", "content": [image]}
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert body([message])["messages"][0]["content"] == [{"type": "image", "source": source}]


def test_results_may_have_images_and_say_something_where_they_are_empty() -> None:
    image: Block = {"type": "image", "mime_type": "image/png", "data": "QUJD"}
    messages = [user_message("Hi."), answer(call("c1"), call("c2"))]
    messages += [result(image, id="c1"), result(id="c2", is_error=True)]
    blocks = body(messages)["messages"][2]["content"]
    assert blocks[0]["content"][0]["type"] == "image"
    assert "is_error" not in blocks[0]
    assert blocks[1]["is_error"] is True
    assert blocks[1]["content"] == [{"type": "text", "text": "(no output)"}]


def test_a_conversation_begins_with_the_user() -> None:
    messages = [answer({"type": "text", "text": "Welcome."}), user_message("Hi.")]
    assert [m["role"] for m in body(messages)["messages"]] == ["user", "assistant", "user"]


def test_thinking_goes_back_only_when_it_is_signed_and_something_follows() -> None:
    unsigned: Block = {"type": "thinking", "text": "Hm."}
    signed: Block = {"type": "thinking", "text": "", "signature": "S"}
    text: Block = {"type": "text", "text": "Yes."}
    for content, expected in (
        ([unsigned, text], ["text"]),
        ([signed, text], ["thinking", "text"]),
    ):
        messages = [user_message("Hi."), answer(*content), user_message("So?")]
        assert [b["type"] for b in body(messages)["messages"][1]["content"]] == expected
    messages = [user_message("Hi."), answer(signed), user_message("So?")]
    assert [m["role"] for m in body(messages)["messages"]] == ["user", "user"]


def test_a_turn_that_is_continued_does_not_end_with_white_space() -> None:
    searched: Block = {"type": "provider", "provider": "anthropic", "data": {"type": "x"}}
    messages = [user_message("Hi."), answer(searched, {"type": "text", "text": "So: \n"})]
    assert body(messages)["messages"][1]["content"] == [
        {"type": "x"},
        {"type": "text", "text": "So:"},
    ]


def test_what_is_refused_at_the_top_of_a_tools_schema_is_left_out() -> None:
    tool = ToolSchema("look", "Look.", {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]})
    assert body(tools=[tool])["tools"][0]["input_schema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("model", "reasoning", "expected"),
    [
        ("m", None, {}),
        ("m", "low", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        ("m", "off", {"thinking": {"type": "disabled"}}),
        (
            "claude-sonnet-4-20250514",
            "high",
            {"thinking": {"type": "enabled", "budget_tokens": 24_000}},
        ),
        (
            "claude-opus-4-7",
            "minimal",
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "low"},
            },
        ),
        ("claude-opus-4-8", "off", {}),
        ("claude-opus-5", "off", {"thinking": {"type": "disabled"}}),
        ("claude-opus-5-5", "off", {"output_config": {"effort": "low"}}),
        ("claude-fable-5", "off", {"output_config": {"effort": "low"}}),
    ],
)
def test_each_model_is_asked_to_think_in_its_own_way(
    model: str, reasoning: str | None, expected: dict[str, Any]
) -> None:
    made = body(model=model, reasoning=reasoning)
    assert {k: made[k] for k in ("thinking", "output_config") if k in made} == expected
    budget = made.get("thinking", {}).get("budget_tokens", 0)
    assert budget < made["max_tokens"]


def test_a_limit_of_the_answer_holds_for_its_thinking_too() -> None:
    made = body(reasoning="high", max_output_tokens=3000)
    assert (made["max_tokens"], made["thinking"]["budget_tokens"]) == (3000, 1500)


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("m", 8192),
        ("claude-3-haiku-20240307", 4096),
        ("claude-3-5-sonnet-20241022", 8192),
        ("claude-3-7-sonnet-latest", 32_000),
        ("claude-opus-4-1", 32_000),
    ],
)
def test_a_limit_that_nobody_set_is_one_that_the_model_can_keep(model: str, most: int) -> None:
    assert body(model=model)["max_tokens"] == most


# --- the cache ------------------------------------------------------------------------------------


def marks(made: dict[str, Any]) -> list[str]:
    """Where the marks of a request stand."""
    found = []
    if isinstance(made.get("system"), list):
        found.append("system")
    found += [f"tool {tool['name']}" for tool in made.get("tools", ()) if "cache_control" in tool]
    for number, message in enumerate(made["messages"]):
        for place, block in enumerate(message["content"]):
            if "cache_control" in block:
                assert block["cache_control"] == MARK
                found.append(f"{number}.{place}")
    return found


def test_a_long_prompt_that_is_likely_to_come_again_is_marked() -> None:
    long_tool = ToolSchema("read", LONG, TOOL.parameters)
    history = [user_message("Hi."), answer(call()), result({"type": "text", "text": LONG})]
    assert marks(body(system=LONG, tools=[TOOL])) == ["system", "0.0"]
    assert marks(body(tools=[TOOL, long_tool])) == ["tool read", "0.0"]
    assert marks(body(history, tools=[TOOL])) == ["2.0"]


@pytest.mark.parametrize(
    "given",
    [
        {"tools": [TOOL], "system": "short"},
        {"system": LONG},  # one question, which nobody follows up
        {"system": LONG, "tools": [TOOL], "cache": "off"},
    ],
)
def test_no_mark_where_it_does_not_pay(given: dict[str, Any]) -> None:
    assert marks(body(**given)) == []


def test_a_mark_is_gone_from_where_it_stood_in_the_request_before() -> None:
    provider = Anthropic(ModelSettings("anthropic", "m"))
    messages: list[Message] = [user_message(LONG)]
    assert marks(body(messages, tools=[TOOL], provider=provider)) == ["0.0"]
    messages += [answer(call()), result({"type": "text", "text": "x"})]
    assert marks(body(messages, tools=[TOOL], provider=provider)) == ["2.0"]


# --- structured output ----------------------------------------------------------------------------


def test_an_output_schema_is_sent_to_models_that_take_one() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}
    sent = {
        "type": "object",
        "properties": {"a": {"type": "integer", "description": '{"minimum": 1}'}},
        "additionalProperties": False,
    }
    made = body(output_schema=schema, model="claude-sonnet-4-5", reasoning="off")
    assert made["output_config"] == {"format": {"type": "json_schema", "schema": sent}}
    made = body(output_schema=schema, model="claude-opus-4-6", reasoning="low")
    assert made["output_config"].keys() == {"effort", "format"}
    assert "output_config" not in body(output_schema=schema, model="claude-sonnet-4-20250514")
    assert "output_config" not in body(output_schema=schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": True}},
        {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/$defs/missing"},
    ],
)
def test_a_schema_that_leaves_open_what_may_come_is_not_sent(schema: dict[str, Any]) -> None:
    assert closed(schema) is None


def test_references_are_followed_and_choices_are_kept() -> None:
    schema = {
        "$schema": "x",
        "type": "object",
        "properties": {
            "one": {"$ref": "#/$defs/a~1b"},
            "two": {"oneOf": [{"$ref": "#/$defs/a~1b", "title": "T"}, {"type": "null"}]},
            "many": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 3},
        },
        "$defs": {"a/b": {"type": "string", "format": "date"}},
    }
    date = {"type": "string", "format": "date"}
    assert closed(schema) == {
        "type": "object",
        "properties": {
            "one": date,
            "two": {"anyOf": [date | {"title": "T"}, {"type": "null"}]},
            "many": {
                "type": "array",
                "items": {"enum": [1, 2]},
                "minItems": 1,
                "description": '{"maxItems": 3}',
            },
        },
        "additionalProperties": False,
    }


# --- answers --------------------------------------------------------------------------------------


def test_an_answer_that_was_not_streamed_is_read_as_well() -> None:
    message = {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "S"},
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"n": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    events = read(message)
    assert [type(event).__name__ for event in events] == [
        "ThinkingDelta",
        "BlockEnd",
        "TextDelta",
        "ToolCallStart",
        "ToolCallDelta",
        "UsageReport",
        "Stop",
    ]


def test_thinking_that_is_not_shown_keeps_its_signature() -> None:
    start = {"type": "content_block_start", "index": 0}
    events = read(
        start | {"content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "SIG"},
        },
        {"type": "content_block_stop", "index": 0},
        finish("end_turn"),
    )
    assert isinstance(events[0], BlockEnd)
    assert (events[0].signature, events[0].redacted) == ("SIG", False)


def test_a_delta_without_the_start_of_its_block_begins_one() -> None:
    events = read(
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "Hm."},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Yes"}},
        finish("end_turn"),
    )
    assert isinstance(events[0], ThinkingDelta)
    assert isinstance(events[1], TextDelta)
    assert events[1].index == 1


def test_a_block_of_the_servers_own_goes_back_as_it_came_unless_a_piece_is_unknown() -> None:
    start = {"type": "content_block_start"}
    stop = {"type": "content_block_stop"}
    delta = {"type": "content_block_delta"}
    events = read(
        start | {"index": 0, "content_block": {"type": "server_tool_use", "id": "s", "input": {}}},
        delta | {"index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"q":"x"}'}},
        stop | {"index": 0},
        start | {"index": 1, "content_block": {"type": "hologram"}},
        delta | {"index": 1, "delta": {"type": "hologram_delta"}},
        stop | {"index": 1},
        finish("pause_turn"),
    )
    assert isinstance(events[0], OpaqueBlock)
    assert events[0].data == {"type": "server_tool_use", "id": "s", "input": {"q": "x"}}
    assert isinstance(events[1], Stop)
    assert (events[1].reason, events[1].paused) == ("stop", True)


def test_reasoning_is_counted_where_the_server_counts_it() -> None:
    usage = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}}
    events = read({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    assert isinstance(events[0], UsageReport)
    assert (events[0].usage["output"], events[0].usage["reasoning"]) == (9, 4)


def test_a_refusal_says_why() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "Not this."}
    with pytest.raises(ProviderError, match=r"refused to answer: Not this\.") as caught:
        read(finish("refusal", stop_details=details))
    assert caught.value.kind == "refused"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "overloaded"),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}, "rate_limit"),
        ({"error": {"message": "x"}}, "server"),
        ({"detail": "x"}, "protocol"),
        ("[1]", "protocol"),
        ("no JSON", "protocol"),
        ('{"type": "content_block_delta"', "protocol"),
    ],
)
def test_an_error_in_the_stream_is_one(event: dict[str, Any] | str, kind: str) -> None:
    with pytest.raises(ProviderError) as caught:
        read(event)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_start"},
        {"type": "content_block_start", "content_block": 3},
        {"type": "content_block_delta", "delta": None},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta"}},
        {"type": "content_block_stop", "index": [1]},
        {"type": "message_start", "message": {"usage": {"input_tokens": "many"}}},
        {"type": "message_delta", "delta": [], "usage": 4},
        "",
        "[DONE]",
    ],
)
def test_what_makes_no_sense_does_no_harm(event: dict[str, Any] | str) -> None:
    text = {"type": "content_block_delta", "index": 0}
    text |= {"delta": {"type": "text_delta", "text": "ok"}}
    events = read(text, event, text, finish("end_turn"))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["ok", "ok"]


def test_without_a_key_the_public_server_is_not_asked() -> None:
    async def first() -> None:
        request = ModelRequest([user_message("Hi.")], "", [], "m", None, 0)
        async for _ in Anthropic(ModelSettings("anthropic", "m")).stream(request):
            pass

    with pytest.raises(ProviderError, match="no API key"):
        asyncio.run(first())
