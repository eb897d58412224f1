"""What a Chat Completions request says, and what an answer means, beyond the recorded quirks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engine.answer import Answer
from runner.engine.contract import ModelRequest, Stop, TextDelta, ToolCallStart, ToolSchema
from runner.engine.message import AssistantMessage, Message, no_usage, text_block, user_message
from runner.error import ProviderError
from runner.providers.chat_answer import ChatAnswer
from runner.providers.openai import OpenAI
from runner.providers.settings import ModelSettings
from runner.providers.sse import SseReader

PIXEL = {"type": "image", "mime_type": "image/png", "data": "QUJD"}


def assistant(*blocks: Any) -> Message:
    message = {
        "id": "m1",
        "role": "assistant",
        "content": list(blocks),
        "provider": "openai",
        "model": "m",
        "stop_reason": "tool_use",
        "usage": no_usage(),
    }
    return cast("Message", message)


def call(call_id: str = "call_1", **other: Any) -> Any:
    return {"type": "tool_call", "id": call_id, "name": "add", "arguments": {"a": 1}, **other}


def result(*blocks: Any, call_id: str = "call_1") -> Message:
    return {
        "id": "m2",
        "role": "tool_result",
        "tool_call_id": call_id,
        "tool_name": "add",
        "is_error": False,
        "content": list(blocks),
    }


def body(
    *messages: Message,
    system: str = "",
    tools: Sequence[ToolSchema] = (),
    output_schema: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """A request's body."""
    request = ModelRequest(
        messages=messages,
        system_prompt=system,
        tools=tools,
        model="m",
        api_key="k",
        number=0,
        output_schema=output_schema,
    )
    made: dict[str, Any] = json.loads(OpenAI(ModelSettings("openai", "m", **options)).body(request))
    return made


def sent(*messages: Message) -> list[Any]:
    found: list[Any] = body(*messages)["messages"]
    return found


# --- requests -------------------------------------------------------------------------------------


def test_what_is_not_set_is_not_sent() -> None:
    assert body(user_message("Hi")) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_settings_are_sent_under_the_formats_names() -> None:
    made = body(
        system="Be brief.",
        temperature=0,
        max_output_tokens=9,
        reasoning="low",
        options={"top_p": 1},
    )
    assert made["messages"] == [{"role": "system", "content": "Be brief."}]
    assert (made["temperature"], made["top_p"]) == (0, 1)
    assert (made["max_completion_tokens"], made["reasoning_effort"]) == (9, "low")
    assert body(max_output_tokens=9, base_url="http://127.0.0.1:1")["max_tokens"] == 9
    assert body(reasoning="off")["reasoning_effort"] == "none"


def test_options_go_into_the_body_and_win() -> None:
    tool = {"type": "web_search"}
    made = body(
        tools=[ToolSchema("add", "", {})],
        temperature=1,
        options={"temperature": 2, "stream_options": {"x": 1}, "tools": [tool]},
    )
    assert made["temperature"] == 2
    assert made["stream_options"] == {"include_usage": True, "x": 1}
    assert made["tools"][1] == tool


def test_a_tool_is_a_function() -> None:
    parameters = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    tools = [ToolSchema("add", "Adds.", parameters), ToolSchema("now", "", {})]
    empty = {"type": "object", "properties": {}}
    assert body(tools=tools)["tools"] == [
        {
            "type": "function",
            "function": {"name": "add", "description": "Adds.", "parameters": parameters},
        },
        {"type": "function", "function": {"name": "now", "parameters": empty}},
    ]


CLOSED = {"type": "object", "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({**CLOSED, "properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
        ({**CLOSED, "properties": {"a": {"type": "string"}}}, False),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, False),
        ({**CLOSED, "properties": {"a": {"properties": {}}}, "required": ["a"]}, False),
        ({**CLOSED, "properties": {"not": {}, "if": {}}, "required": ["not", "if"]}, True),
        ({**CLOSED, "properties": {}, "oneOf": [{}]}, False),
        ({**CLOSED, "properties": {"a": {"items": {"not": {}}}}, "required": ["a"]}, False),
        ({**CLOSED, "properties": {"a": {"enum": [{"type": "object"}]}}, "required": ["a"]}, True),
    ],
)
def test_a_schema_is_strict_where_the_server_can_hold_to_it(schema: Any, strict: bool) -> None:
    assert body(output_schema=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "output", "schema": schema, "strict": strict},
    }


def test_images_are_parts_and_those_of_results_follow_in_a_message() -> None:
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    user = cast("Message", {"id": "m1", "role": "user", "content": [text_block("See"), PIXEL]})
    assert sent(user)[0]["content"] == [{"type": "text", "text": "See"}, url]
    messages = [assistant(call("a"), call("b")), result(PIXEL, call_id="a"), result(call_id="b")]
    _, first, second, images = sent(*messages)
    assert first["content"] == "(the image stands below)"
    assert second["content"] == "(no output)"
    assert images == {
        "role": "user",
        "content": [{"type": "text", "text": "The image of add:"}, url],
    }


@pytest.mark.parametrize(
    ("signature", "field", "content"),
    [
        ("reasoning_content", "reasoning_content", None),
        ("reasoning", "reasoning", None),
        ("<think>", "content", "<think>\nHm\n</think>\n\n"),
        ("else", None, None),
    ],
)
def test_thinking_goes_back_with_its_call(
    signature: str, field: str | None, content: str | None
) -> None:
    thought = {"type": "thinking", "text": "Hm", "signature": signature}
    message = sent(assistant(thought, call()), result(text_block("2")))[0]
    assert message["content"] == content
    if field and field != "content":
        assert message[field] == "Hm"
    alone = sent(assistant(thought, text_block("Two")))[0]
    assert alone == {"role": "assistant", "content": "Two"}
    assert sent(assistant(thought)) == []


def test_what_a_gateway_added_to_a_call_or_an_answer_goes_back() -> None:
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    block = {"type": "provider", "provider": "openai", "data": {"reasoning_details": details}}
    extra = {"google": {"thought_signature": "s"}}
    message = sent(assistant(call(signature=json.dumps(extra)), block), result(text_block("2")))[0]
    assert message["reasoning_details"] == details
    assert message["tool_calls"][0]["extra_content"] == extra


# --- answers --------------------------------------------------------------------------------------


def read(*chunks: Any, done: bool = True) -> AssistantMessage:
    """What an answer comes to as a message."""
    answer = ChatAnswer()
    whole = Answer("openai", "m", SimpleNamespace(call_ids=set(), calls_made=0))
    for chunk in [*chunks, *(["[DONE]"] if done else [])]:
        for event in answer.read("", chunk if isinstance(chunk, str) else json.dumps(chunk)):
            whole.feed(event)
    for event in answer.end():
        whole.feed(event)
    assert type(whole.stop) is Stop
    return whole.message(None, aborted=False)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(**fields: Any) -> dict[str, Any]:
    function = {k: fields.pop(k) for k in ("name", "arguments") if k in fields}
    return delta(tool_calls=[{**fields, "function": function}])


def calls(*chunks: Any) -> list[tuple[str, Any]]:
    content = read(*chunks, delta("tool_calls"))["content"]
    return [(b["name"], b["arguments"]) for b in content if b["type"] == "tool_call"]


WHOLE = '{"a":1}'


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        # no ids, no indices: each named piece after a whole one is another call
        (
            [{"name": "x", "arguments": WHOLE}, {"name": "x", "arguments": "{}"}],
            [("x", {"a": 1}), ("x", {})],
        ),
        ([{"name": "x", "arguments": ""}, {"name": "y", "arguments": ""}], [("x", {}), ("y", {})]),
        (
            [{"name": "x", "arguments": WHOLE}, {"name": "y", "arguments": ""}],
            [("x", {"a": 1}), ("y", {})],
        ),
        # one index for all, without ids
        (
            [
                {"index": 0, "name": "x", "arguments": WHOLE},
                {"index": 0, "name": "y", "arguments": "{}"},
            ],
            [("x", {"a": 1}), ("y", {})],
        ),
        # one id for all
        (
            [
                {"id": "1", "name": "x", "arguments": WHOLE},
                {"id": "1", "name": "x", "arguments": "{}"},
            ],
            [("x", {"a": 1}), ("x", {})],
        ),
        # the same id at another index
        (
            [
                {"index": 0, "id": "1", "name": "x", "arguments": WHOLE},
                {"index": 1, "id": "1", "name": "x", "arguments": WHOLE},
            ],
            [("x", {"a": 1}), ("x", {"a": 1})],
        ),
        # an index that moves, with the id of a call that is known
        (
            [
                {"index": 0, "id": "1", "name": "x", "arguments": '{"a"'},
                {"index": 1, "id": "1", "arguments": ":1}"},
            ],
            [("x", {"a": 1})],
        ),
        # an id that is new in each piece
        (
            [
                {"index": 0, "id": "1", "name": "x", "arguments": '{"a"'},
                {"index": 0, "id": "2", "arguments": ":1}"},
            ],
            [("x", {"a": 1})],
        ),
        # a name in pieces, or growing
        (
            [
                {"index": 0, "id": "1", "name": "get_"},
                {"index": 0, "name": "it", "arguments": WHOLE},
            ],
            [("get_it", {"a": 1})],
        ),
        (
            [
                {"index": 0, "id": "1", "name": "get_"},
                {"index": 0, "name": "get_it", "arguments": WHOLE},
            ],
            [("get_it", {"a": 1})],
        ),
        # the whole again, written otherwise
        (
            [
                {"index": 0, "id": "1", "name": "x", "arguments": WHOLE},
                {"index": 0, "id": "1", "name": "x", "arguments": '{"a": 1}'},
            ],
            [("x", {"a": 1})],
        ),
        # arguments that are none, an array, or two objects
        ([{"index": 0, "id": "1", "name": "x", "arguments": None}], [("x", {})]),
        ([{"index": 0, "id": "1", "name": "x"}], [("x", {})]),
        ([{"index": 0, "id": "1", "name": "x", "arguments": "null"}], [("x", {})]),
        ([{"index": 0, "id": "1", "name": "x", "arguments": [1]}], [("x", "[1]")]),
        ([{"index": 0, "id": "1", "name": "x", "arguments": "{}{}"}], [("x", "{}{}")]),
        ([{"index": 0, "id": "1", "name": "x", "arguments": '"{}"'}], [("x", {})]),
        ([{"index": 0, "id": "1", "name": "x", "arguments": '"text"'}], [("x", '"text"')]),
    ],
)
def test_pieces_of_calls_find_their_calls(pieces: list[Any], expected: list[Any]) -> None:
    assert calls(*(piece(**fields) for fields in pieces)) == expected


def test_the_call_of_the_oldest_form_is_one() -> None:
    chunks = [
        delta(function_call={"name": "x", "arguments": '{"a"'}),
        delta(function_call={"arguments": ":1}"}),
    ]
    assert calls(*chunks) == [("x", {"a": 1})]


def test_blocks_stand_in_the_order_in_which_they_began() -> None:
    message = read(
        delta(reasoning="I"),
        delta(content="a"),
        piece(index=0, id="1", name="x", arguments="{"),
        delta(content="b"),
        piece(index=0, arguments="}"),
        delta(reasoning="II"),
        delta("tool_calls", content="c"),
    )
    kinds = [(b["type"], b.get("text")) for b in message["content"]]
    assert kinds == [
        ("thinking", "I"),
        ("text", "a"),
        ("tool_call", None),
        ("text", "b"),
        ("thinking", "II"),
        ("text", "c"),
    ]
    assert message["content"][0].get("signature") == "reasoning"


@pytest.mark.parametrize(
    ("text", "thinking", "rest"),
    [
        ("<think>\nHm\n</think>\n\nSo", "Hm", "So"),
        ("\n<think></think>So", "", "So"),
        ("<think>a<b</thin></think>", "a<b</thin>", ""),
        ("<think>never closed\n", "never closed\n", ""),
        ("<thin", "", "<thin"),
        ("\n\nSo <think>not</think>", "", "\n\nSo <think>not</think>"),
        ("<thinking>", "", "<thinking>"),
    ],
)
def test_tags_are_found_however_they_are_cut(text: str, thinking: str, rest: str) -> None:
    for step in range(1, len(text) + 1):
        parts = [text[n : n + step] for n in range(0, len(text), step)]
        content = read(*(delta(content=part) for part in parts), delta("stop"))["content"]
        assert "".join(b["text"] for b in content if b["type"] == "thinking") == thinking
        assert "".join(b["text"] for b in content if b["type"] == "text") == rest


def test_halves_of_a_character_meet_across_deltas() -> None:
    halves = [
        '{"choices": [{"delta": {"content": "a\\ud83d"}}]}',
        '{"choices": [{"delta": {"content": "\\ude42b"}}]}',
    ]
    content = read(*halves, delta("stop"))["content"]
    assert content == [text_block("a🙂b")]


def test_reasoning_details_are_joined_to_go_back() -> None:
    def detail(**fields: Any) -> dict[str, Any]:
        return delta(reasoning_details=[{"type": "reasoning.text", "index": 0, **fields}])

    chunks = [detail(text="I "), detail(text="see", signature="s"), delta("stop", content="So")]
    thought, text, opaque = read(*chunks)["content"]
    assert (thought["type"], thought.get("text")) == ("thinking", "I see")
    assert text == text_block("So")
    joined = [{"type": "reasoning.text", "index": 0, "text": "I see", "signature": "s"}]
    assert opaque.get("data") == {"reasoning_details": joined}


def test_odd_reasoning_details_do_no_harm() -> None:
    odd = [{"text": 5, "x": [1]}, {"text": "a"}, 7, {"text": ["b"]}, {"index": 1, "data": "c"}]
    thought, opaque = read(delta("stop", reasoning_details=odd))["content"]
    assert thought.get("text") == "a"
    assert opaque.get("data") == {
        "reasoning_details": [{"text": "a", "x": [1]}, {"index": 1, "data": "c"}]
    }


def test_content_may_be_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
        {"type": "text", "text": "So"},
    ]
    content = read(delta("stop", content=parts))["content"]
    assert [(b["type"], b.get("text")) for b in content] == [("thinking", "Hm"), ("text", "So")]


@pytest.mark.parametrize(
    ("counted", "usage"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4}, (9, 4, 0, 0, 0)),
        (
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 5, "completion_tokens": 1},
            (4, 1, 5, 0, 0),
        ),
        ({"prompt_tokens": 9, "cached_tokens": 5}, (4, 0, 5, 0, 0)),
        (
            {
                "prompt_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 3},
            },
            (4, 0, 2, 3, 0),
        ),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "total_tokens": 6,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            (1, 5, 0, 0, 3),
        ),
        (
            {"prompt_tokens": None, "completion_tokens": "7", "prompt_tokens_details": []},
            (0, 0, 0, 0, 0),
        ),
        ({"prompt_tokens": -1, "completion_tokens": float("nan")}, (0, 0, 0, 0, 0)),
        ({"prompt_tokens": 1, "cached_tokens": 5}, (0, 0, 5, 0, 0)),
    ],
)
def test_usage_in_every_form(counted: Any, usage: tuple[int, ...]) -> None:
    assert tuple(read(delta("stop"), {"choices": [], "usage": counted})["usage"].values()) == usage
    choice = {"delta": {}, "finish_reason": "stop", "usage": counted}
    assert tuple(read({"choices": [choice]})["usage"].values()) == usage


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("eos", "stop"), ("STOP", "stop"), ("max_tokens", "length"), ("function_call", "stop")],
)
def test_reasons_that_others_have(reason: str, stop: str) -> None:
    assert read(delta(content="a"), delta(reason))["stop_reason"] == stop


def test_a_cut_answer_stays_cut() -> None:
    assert read(delta("length", content="a"), delta("stop"))["stop_reason"] == "length"


@pytest.mark.parametrize(
    ("chunks", "kind", "words"),
    [
        ([delta("sensitive")], "refused", "sensitive"),
        ([delta("abort")], "server", "abort"),
        ([delta("malformed_function_call")], "protocol", "malformed"),
        ([delta(refusal="I won't "), delta("stop", refusal="do it.")], "refused", "I won't do it."),
        (
            [
                {
                    "choices": [
                        {
                            "delta": {},
                            "finish_reason": "error",
                            "error": {"code": 529, "message": "Busy"},
                        }
                    ]
                }
            ],
            "overloaded",
            "Busy",
        ),
        ([{"error": "Out of order"}], "server", "Out of order"),
        ([{"object": "error", "message": "Too long", "code": 400}], "bad_request", "Too long"),
        (
            [{"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}],
            "overloaded",
            "Busy",
        ),
        ([{"detail": "Not Found"}], "protocol", "Not Found"),
        (
            [[{"error": {"code": 503, "message": "Later", "status": "UNAVAILABLE"}}]],
            "overloaded",
            "Later",
        ),
        (["Internal Server Error"], "protocol", "not JSON: Internal Server Error"),
        (['{"choices": [{"delta": {"content": "a'], "protocol", "not JSON"),
        (["[DONE]"], "network", "no finish reason"),
        ([], "network", "no finish reason"),
        (["[" * 100_000], "protocol", "not JSON"),
    ],
)
def test_what_is_no_answer_is_a_fault(chunks: list[Any], kind: str, words: str) -> None:
    with pytest.raises(ProviderError, match=words) as caught:
        read(*chunks, done=False)
    assert caught.value.kind == kind


def test_an_error_event_needs_no_json() -> None:
    with pytest.raises(ProviderError, match="Out of order"):
        ChatAnswer().read("error", "Out of order")


# --- any bytes ------------------------------------------------------------------------------------

GOOD = "".join(
    f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"
    for chunk in [
        delta(reasoning_content="Grübel 🌍"),
        delta(content="Ü\u2028ber "),
        delta(content="日本"),
        piece(index=0, id="c1", name="add", arguments='{"a": '),
        piece(index=0, arguments="1}"),
        piece(index=1, id="c2", name="now", arguments=""),
        delta("tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
    ]
).encode()


def outcome(stream: bytes, places: Sequence[int] = ()) -> Any:
    """What a stream comes to when it is cut at some places: a message, or an error's kind."""
    reader, answer = SseReader(), ChatAnswer()
    whole = Answer("openai", "m", SimpleNamespace(call_ids=set(), calls_made=0))
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    batches = [reader.feed(stream[a:b]) for a, b in itertools.pairwise(edges)]
    try:
        for batch in [*batches, reader.end()]:
            for name, data in batch:
                for event in answer.read(name, data):
                    whole.feed(event)
        for event in answer.end():
            whole.feed(event)
    except ProviderError as error:
        return error.kind
    return whole.message(None, aborted=False)


@given(st.lists(st.integers(0, len(GOOD)), max_size=30))
def test_no_cut_between_reads_changes_an_answer(places: list[int]) -> None:
    assert outcome(GOOD, places) == outcome(GOOD)


def test_a_stream_that_ends_anywhere_before_its_mark_is_a_fault() -> None:
    mark = GOOD.index(b'"finish_reason": "tool_calls"') + len(b'"finish_reason": "tool_calls"}]}')
    for end in range(len(GOOD)):
        found = outcome(GOOD[:end])
        if end < mark:
            assert found in ("network", "protocol")
        else:
            assert found == "protocol" or found["stop_reason"] == "tool_use"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
FIELDS = {
    "content": ANY,
    "reasoning": ANY,
    "refusal": ANY,
    "reasoning_details": ANY
    | st.lists(st.dictionaries(st.sampled_from(["type", "index", "text", "data"]), ANY)),
    "function_call": ANY,
    "tool_calls": ANY
    | st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "index": ANY,
                "id": ANY,
                "extra_content": ANY,
                "function": ANY
                | st.fixed_dictionaries({}, optional={"name": ANY, "arguments": ANY}),
            },
        )
    ),
}
CHOICE = st.fixed_dictionaries(
    {},
    optional={
        "index": ANY,
        "delta": ANY | st.fixed_dictionaries({}, optional=FIELDS),
        "message": ANY,
        "finish_reason": ANY | st.sampled_from(["stop", "tool_calls"]),
        "error": ANY,
        "usage": ANY,
    },
)
CHUNK = ANY | st.fixed_dictionaries(
    {},
    optional={
        "choices": ANY | st.lists(CHOICE, max_size=2),
        "usage": ANY | st.dictionaries(st.sampled_from(["prompt_tokens", "total_tokens"]), ANY),
        "error": ANY,
        "x_groq": ANY,
        "type": ANY,
    },
)


@given(st.lists(CHUNK, max_size=5))
def test_any_json_is_an_answer_or_a_fault(chunks: list[Any]) -> None:
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    found = outcome(stream.encode() + b"data: [DONE]\n\n")
    assert isinstance(found, str | dict)


def test_a_delta_is_told_at_once() -> None:
    answer = ChatAnswer()
    (event,) = answer.read("", json.dumps(delta(content="Hi")))
    assert type(event) is TextDelta
    start, _ = answer.read("", json.dumps(piece(index=0, id="1", name="x", arguments="{")))
    assert type(start) is ToolCallStart
