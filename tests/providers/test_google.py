"""What a Gemini request says, and what an answer means, beyond the recorded quirks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.contract import (
    BlockEnd,
    ModelRequest,
    OpaqueBlock,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCallStart,
    ToolSchema,
)
from runner.engine.message import Block, Message, no_usage, user_message
from runner.error import ProviderError
from runner.providers.closed_schema import closed
from runner.providers.gemini_answer import GeminiAnswer
from runner.providers.gemini_schema import reduced
from runner.providers.google import Google, address
from runner.providers.settings import ModelSettings

TOOL = ToolSchema("look", "Look.", {"type": "object", "properties": {"n": {"type": "integer"}}})


def answer(*content: Block, model: str = "m", provider: str = "google") -> Message:
    return {
        "id": "m2",
        "role": "assistant",
        "content": list(content),
        "provider": provider,
        "model": model,
        "stop_reason": "stop",
        "usage": no_usage(),
    }


def call(id: str = "c1", **more: Any) -> Block:
    block: Block = {"type": "tool_call", "id": id, "name": "look", "arguments": {"n": 1}}
    return cast("Block", {**block, **more})


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
    **settings: Any,
) -> dict[str, Any]:
    """The JSON of a request."""
    provider = Google(ModelSettings("google", model, **settings))
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


def read(*chunks: Any) -> list[StreamEvent]:
    """What an answer's chunks come to."""
    answer = GeminiAnswer()
    found = [
        event
        for given in chunks
        for event in answer.read("", given if isinstance(given, str) else json.dumps(given))
    ]
    return [*found, *answer.end()]


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **more}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}


# --- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "model", "url"),
    [
        ("https://h", "gemini-2.5-pro", "https://h/v1beta/models/gemini-2.5-pro"),
        ("https://h/v1beta/", "models/g", "https://h/v1beta/models/g"),
        ("https://h/v1", "g", "https://h/v1/models/g"),
        ("https://h/v1beta/models", "g", "https://h/v1beta/models/g"),
        ("https://h/p", "tunedModels/a b", "https://h/p/v1beta/tunedModels/a%20b"),
    ],
)
def test_a_model_has_an_address(base: str, model: str, url: str) -> None:
    assert address(base, model) == f"{url}:streamGenerateContent?alt=sse"


def test_a_query_of_the_base_stays() -> None:
    assert (
        address("https://h/v1?x=1", "g")
        == "https://h/v1/models/g:streamGenerateContent?x=1&alt=sse"
    )


def test_a_request_has_what_the_settings_say() -> None:
    made = body(
        system="Be brief.",
        tools=[TOOL, ToolSchema("now", "", {"type": "object", "properties": {}})],
        temperature=0,
        max_output_tokens=77,
        options={"generationConfig": {"topP": 0.9}, "safetySettings": []},
    )
    assert made == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"temperature": 0, "maxOutputTokens": 77, "topP": 0.9},
        "safetySettings": [],
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "look",
                        "description": "Look.",
                        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
                    },
                    {"name": "now", "description": "now"},
                ]
            }
        ],
    }


def test_images_are_sent_inline_and_those_of_results_after_them() -> None:
    image: Block = {"type": "image", "mime_type": "image/png", "data": "QUJD"}
    inline = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    messages: list[Message] = [
        {"id": "m1", "role": "user", "content": [image]},
        answer(call()),
        result(image),
    ]
    contents = body(messages)["contents"]
    assert contents[0]["parts"] == [inline]
    response = contents[2]["parts"][0]["functionResponse"]
    assert response == {"id": "c1", "name": "look", "response": {"output": ""}}
    assert contents[3]["parts"] == [{"text": "The image of look:"}, inline]


def test_a_conversation_begins_with_the_user() -> None:
    messages = [answer({"type": "text", "text": "Welcome."}), user_message("Hi.")]
    assert [c["role"] for c in body(messages)["contents"]] == ["user", "model", "user"]


def test_signatures_go_back_on_the_part_that_they_came_with() -> None:
    content: list[Block] = [
        {"type": "thinking", "text": "Hm."},
        {"type": "thinking", "text": "So.", "signature": "T"},
        {"type": "text", "text": "Yes.", "signature": "S"},
        {"type": "provider", "provider": "google", "data": {"executableCode": {"code": "1"}}},
    ]
    messages = [user_message("Hi."), answer(*content), user_message("And?")]
    assert body(messages)["contents"][1]["parts"] == [
        {"text": "So.", "thought": True, "thoughtSignature": "T"},
        {"text": "Yes.", "thoughtSignature": "S"},
        {"executableCode": {"code": "1"}},
    ]


@pytest.mark.parametrize(
    ("model", "signatures"),
    [
        ("gemini-2.5-pro", [None, None]),
        ("gemini-3-pro-preview", ["skip_thought_signature_validator", None]),
    ],
)
def test_a_foreign_call_says_that_it_has_no_signature_where_one_is_asked_for(
    model: str, signatures: list[str | None]
) -> None:
    foreign = answer(call("a", signature="X"), call("b"), provider="anthropic")
    parts = body([user_message("Hi."), foreign], model=model)["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == signatures


@pytest.mark.parametrize(
    ("model", "reasoning", "config"),
    [
        ("gemini-2.0-flash", "high", None),
        ("gemini-2.5-flash", None, None),
        ("gemini-2.5-flash", "off", {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-pro", "off", {"includeThoughts": False, "thinkingBudget": 128}),
        ("gemini-2.5-pro", "high", {"includeThoughts": True, "thinkingBudget": 24_576}),
        ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3.1-pro", "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-3.5-flash", "off", {"includeThoughts": False, "thinkingLevel": "minimal"}),
        ("m", "low", {"includeThoughts": True, "thinkingLevel": "low"}),
    ],
)
def test_each_model_is_asked_to_think_in_its_own_way(
    model: str, reasoning: str | None, config: dict[str, Any] | None
) -> None:
    made = body(model=model, reasoning=reasoning)
    assert made.get("generationConfig", {}).get("thinkingConfig") == config


def test_an_output_schema_is_sent_where_tools_allow_it() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    fits = {"responseMimeType": "application/json", "responseSchema": schema}
    assert body(output_schema=schema)["generationConfig"] == fits
    assert "generationConfig" not in body(output_schema=schema, tools=[TOOL])
    made = body(output_schema=schema, tools=[TOOL], model="gemini-3-flash")
    assert made["generationConfig"] == fits
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert body(output_schema=free)["generationConfig"]["responseJsonSchema"] == free


# --- schemas --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": "k"}, {"type": "string", "enum": ["k"]}),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"enum": [1, 2]}, {"type": "integer", "description": '{"enum": [1, 2]}'}),
        (
            {"type": ["integer", "null"], "exclusiveMinimum": 0},
            {"type": "integer", "minimum": 1, "nullable": True},
        ),
        ({"type": "number", "exclusiveMaximum": 1}, {"type": "number", "maximum": 1}),
        (
            {"type": ["string", "integer"], "description": "D", "maxLength": 3},
            {
                "anyOf": [
                    {"type": "string", "maxLength": 3},
                    {"type": "integer", "maxLength": 3},
                ],
                "description": "D",
            },
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "null"}], "description": "D"},
            {"type": "string", "nullable": True, "description": "D"},
        ),
        (
            {"type": "string", "format": "uri", "pattern": "^h", "default": "x"},
            {"type": "string", "description": '{"pattern": "^h", "format": "uri"}'},
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                    {"$ref": "#/$defs/b"},
                ],
                "$defs": {"b": {"properties": {"b": {"type": "boolean"}}, "required": ["b", "c"]}},
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}},
                "required": ["a", "b"],
            },
        ),
        (
            {"type": "array", "items": {"type": "string", "format": "date-time"}, "maxItems": 2},
            {
                "type": "array",
                "maxItems": 2,
                "items": {"type": "string", "format": "date-time"},
            },
        ),
    ],
)
def test_a_schema_is_said_in_other_words(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert reduced(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "array"},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"description": "anything"}}},
        {"type": "tree"},
        {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}},
    ],
)
def test_a_schema_that_would_lose_something_is_sent_whole(schema: dict[str, Any]) -> None:
    assert reduced(schema) is None
    tool = ToolSchema("t", "T.", {"$schema": "x", "properties": {"p": schema}})
    declared = body(tools=[tool])["tools"][0]["functionDeclarations"][0]
    assert declared == {
        "name": "t",
        "description": "T.",
        "parametersJsonSchema": {"properties": {"p": schema}},
    }


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    "type",
                    "properties",
                    "items",
                    "anyOf",
                    "allOf",
                    "enum",
                    "const",
                    "$ref",
                    "required",
                )
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(("type", "properties", "items", "anyOf", "allOf")), _JSON))
def test_no_schema_however_broken_makes_it_fail(schema: dict[str, Any]) -> None:
    reduced(schema)
    closed(schema)


# --- answers --------------------------------------------------------------------------------------


def test_an_id_of_the_server_is_kept() -> None:
    call = {"functionCall": {"id": "f1", "name": "look", "args": {}}}
    events = read(chunk(call, finish="STOP"))
    assert isinstance(events[0], ToolCallStart)
    assert (events[0].id, events[0].name) == ("f1", "look")


def test_a_signature_belongs_to_the_text_that_it_comes_with_or_after() -> None:
    thought = {"text": "Hm.", "thought": True, "thoughtSignature": "T"}
    events = read(
        chunk(thought),
        chunk({"text": "Yes"}),
        chunk({"text": "", "thoughtSignature": "S"}, finish="STOP"),
    )
    ends = [(event.index, event.signature) for event in events if isinstance(event, BlockEnd)]
    assert ends == [(0, "T"), (1, "S")]


def test_what_the_servers_own_tools_did_goes_back_as_it_came() -> None:
    code = {"executableCode": {"code": "1"}, "thoughtSignature": "S"}
    events = read(chunk({"text": "a"}, code, {"text": "b"}, finish="STOP"))
    assert [event.index for event in events if isinstance(event, TextDelta)] == [0, 2]
    assert [event.data for event in events if isinstance(event, OpaqueBlock)] == [code]


def test_only_the_first_candidate_is_read() -> None:
    other = {"content": {"parts": [{"text": "b"}]}, "index": 1, "finishReason": "SAFETY"}
    both = chunk({"text": "a"}, finish="STOP")
    both["candidates"].append(other)
    assert [event.text for event in read(both) if isinstance(event, TextDelta)] == ["a"]


@pytest.mark.parametrize(
    ("reason", "kind", "retryable"),
    [
        ("SAFETY", "refused", False),
        ("RECITATION", "refused", False),
        ("MALFORMED_FUNCTION_CALL", "protocol", True),
        ("MISSING_THOUGHT_SIGNATURE", "bad_request", False),
        ("OTHER", "server", True),
    ],
)
def test_a_bad_end_is_an_error_that_names_it(reason: str, kind: str, retryable: bool) -> None:
    with pytest.raises(ProviderError, match=f"{reason}: because") as caught:
        read(chunk(finish=reason, finishMessage="because"))
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)


def test_an_unknown_end_is_an_end() -> None:
    events = read(chunk({"text": "a"}, finish="NEW_REASON"))
    assert isinstance(events[-1], Stop)
    assert events[-1].reason == "stop"


@pytest.mark.parametrize("given", ["no JSON", "7", '{"candidates": [', "[3]"])
def test_what_is_no_chunk_is_an_error(given: str) -> None:
    with pytest.raises(ProviderError, match="no chunk") as caught:
        read(given)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"candidates": None, "usageMetadata": 3, "promptFeedback": []},
        {"candidates": [3, {"content": {"parts": [None, 4, "x", {}]}}]},
        {"candidates": [{"content": [], "finishReason": 7}]},
        chunk({"functionCall": None}),
        chunk({"text": None}),
        "",
        "[DONE]",
        "[]",
    ],
)
def test_what_makes_no_sense_does_no_harm(given: Any) -> None:
    events = read(chunk({"text": "a"}), given, chunk({"text": "b"}, finish="STOP"))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "ab"
