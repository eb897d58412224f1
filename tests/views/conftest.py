from collections.abc import Callable
from typing import Any

import pytest

Events = list[dict[str, Any]]


def answer(text: str, calls: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_call", **call} for call in calls]
    usage = {"input": 1000, "output": 200, "cache_read": 0, "cache_write": 0, "reasoning": 0}
    return {
        "id": "m2",
        "role": "assistant",
        "content": blocks,
        "provider": "openai",
        "model": "gpt-5-mini",
        "stop_reason": "tool_use" if calls else "stop",
        "usage": usage,
        **more,
    }


@pytest.fixture
def events() -> Events:
    """A run of two turns, with a parallel pair of calls of which one fails."""
    calls = [
        {"id": "a", "name": "read_file", "arguments": {"path": "a.txt"}},
        {"id": "b", "name": "read_file", "arguments": {"path": "漢字.txt"}},
    ]
    starts = [
        {
            "type": "tool_execution_start",
            "tool_call_id": call["id"],
            "tool_name": call["name"],
            "arguments": call["arguments"],
        }
        for call in calls
    ]
    plan = {
        "model": {
            "provider": "openai",
            "id": "gpt-5-mini",
            "price": {"input": 100.0, "output": 0.0},
        }
    }
    usage = {"input": 2000, "output": 400, "cache_read": 0, "cache_write": 0, "reasoning": 0}
    return [
        {"type": "run_start", "spec": {"name": "reader"}, "plan": plan},
        {"type": "agent_start"},
        {"type": "task_start", "task_id": "main", "iteration": 1},
        {"type": "turn_start", "turn": 1},
        {"type": "model_request", "provider": "openai", "model": "gpt-5-mini", "attempt": 1},
        {"type": "model_retry", "attempt": 1, "delay": 0.5, "error": "overloaded"},
        {"type": "model_request", "provider": "openai", "model": "gpt-5-mini", "attempt": 2},
        {"type": "message_start", "message": {"id": "m2", "role": "assistant"}},
        {"type": "message_update", "delta": {"kind": "thinking", "index": 0, "text": "Hm."}},
        {"type": "message_update", "delta": {"kind": "text", "index": 1, "text": "I read\n"}},
        {"type": "message_update", "delta": {"kind": "text", "index": 1, "text": "\x1b[2J them."}},
        {
            "type": "message_end",
            "message": answer("I read\n\x1b[2J them.", calls),
        },
        *starts,
        {
            "type": "tool_execution_update",
            "tool_call_id": "a",
            "tool_name": "read_file",
            "update": "half",
        },
        {"type": "hook_decision", "hook": "before_tool_call", "action": "block", "reason": "No."},
        {
            "type": "tool_execution_end",
            "tool_call_id": "b",
            "tool_name": "read_file",
            "result": {"content": [{"type": "text", "text": "No such file\nat all"}]},
            "is_error": True,
            "seconds": 0.25,
        },
        {
            "type": "tool_execution_end",
            "tool_call_id": "a",
            "tool_name": "read_file",
            "result": {"content": [{"type": "text", "text": "::error::x"}]},
            "is_error": False,
            "seconds": 75.0,
        },
        {"type": "turn_end", "turn": 1},
        {"type": "something_new", "of": "a later version"},
        {"type": "turn_start", "turn": 2},
        {"type": "message_start", "message": {"id": "m5", "role": "assistant"}},
        {"type": "message_update", "delta": {"kind": "text", "index": 0, "text": "All read."}},
        {"type": "message_end", "message": answer("All read.", [])},
        {"type": "turn_end", "turn": 2},
        {"type": "limit_reached", "limit": "turns", "value": 2, "allowed": 2},
        {
            "type": "run_end",
            "status": "limit",
            "text": "All read.",
            "turns": 2,
            "tool_calls": 2,
            "usage": usage,
            "cost_usd": 0.2,
            "seconds": 75.5,
        },
    ]


@pytest.fixture
def up_to(events: Events) -> Callable[[str, int], Events]:
    """The events up to the n-th of a type."""

    def part(kind: str, number: int) -> Events:
        places = [i for i, event in enumerate(events) if event["type"] == kind]
        return events[: places[number - 1] + 1]

    return part
