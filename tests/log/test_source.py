from typing import Any

from runner.log.source import Source, sources

Event = dict[str, Any]
USAGE = {"input": 1, "output": 1, "cache_read": 0, "cache_write": 0, "reasoning": 0}


def start(**plan: Any) -> Event:
    return {"type": "run_start", "plan": plan, "inputs": {}}


def turn(number: int, digest: str, text: str, **more: Any) -> list[Event]:
    message = {
        "id": f"m{number}",
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "provider": "p",
        "model": "m",
        "stop_reason": "stop",
        "usage": USAGE,
    }
    request = {"type": "model_request", "model": "m", "provider": "p", "attempt": 1}
    events: list[Event] = [
        {"type": "turn_start", "turn": number},
        {**request, "context_digest": digest},
        {"type": "message_end", "message": message},
    ]
    return [{**event, **more} for event in events]


def call(name: str, text: str, *, below: list[Event] | None = None) -> list[Event]:
    head = {"tool_call_id": "a", "tool_name": name}
    content = [{"type": "text", "text": text}]
    end = {"type": "tool_execution_end", "result": {"content": content}, "is_error": False}
    first = {"type": "tool_execution_start", **head, "arguments": {}}
    return [first, *(below or []), {**end, **head}]


def found(a: list[Event], b: list[Event]) -> list[tuple[str, str, int]]:
    def numbered(events: list[Event]) -> list[Event]:
        return [{"seq": seq, **event} for seq, event in enumerate(events)]

    return [told(source) for source in sources(numbered(a), numbered(b))]


def told(source: Source) -> tuple[str, str, int]:
    return source.kind, source.name, source.turn


def test_the_same_has_no_source() -> None:
    events = [start(prompt="x"), *turn(1, "d", "hello")]

    assert found(events, events) == []


def test_a_model_that_answers_otherwise_is_one_and_what_follows_is_none() -> None:
    a = [start(), *turn(1, "d", "hello"), *turn(2, "e", "x")]
    b = [start(), *turn(1, "d", "bye"), *turn(2, "f", "y")]

    assert found(a, b) == [("model", "p/m", 1)]


def test_two_sources_are_both_told() -> None:
    a = [start(), *turn(1, "d", "x"), *call("look", "1"), *turn(2, "e", "y")]
    b = [start(), *turn(1, "d", "z"), *call("look", "2"), *turn(2, "f", "y")]

    assert found(a, b) == [("model", "p/m", 1), ("tool", "look", 1)]


def test_a_request_that_differs_with_nothing_before_it_is_one() -> None:
    a = [start(), *turn(1, "d", "x")]
    b = [start(), *turn(1, "e", "y")]

    assert found(a, b) == [("request", "m", 1)]


def test_of_an_agent_as_a_tool_its_own_model_is_the_source() -> None:
    below = {"agent": "main/helper#1"}
    a = [start(), *turn(1, "d", "x"), *call("helper", "1", below=turn(1, "s", "1", **below))]
    b = [start(), *turn(1, "d", "x"), *call("helper", "2", below=turn(1, "s", "2", **below))]

    assert found(a, b) == [("model", "p/m", 1)]


def test_a_failed_request_of_one_run_is_one() -> None:
    first, *rest = turn(1, "d", "x")
    retry = {"type": "model_retry", "attempt": 1, "delay": 1.0, "error": "overloaded"}

    assert found([start(), first, *rest], [start(), first, retry, *rest]) == [
        ("server", "the model's server", 1)
    ]


def test_pieces_of_a_stream_count_only_where_the_answer_is_the_same() -> None:
    def pieces(text: str, *parts: str) -> list[Event]:
        *before, end = turn(1, "d", text)
        deltas = [
            {"type": "message_update", "message_id": "m1", "delta": {"text": part}}
            for part in parts
        ]
        return [start(), *before, *deltas, end]

    assert found(pieces("ab", "a", "b"), pieces("ab", "ab")) == [("stream", "p/m", 1)]
    assert found(pieces("ab", "a", "b"), pieces("cd", "cd")) == [("model", "p/m", 1)]
