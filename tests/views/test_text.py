from typing import Any

import pytest

from runner.views.text import TextView, dollars, duration, plural, tool_lines

Events = list[dict[str, Any]]


def shown(events: Events, *, verbose: bool = False) -> list[str]:
    lines: list[str] = []
    view = TextView(lines.append, verbose=verbose)
    for event in events:
        view.event(event)
    return lines


def test_a_run_as_plain_lines(events: Events) -> None:
    assert shown(events) == [
        "reader: started with openai/gpt-5-mini",
        "turn 1",
        "  retry in 0.50 s: overloaded",
        "  I read ␛[2J them.",
        '  [1] read_file {"path": "a.txt"}',
        '  [2] read_file {"path": "漢字.txt"}',
        "  hook before_tool_call: block: No.",
        "  [2] read_file failed in 0.25 s: No such file at all",
        "  [1] read_file done in 1 min 15 s",
        "turn 2",
        "limit turns reached: 2 of 2",
        "limit: 2 turns, 2 tool calls, 2,400 tokens, $0.2000, 1 min 16 s",
    ]


def test_verbose_gives_texts_and_results_whole(events: Events) -> None:
    lines = shown(events, verbose=True)

    assert lines[lines.index("  answer:") + 1 :][:2] == ["    I read", "    ␛[2J them."]
    assert "  asking openai/gpt-5-mini, attempt 2" in lines
    assert "  [1] … half" in lines
    assert "    No such file" in lines
    assert "  stop: 1000 tokens in, 200 out" in lines


def test_lines_of_a_sub_agent_say_so() -> None:
    event = {"type": "turn_start", "turn": 3, "agent": "main/reviewer#1"}

    assert shown([event]) == ["main/reviewer#1: turn 3"]


def test_calls_of_the_same_id_in_two_agents_are_two() -> None:
    call = {"type": "tool_execution_start", "tool_call_id": "a", "tool_name": "x", "arguments": {}}

    assert shown([call, {**call, "agent": "main/b#1"}]) == ["  [1] x {}", "main/b#1:   [2] x {}"]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"task_id": "sum", "iteration": 2}, "task sum, iteration 2"),
        ({"task_id": "sum", "iteration": 1, "item": "a.txt"}, "task sum, item a.txt"),
    ],
)
def test_tasks_tell_their_iteration_and_item(event: dict[str, Any], line: str) -> None:
    assert shown([{"type": "task_start", **event}]) == [line]


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        ({"status": "ok"}, []),
        ({"status": "error"}, ["task sum: error"]),
        ({"status": "skipped", "skipped": "when is false"}, ["task sum skipped: when is false"]),
        ({"status": "ok", "warning": "max reached"}, ["task sum: warning: max reached"]),
    ],
)
def test_tasks_tell_how_they_ended(event: dict[str, Any], lines: list[str]) -> None:
    assert shown([{"type": "task_end", "task_id": "sum", "iteration": 1, **event}]) == lines


def test_numbers_are_for_people() -> None:
    assert [plural(1, "turn"), plural(1234, "token")] == ["1 turn", "1,234 tokens"]
    assert [duration(0.016), duration(12.34), duration(125)] == ["0.02 s", "12.3 s", "2 min 5 s"]
    assert [dollars(0.00123), dollars(1234.5)] == ["$0.0012", "$1,234.50"]


def test_tools_as_a_table() -> None:
    properties = {"path": {"type": "string"}, "lines": {"type": ["integer", "null"]}, "any": True}
    tool = {
        "name": "read_file",
        "description": "Read a file.\nAll of it.",
        "source": "built-in",
        "parameters": {"type": "object", "properties": properties, "required": ["path"]},
    }
    bare = {"name": "x", "description": "", "source": "a.py:x", "parameters": {}}

    assert list(tool_lines([tool, bare])) == [
        "read_file  Read a file. All of it.",
        "           from built-in",
        "             path: string",
        "             lines: integer or null, optional",
        "             any: any, optional",
        "x          ",
        "           from a.py:x",
    ]
    assert list(tool_lines([])) == []
