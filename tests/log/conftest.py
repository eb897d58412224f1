from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.json_text import line

Event = dict[str, Any]
USAGE = {"input": 1, "output": 1, "cache_read": 0, "cache_write": 0, "reasoning": 0}


def user(text: str, id_: str = "m1") -> Event:
    return {"id": id_, "role": "user", "content": [{"type": "text", "text": text}]}


def answer(text: str, id_: str, *calls: str) -> Event:
    blocks = [{"type": "tool_call", "id": one, "name": "look", "arguments": {}} for one in calls]
    return {
        "id": id_,
        "role": "assistant",
        "content": [{"type": "text", "text": text}, *blocks],
        "provider": "scripted",
        "model": "scripted",
        "stop_reason": "tool_use" if calls else "stop",
        "usage": USAGE,
    }


def result(text: str, id_: str, call: str) -> Event:
    return {
        "id": id_,
        "role": "tool_result",
        "tool_call_id": call,
        "tool_name": "look",
        "is_error": False,
        "content": [{"type": "text", "text": text}],
    }


def pair(message: Event, pieces: int = 0) -> list[Event]:
    """A message's start, its text in so many deltas, and its end."""
    start = message
    if message["role"] == "assistant":
        start = {key: message[key] for key in ("id", "role", "model", "provider")}
    text = message["content"][0]["text"]
    cuts = [text[n * len(text) // pieces : (n + 1) * len(text) // pieces] for n in range(pieces)]
    return [
        {"type": "message_start", "message": start},
        *(
            {
                "type": "message_update",
                "message_id": message["id"],
                "delta": {"kind": "text", "index": 0, "text": cut},
            }
            for cut in cuts
        ),
        {"type": "message_end", "message": message},
    ]


def request(added: list[str], dropped: list[str] | None = None, system: str = "s") -> Event:
    return {
        "type": "model_request",
        "model": "scripted",
        "provider": "scripted",
        "attempt": 1,
        "context_digest": system + "+" + "+".join(added),
        "system_digest": system,
        "tools_digest": "t",
        "context_change": {"added": added, "dropped": dropped or []},
    }


def call(id_: str, said: str) -> list[Event]:
    return [
        {
            "type": "tool_execution_start",
            "tool_call_id": id_,
            "tool_name": "look",
            "arguments": {},
        },
        {
            "type": "tool_execution_end",
            "tool_call_id": id_,
            "tool_name": "look",
            "result": {"content": [{"type": "text", "text": said}]},
            "is_error": False,
            "seconds": 0.25,
        },
    ]


def run(
    *,
    prompt: str = "Hello",
    said: str = "the tool says",
    last: str = "done",
    system: str = "",
    pieces: int = 2,
    run_id: str = "0abc",
    started_at: str = "2026-01-01T00:00:00Z",
) -> list[Event]:
    """The events of a run of two turns, with a tool call in the first."""
    plan = {"system_prompt": system, "prompt": prompt, "messages": []}
    return [
        {
            "type": "run_start",
            "format": "pi-run-log/1",
            "run_id": run_id,
            "runner_version": "0.1",
            "started_at": started_at,
            "spec": {"name": "spec", "path": "spec.yaml", "sha256": "0"},
            "plan": plan,
            "inputs": {},
        },
        {"type": "agent_start"},
        {"type": "task_start", "task_id": "main", "iteration": 1},
        {"type": "turn_start", "turn": 1},
        *pair(user(prompt)),
        request(["m1"], system="s" + system),
        *pair(answer("Looking.", "m2", "call_1"), pieces),
        *call("call_1", said),
        *pair(result(said, "m3", "call_1")),
        {
            "type": "turn_end",
            "turn": 1,
            "stop_reason": "tool_use",
            "message_id": "m2",
            "tool_result_ids": ["m3"],
        },
        {"type": "turn_start", "turn": 2},
        request(["m2", "m3"], system="s" + system),
        *pair(answer(last, "m4"), pieces),
        {
            "type": "turn_end",
            "turn": 2,
            "stop_reason": "stop",
            "message_id": "m4",
            "tool_result_ids": [],
        },
        {
            "type": "task_end",
            "task_id": "main",
            "iteration": 1,
            "status": "ok",
            "text": last,
            "output": None,
        },
        {
            "type": "agent_end",
            "stop_reason": "stop",
            "message_ids": ["m1", "m2", "m3", "m4"],
            "queued": [],
        },
        {
            "type": "run_end",
            "status": "ok",
            "exit_code": 0,
            "text": last,
            "output": None,
            "turns": 2,
            "tool_calls": 1,
            "usage": USAGE,
            "cost_usd": 0.0,
            "seconds": 0.5,
        },
    ]


def stamped(events: list[Event]) -> list[Event]:
    return [{"seq": n, "t": n / 100, **event} for n, event in enumerate(events)]


def text_of(events: list[Event]) -> str:
    return "".join(line(event) + "\n" for event in stamped(events))


@pytest.fixture
def events() -> Callable[..., list[Event]]:
    """Makes the events of a run."""
    return lambda **how: stamped(run(**how))


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Writes the log of a run and gives its path."""

    def write(name: str = "out.jsonl", **how: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(run(**how)), encoding="utf-8")
        return path

    return write
