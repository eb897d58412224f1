"""What a Responses request says, and what an answer means, beyond the recorded quirks."""

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
from runner.engine.contract import ModelRequest, ToolSchema
from runner.engine.message import AssistantMessage, Message, no_usage, text_block, user_message
from runner.error import ProviderError
from runner.providers.openai_responses import OpenAIResponses
from runner.providers.responses_answer import ResponsesAnswer
from runner.providers.settings import ModelSettings
from runner.providers.sse import SseReader

PIXEL = {"type": "image", "mime_type": "image/png", "data": "QUJD"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}


def body(
    *messages: Message,
    model: str = "m",
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
        model=model,
        api_key="k",
        number=0,
        output_schema=output_schema,
    )
    provider = OpenAIResponses(ModelSettings("openai-responses", model, **options))
    made: dict[str, Any] = json.loads(provider.body(request))
    return made


def assistant(*blocks: Any, **other: Any) -> Message:
    message = {
        "id": "m1",
        "role": "assistant",
        "content": list(blocks),
        "provider": "openai-responses",
        "model": "m",
        "stop_reason": "stop",
        "usage": no_usage(),
    }
    return cast("Message", message | other)


def result(*blocks: Any) -> Message:
    return {
        "id": "m2",
        "role": "tool_result",
        "tool_call_id": "call_1",
        "tool_name": "add",
        "is_error": False,
        "content": list(blocks),
    }


# --- requests -------------------------------------------------------------------------------------


def test_what_is_not_set_is_not_sent() -> None:
    assert body(user_message("Hi")) == {
        "model": "m",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
    }


def test_settings_are_sent_under_the_formats_names() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    made = body(
        system="Be brief.",
        tools=[ToolSchema("now", "The time.", {})],
        output_schema=schema,
        temperature=0,
        max_output_tokens=9,
        reasoning="off",
        options={"text": {"verbosity": "low"}, "reasoning": {"summary": None}},
    )
    assert (made["instructions"], made["temperature"], made["max_output_tokens"]) == (
        "Be brief.",
        0,
        9,
    )
    assert made["reasoning"] == {"effort": "none", "summary": None}
    form = {"type": "json_schema", "name": "output", "schema": schema, "strict": True}
    assert made["text"] == {"format": form, "verbosity": "low"}
    assert made["tools"] == [
        {
            "type": "function",
            "name": "now",
            "description": "The time.",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("gpt-4o-mini", False),
        ("openai/gpt-4.1", False),
        ("gpt-5-chat-latest", False),
        ("gpt-5-mini", True),
        ("o3", True),
        ("my-gpt-4", True),
    ],
)
def test_encrypted_reasoning_is_asked_for_where_there_is_some(model: str, asked: bool) -> None:
    assert ("include" in body(model=model)) is asked


def test_an_answer_goes_back_as_the_items_that_it_was() -> None:
    search = {"type": "web_search_call", "id": "ws_1"}
    blocks = [
        {"type": "thinking", "text": "Hm", "signature": "ENC"},
        {"type": "thinking", "text": "", "signature": "ENC2", "redacted": True},
        {"type": "thinking", "text": "nothing to send"},
        {"type": "provider", "provider": "openai-responses", "data": search},
        {"type": "text", "text": "Now", "signature": "commentary"},
        {"type": "tool_call", "id": "call_1", "name": "add", "arguments": {"a": 1}},
    ]
    summary = [{"type": "summary_text", "text": "Hm"}]
    text = [{"type": "output_text", "text": "Now"}]
    call = {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a":1}'}
    output = {"type": "function_call_output", "call_id": "call_1"}
    assert body(assistant(*blocks), result(text_block("2")))["input"] == [
        {"type": "reasoning", "summary": summary, "encrypted_content": "ENC"},
        {"type": "reasoning", "summary": [], "encrypted_content": "ENC2"},
        search,
        {"type": "message", "role": "assistant", "content": text, "phase": "commentary"},
        call,
        output | {"output": "2"},
    ]
    foreign = assistant(*blocks, provider="anthropic")
    assert body(foreign, result(text_block("2")))["input"] == [
        {"type": "message", "role": "assistant", "content": text},
        call,
        output | {"output": "2"},
    ]


def test_images_are_parts_of_messages_and_of_results() -> None:
    call = {"type": "tool_call", "id": "call_1", "name": "add", "arguments": {}}
    user = cast("Message", {"id": "m1", "role": "user", "content": [PIXEL]})
    first, _, output = body(user, assistant(call), result(text_block("See"), PIXEL))["input"]
    assert first == {"role": "user", "content": [IMAGE]}
    assert output["output"] == [{"type": "input_text", "text": "See"}, IMAGE]


# --- answers --------------------------------------------------------------------------------------


def outcome(stream: bytes, places: Sequence[int] = ()) -> AssistantMessage | ProviderError:
    """What a stream comes to when it is cut at some places."""
    reader, answer = SseReader(), ResponsesAnswer()
    whole = Answer("openai-responses", "m", SimpleNamespace(call_ids=set(), calls_made=0))
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
        return error
    return whole.message(None, aborted=False)


def streamed(*events: Any) -> bytes:
    texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def read(*events: Any) -> AssistantMessage:
    found = outcome(streamed(*events))
    assert not isinstance(found, ProviderError), found
    return found


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def blocks(message: AssistantMessage) -> list[tuple[str, Any]]:
    return [(b["type"], b.get("text", b.get("arguments"))) for b in message["content"]]


DONE = event("completed", response={"status": "completed"})
CALL = item("function_call", id="fc_1", call_id="call_1", name="add", arguments='{"a":1}')
TEXT = item("message", id="msg_1", content=[{"type": "output_text", "text": "Hi"}])


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # nothing but the end, or a response that is not streamed
        (
            [event("completed", response={"output": [TEXT, CALL]})],
            [("text", "Hi"), ("tool_call", {"a": 1})],
        ),
        (
            [{"object": "response", "status": "completed", "error": None, "output": [TEXT]}],
            [("text", "Hi")],
        ),
        # whole items without their beginning
        (
            [event("output_item.done", item=TEXT), event("output_item.done", item=CALL), DONE],
            [("text", "Hi"), ("tool_call", {"a": 1})],
        ),
        # only the text's end
        ([event("output_text.done", output_index=0, text="Hi"), DONE], [("text", "Hi")]),
        # deltas without a beginning
        (
            [event("output_text.delta", delta="H"), event("output_text.delta", delta="i"), DONE],
            [("text", "Hi")],
        ),
        # the rest of a text at its end
        (
            [
                event("output_text.delta", output_index=0, delta="H"),
                event("output_item.done", output_index=0, item=TEXT),
                DONE,
            ],
            [("text", "Hi")],
        ),
        # a beginning that comes twice
        (
            [
                event("output_item.added", output_index=0, item=CALL),
                event("output_item.added", output_index=0, item=CALL),
                event("output_item.done", output_index=0, item=CALL),
                DONE,
            ],
            [("tool_call", {"a": 1})],
        ),
        # one place for all items
        (
            [
                event("output_item.added", output_index=0, item=TEXT | {"content": []}),
                event("output_text.delta", output_index=0, delta="Hi"),
                event("output_item.done", output_index=0, item=TEXT),
                event("output_item.added", output_index=0, item=CALL | {"arguments": ""}),
                event("function_call_arguments.delta", output_index=0, delta='{"a":1}'),
                event("output_item.done", output_index=0, item=CALL),
                DONE,
            ],
            [("text", "Hi"), ("tool_call", {"a": 1})],
        ),
        # the last word on arguments
        (
            [
                event("output_item.added", output_index=0, item=CALL | {"arguments": ""}),
                event("function_call_arguments.delta", output_index=0, delta='{"b":'),
                event("function_call_arguments.done", output_index=0, arguments='{"a":1}'),
                DONE,
            ],
            [("tool_call", {"a": 1})],
        ),
        # a part after the other, and thinking that is told in two ways
        (
            [
                event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="I"),
                event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="II"),
                event("reasoning_text.delta", output_index=0, content_index=0, delta="more"),
                DONE,
            ],
            [("thinking", "I\n\nII")],
        ),
        (
            [
                event("output_item.done", output_index=7, item=item("web_search_call", id="ws")),
                DONE,
            ],
            [("provider", None)],
        ),
    ],
)
def test_what_a_stream_leaves_out_is_found_elsewhere(
    events: list[Any], expected: list[Any]
) -> None:
    assert blocks(read(*events)) == expected


def test_reasoning_keeps_what_has_to_go_back() -> None:
    thought = item(
        "reasoning", id="rs", encrypted_content="ENC", summary=[{"text": "a"}, {"text": "b"}]
    )
    hidden = item("reasoning", id="rs2", encrypted_content="ENC2", summary=[])
    spoken = TEXT | {"phase": "final_answer"}
    found = [
        event("output_item.done", output_index=n, item=i)
        for n, i in enumerate([thought, hidden, spoken])
    ]
    assert read(*found, DONE)["content"] == [
        {"type": "thinking", "text": "a\n\nb", "signature": "ENC"},
        {"type": "thinking", "text": "", "signature": "ENC2", "redacted": True},
        {"type": "text", "text": "Hi", "signature": "final_answer"},
    ]


def test_a_cut_answer_is_cut() -> None:
    cut = event("incomplete", response={"incomplete_details": {"reason": "max_output_tokens"}})
    added = event("output_item.added", output_index=0, item=CALL | {"arguments": ""})
    message = read(added, event("function_call_arguments.delta", output_index=0, delta='{"a'), cut)
    assert message["stop_reason"] == "length"
    assert blocks(message) == [("tool_call", '{"a')]


@pytest.mark.parametrize(
    ("events", "kind", "words"),
    [
        (
            [event("incomplete", response={"incomplete_details": {"reason": "content_filter"}})],
            "refused",
            "filter",
        ),
        (
            [
                event(
                    "failed", response={"error": {"code": "rate_limit_exceeded", "message": "Slow"}}
                )
            ],
            "rate_limit",
            "Slow",
        ),
        ([event("failed", response={})], "server", "failed"),
        ([event("cancelled", response=None)], "server", "cancelled"),
        ([{"type": "error", "error": {"code": "server_error", "message": "Oh"}}], "server", "Oh"),
        ([{"error": {"message": "Oh", "code": 429}}], "rate_limit", "Oh"),
        ([{"object": "response", "status": "failed", "error": {"message": "Oh"}}], "server", "Oh"),
        ([{"object": "response", "status": "in_progress"}], "network", "no terminal event"),
        ([{"detail": "Not Found"}], "protocol", "Not Found"),
        (["Internal Server Error"], "protocol", "not JSON"),
        (["[DONE]"], "network", "no terminal event"),
        (
            [
                event(
                    "output_item.done",
                    item=item("message", content=[{"type": "refusal", "refusal": "No."}]),
                ),
                DONE,
            ],
            "refused",
            "No.",
        ),
    ],
)
def test_what_is_no_answer_is_a_fault(events: list[Any], kind: str, words: str) -> None:
    found = outcome(streamed(*events))
    assert isinstance(found, ProviderError)
    assert (found.kind, words in str(found)) == (kind, True)


def test_usage_counts_also_where_the_response_failed() -> None:
    answer = ResponsesAnswer()
    counted = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 2}
    (report,) = answer.read("", json.dumps(event("failed", response={"usage": counted})))
    usage = cast("Any", report).usage
    assert (usage["input"], usage["cache_read"], usage["output"]) == (5, 4, 2)


# --- any bytes ------------------------------------------------------------------------------------

GOOD = streamed(
    event("created", response={"status": "in_progress"}),
    event("output_item.added", output_index=0, item=item("reasoning", id="rs")),
    event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Grübel"),
    event(
        "output_item.done", output_index=0, item=item("reasoning", id="rs", encrypted_content="E")
    ),
    event("output_item.added", output_index=1, item=TEXT | {"content": []}),
    event("output_text.delta", output_index=1, delta="Hi"),
    event("output_item.done", output_index=1, item=TEXT),
    event("output_item.added", output_index=2, item=CALL | {"arguments": ""}),
    event("function_call_arguments.delta", output_index=2, delta='{"a":1}'),
    event("output_item.done", output_index=2, item=CALL),
    DONE,
)


@given(st.lists(st.integers(0, len(GOOD)), max_size=30))
def test_no_cut_between_reads_changes_an_answer(places: list[int]) -> None:
    assert outcome(GOOD, places) == outcome(GOOD)


def test_a_stream_that_ends_anywhere_before_its_mark_is_a_fault() -> None:
    for end in range(len(GOOD) - 2):
        assert isinstance(outcome(GOOD[:end]), ProviderError)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
ITEM = ANY | st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "reasoning", "function_call", "other"]) | ANY},
    optional={
        "id": st.sampled_from(["a", "b"]) | ANY,
        "call_id": ANY,
        "name": ANY,
        "arguments": ANY,
        "content": ANY | st.lists(st.dictionaries(st.sampled_from(["text", "refusal"]), ANY)),
        "summary": ANY,
        "encrypted_content": ANY,
        "phase": ANY,
    },
)
KINDS = [
    "output_text.delta",
    "output_text.done",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "reasoning_text.delta",
    "reasoning_summary_text.delta",
    "refusal.delta",
    "refusal.done",
    "output_item.added",
    "output_item.done",
    "completed",
    "incomplete",
    "other",
]
EVENT = ANY | st.fixed_dictionaries(
    {"type": st.sampled_from([f"response.{kind}" for kind in KINDS])},
    optional={
        "output_index": st.integers(-1, 2) | ANY,
        "item_id": st.sampled_from(["a", "b"]) | ANY,
        "item": ITEM,
        "delta": ANY,
        "text": ANY,
        "arguments": ANY,
        "response": ANY
        | st.fixed_dictionaries(
            {}, optional={"output": st.lists(ITEM) | ANY, "usage": ANY, "status": ANY}
        ),
    },
)


@given(st.lists(EVENT, max_size=8))
def test_any_json_is_an_answer_or_a_fault(events: list[Any]) -> None:
    assert outcome(streamed(*events, DONE)) is not None
