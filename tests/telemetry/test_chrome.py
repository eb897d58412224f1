"""The trace for Perfetto and Chrome: what it is, and what holds of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import json_text
from runner.telemetry.chrome import HEAD, TAIL, Chrome
from runner.telemetry.trace import Trace

Event = dict[str, Any]


def trace_of(events: list[Event], *, content: bool = False) -> list[Event]:
    chrome = Chrome()
    trace = Trace([chrome], content=content)
    for event in events:
        trace.event(event)
    trace.finish()
    whole: dict[str, Any] = json_text.parse(HEAD + ",\n".join(chrome.take()) + TAIL)
    events = whole["traceEvents"]
    return events


def hold(trace: list[Event]) -> None:
    """What Perfetto's importer asks for: each slice ends, inside the one that it began in."""
    stacks: dict[tuple[int, int], list[Event]] = {}
    clocks: dict[tuple[int, int], int] = {}
    named: set[tuple[int, int]] = set()
    flows: dict[int, str] = {}
    for event in trace:
        place = event["pid"], event["tid"]
        if event["ph"] == "M":
            named.add(place)
            continue
        assert place in named
        assert event["ts"] >= clocks.get(place, 0)
        clocks[place] = event["ts"]
        if event["ph"] == "B":
            stacks.setdefault(place, []).append(event)
        elif event["ph"] == "E":
            stacks[place].pop()
        else:
            assert event["ph"] == {None: "s", "s": "f"}[flows.get(event["id"])]
            flows[event["id"]] = event["ph"]
            assert stacks[place], "a flow has no slice that it belongs to"
    assert not any(stacks.values())
    assert set(flows.values()) <= {"f"}


START: Event = {
    "seq": 0,
    "t": 0.5,
    "type": "run_start",
    "run_id": "r1",
    "started_at": "2026-01-02T03:04:05Z",
    "spec": {"name": "demo", "sha256": ""},
    "plan": {"model": {"provider": "openai", "id": "gpt"}},
    "inputs": {},
}
REQUEST = {"type": "model_request", "provider": "openai", "model": "gpt", "attempt": 1}
ANSWER = {
    "id": "m2",
    "role": "assistant",
    "content": [],
    "model": "gpt",
    "stop_reason": "tool_use",
    "usage": {"input": 7, "output": 2, "cache_read": 0, "cache_write": 0, "reasoning": 0},
}


def call(phase: str, key: str, tool: str = "look", **more: Any) -> Event:
    event = {"type": f"tool_execution_{phase}", "tool_call_id": key, "tool_name": tool}
    return event | ({"is_error": False, "result": {}} if phase == "end" else {}) | more


def timed(events: list[Event]) -> list[Event]:
    """Events, one each 10 ms, after a run's start."""
    numbered = enumerate(events, 1)
    return [START, *({"seq": n, "t": round(0.5 + n / 100, 3), **e} for n, e in numbered)]


EVENTS = timed(
    [
        {"type": "task_start", "task_id": "main", "iteration": 1},
        {"type": "turn_start", "turn": 1},
        REQUEST,
        {"type": "message_start", "message": {"id": "m2", "role": "assistant"}},
        {"type": "message_end", "message": ANSWER},
        call("start", "c1"),
        call("start", "c2", "ask"),
        {"type": "agent_start", "agent": "main/ask#1"},
        {"type": "turn_start", "turn": 1, "agent": "main/ask#1"},
        call("end", "c1"),
        {"type": "turn_end", "turn": 1, "agent": "main/ask#1"},
        {"type": "agent_end", "agent": "main/ask#1", "stop_reason": "stop"},
        call("end", "c2", "ask", is_error=True),
        {"type": "turn_end", "turn": 1},
        {"type": "task_end", "task_id": "main", "iteration": 1, "status": "ok"},
        {"type": "run_end", "status": "ok", "cost_usd": 0.5},
    ]
)


def test_agents_are_processes_and_what_they_do_is_slices() -> None:
    told = []
    for event in trace_of(EVENTS):
        described = event.get("args", {}).get("name") if event["ph"] == "M" else None
        name = described or event.get("name")
        told.append((event["ph"], event.get("ts"), event["pid"], event["tid"], name))

    assert told == [
        ("M", None, 1, 1, "main"),
        ("M", None, 1, 1, "process_sort_index"),
        ("M", None, 1, 1, "agent"),
        ("M", None, 1, 1, "thread_sort_index"),
        ("B", 0, 1, 1, "invoke_agent demo"),
        ("B", 10_000, 1, 1, "task main"),
        ("B", 20_000, 1, 1, "turn 1"),
        ("B", 30_000, 1, 1, "chat gpt"),
        ("E", 50_000, 1, 1, None),
        ("B", 60_000, 1, 1, "execute_tool look"),
        ("M", None, 1, 2, "at the same time 2"),
        ("M", None, 1, 2, "thread_sort_index"),
        ("B", 70_000, 1, 2, "execute_tool ask"),
        ("M", None, 2, 1, "main/ask#1"),
        ("M", None, 2, 1, "process_sort_index"),
        ("M", None, 2, 1, "agent"),
        ("M", None, 2, 1, "thread_sort_index"),
        ("B", 80_000, 2, 1, "invoke_agent ask"),
        ("s", 80_000, 1, 2, "works for"),
        ("f", 80_000, 2, 1, "works for"),
        ("B", 90_000, 2, 1, "turn 1"),
        ("E", 100_000, 1, 1, None),
        ("E", 110_000, 2, 1, None),
        ("E", 120_000, 2, 1, None),
        ("E", 130_000, 1, 2, None),
        ("E", 140_000, 1, 1, None),
        ("E", 150_000, 1, 1, None),
        ("E", 160_000, 1, 1, None),
    ]


def test_the_end_of_a_slice_adds_what_is_known_only_then() -> None:
    trace = trace_of(EVENTS)
    begins = [event for event in trace if event["ph"] == "B"]
    ends = [event["args"] for event in trace if event["ph"] == "E"]

    assert begins[3]["args"]["server.address"] == "api.openai.com"
    assert begins[3]["args"]["gen_ai.provider.name"] == "openai"
    assert ends[0] == {
        "gen_ai.response.model": "gpt",
        "gen_ai.response.finish_reasons": "tool_call",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2,
    }
    assert ends[4] == {"error.type": "tool_error"}
    assert ends[-1]["pi_run.cost_usd"] == 0.5


@pytest.mark.parametrize("spec", ["chain.yaml", "parallel_tools.yaml", "steering.yaml"])
@pytest.mark.parametrize("content", [False, True])
def test_slices_of_real_runs_lie_within_one_another(
    run: Callable[..., list[Event]], spec: str, content: bool
) -> None:
    events = run(spec)

    hold(trace_of(events, content=content))
    for cut in range(1, len(events)):
        hold(trace_of(events[:cut]))


KINDS = st.sampled_from(
    [
        {"type": "task_start", "task_id": "a", "iteration": 1},
        {"type": "task_start", "task_id": "a", "iteration": 2},
        {"type": "task_end", "task_id": "a", "iteration": 1, "status": "ok"},
        {"type": "task_end", "task_id": "a", "iteration": 2, "status": "error"},
        {"type": "turn_start", "turn": 1},
        {"type": "turn_end", "turn": 1},
        REQUEST,
        {"type": "model_retry", "attempt": 1, "delay": 0, "error": "x"},
        {"type": "message_end", "message": ANSWER},
        {"type": "message_end", "message": {**ANSWER, "stop_reason": "error"}},
        call("start", "c1"),
        call("start", "c2"),
        call("end", "c1"),
        call("end", "c2"),
        {"type": "agent_start"},
        {"type": "agent_end", "stop_reason": "stop"},
        {"type": "hook_decision", "hook": "before_tool_call", "action": "block"},
        {"type": "expectation", "task_id": "a", "kind": "equals", "passed": True, "detail": ""},
        {"type": "limit_reached", "limit": "turns", "value": 2, "allowed": 2},
        {"type": "run_end", "status": "ok", "cost_usd": None},
        {"type": "run_resume", "reason": "killed"},
    ]
)
AGENTS = st.sampled_from([None, None, "main/x#1", "main/x#2", "main/x#1/y#1"])


@given(st.lists(st.tuples(KINDS, AGENTS), max_size=40))
def test_whatever_is_in_a_log_its_slices_lie_within_one_another(
    drawn: list[tuple[Event, str | None]],
) -> None:
    events = [{**event, "agent": path} if path else event for event, path in drawn]

    hold(trace_of(timed(events)))
