from typing import Any

import pytest

from runner.views.block import SHOWN
from runner.views.show import Account

Events = list[dict[str, Any]]


def shown(events: Events, *, whole: bool = False) -> list[str]:
    lines: list[str] = []
    account = Account(lines.append, whole=whole)
    for event in events:
        account.event(event)
    account.finish()
    return lines


def result(text: str) -> dict[str, Any]:
    return {
        "type": "tool_execution_end",
        "tool_call_id": "a",
        "tool_name": "look",
        "result": {"content": [{"type": "text", "text": text}]},
        "is_error": False,
    }


def test_a_run_as_an_account(events: Events) -> None:
    events[0]["inputs"] = {"path": "a.txt"}
    events[-1]["output"] = None

    lines = shown([event for event in events if event["type"] != "message_update"])

    assert lines == [
        "reader: started with openai/gpt-5-mini",
        "  input path = a.txt",
        "task main",
        "turn 1",
        "  retry in 0.50 s after attempt 1: overloaded",
        "  assistant (1,000 tokens in, 200 out):",
        "    I read",
        "    ␛[2J them.",
        "  call read_file (a):",
        '    {"path": "a.txt"}',
        "  call read_file (b):",
        '    {"path": "漢字.txt"}',
        "  read_file … half",
        "  hook before_tool_call: block: No.",
        "  failed read_file (b) in 0.25 s:",
        "    No such file",
        "    at all",
        "  done read_file (a) in 1 min 15 s:",
        "    ::error::x",
        "turn 2",
        "  assistant (1,000 tokens in, 200 out):",
        "    All read.",
        "limit turns reached: 2 of 2",
        "limit: 2 turns, 2 tool calls, 2,400 tokens, $0.2000, 1 min 16 s",
    ]


def test_a_long_result_is_cut_unless_all_is_wanted() -> None:
    event = result("x" * (SHOWN + 5))

    assert shown([event])[-1] == "    … 5 more characters; --verbose shows them"
    assert shown([event], whole=True)[-1] == "    " + "x" * (SHOWN + 5)


def test_a_sub_agent_says_so_on_each_line() -> None:
    lines = shown([{**result("one\ntwo"), "agent": "main/reviewer#1"}])

    assert [line.startswith("main/reviewer#1: ") for line in lines] == [True] * 3


@pytest.mark.parametrize(
    "message",
    [
        {"role": "newer"},
        {"role": "newer", "content": "a text"},
        {"role": "newer", "content": [1, {"type": None}, {"type": "text"}, {"type": "image"}]},
    ],
)
def test_messages_of_newer_versions_do_no_harm(message: dict[str, Any]) -> None:
    assert shown([{"type": "message_end", "message": message}])[0] == "  newer:"


def test_calls_of_an_answer_that_failed_are_shown() -> None:
    usage = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0, "reasoning": 0}
    call = {"type": "tool_call", "id": "a", "name": "look", "arguments": {"at": 1}}
    message = {
        "id": "m2",
        "role": "assistant",
        "content": [call],
        "provider": "p",
        "model": "m",
        "stop_reason": "error",
        "usage": usage,
        "error": {"kind": "network", "message": "gone"},
    }

    assert shown([{"type": "message_end", "message": message}]) == [
        "  assistant (error, 0 tokens in, 0 out):",
        '    calls look {"at": 1} (a)',
        "    network: gone",
    ]
