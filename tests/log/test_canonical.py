from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.json_text import line
from runner.log.canonical import Canonical, canonical

Event = dict[str, Any]


def start(call: str, tool: str = "nap", agent: str | None = None) -> Event:
    return of("tool_execution_start", agent, tool_call_id=call, tool_name=tool, arguments={})


def update(call: str, n: int) -> Event:
    return of("tool_execution_update", tool_call_id=call, tool_name="nap", update=n)


def end(call: str, tool: str = "nap", agent: str | None = None) -> Event:
    return of(
        "tool_execution_end",
        agent,
        tool_call_id=call,
        tool_name=tool,
        result={"content": []},
        is_error=False,
        seconds=random.random(),
    )


def of(kind: str, agent: str | None = None, /, **fields: Any) -> Event:
    return {**({"agent": agent} if agent else {}), "type": kind, **fields}


def stamped(events: list[Event]) -> list[Event]:
    return [{"seq": n, "t": random.random(), **event} for n, event in enumerate(events)]


def text(events: list[Event]) -> str:
    return "".join(line(event) + "\n" for event in canonical(stamped(events)))


def kinds(events: list[Event]) -> list[str]:
    return [
        " ".join(
            str(event[key])
            for key in ("agent", "type", "tool_call_id", "iteration", "update")
            if key in event
        )
        for event in canonical(stamped(events))
    ]


def interleaved(rng: random.Random, streams: list[list[Event]]) -> list[Event]:
    streams = [list(stream) for stream in streams if stream]
    out: list[Event] = []
    while streams:
        stream = rng.choice(streams)
        out.append(stream.pop(0))
        streams = [stream for stream in streams if stream]
    return out


def test_leaves_out_what_differs_from_run_to_run() -> None:
    log = [
        of("run_start", format="pi-run-log/1", run_id="x", runner_version="1", started_at="now"),
        end("call_1"),
        of("run_end", status="ok", seconds=1.5),
    ]
    log[0]["spec"] = {"name": "a", "path": "b/a.yaml", "sha256": "0"}
    assert list(canonical(stamped(log))) == [
        {
            "seq": 0,
            "type": "run_start",
            "format": "pi-run-log/1",
            "spec": {"name": "a", "sha256": "0"},
        },
        {
            "seq": 1,
            "type": "tool_execution_end",
            "tool_call_id": "call_1",
            "tool_name": "nap",
            "result": {"content": []},
            "is_error": False,
        },
        {"seq": 2, "type": "run_end", "status": "ok"},
    ]


def test_parallel_calls_stand_in_the_models_order_starts_first() -> None:
    log = [start("a"), start("b"), end("b"), update("a", 1), end("a"), of("turn_end", turn=1)]
    assert kinds(log) == [
        "tool_execution_start a",
        "tool_execution_start b",
        "tool_execution_update a 1",
        "tool_execution_end a",
        "tool_execution_end b",
        "turn_end",
    ]


def test_calls_one_after_another_stay_as_they_are() -> None:
    log = [start("a"), end("a"), start("b"), end("b")]
    assert kinds(log) == [
        "tool_execution_start a",
        "tool_execution_end a",
        "tool_execution_start b",
        "tool_execution_end b",
    ]


def test_starts_come_out_at_once_and_ends_with_their_batch() -> None:
    form = Canonical()
    counts = [len(form.feed(e)) for e in stamped([start("a"), start("b"), end("b"), end("a")])]
    assert counts == [1, 1, 0, 2]


def test_what_belongs_to_no_call_comes_after_the_batch() -> None:
    log = [start("a"), start("b"), end("b"), of("message_queued"), end("a"), of("turn_end")]
    assert kinds(log)[-3:] == ["tool_execution_end b", "message_queued", "turn_end"]


@pytest.mark.parametrize("last", ["turn_end", "run_resume", "run_end"])
def test_a_batch_that_was_broken_off_is_let_go(last: str) -> None:
    log = [start("a"), start("b"), end("b"), of(last)]
    assert kinds(log)[2:] == ["tool_execution_end b", last]
    assert kinds(log[:3])[2:] == ["tool_execution_end b"]


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 5))
def test_any_interleaving_of_calls_gives_the_same_bytes(rng: random.Random, calls: int) -> None:
    names = [f"call_{n}" for n in range(calls)]
    before = [of("turn_start", turn=1), *map(start, names)]
    bodies = [[*(update(name, n) for n in range(2)), end(name)] for name in names]
    wanted = text([*before, *chain.from_iterable(bodies), of("turn_end", turn=1)])
    assert text([*before, *interleaved(rng, bodies), of("turn_end", turn=1)]) == wanted


def agent_lines(path: str) -> Iterator[Event]:
    yield of("agent_start", path)
    yield of("turn_start", path, turn=1)
    yield start("call_1", agent=path)
    yield end("call_1", agent=path)
    yield of("turn_end", path, turn=1)
    yield of("agent_end", path)


@settings(deadline=None)
@given(st.randoms(use_true_random=False))
def test_agents_as_parallel_tools_stand_with_their_calls(rng: random.Random) -> None:
    names = ["call_1", "call_2", "call_3"]
    starts = [start("call_1", "rev"), start("call_2", "nap"), start("call_3", "rev")]
    bodies = [
        [*agent_lines("main/rev#1"), end("call_1", "rev")],
        [update("call_2", 1), end("call_2")],
        [*agent_lines("main/rev#2"), end("call_3", "rev")],
    ]
    wanted = kinds([*starts, *chain.from_iterable(bodies)])
    assert wanted[3] == "main/rev#1 agent_start"
    assert kinds([*starts, *interleaved(rng, bodies)]) == wanted
    assert len(names) == sum("tool_execution_start call" in w for w in wanted if "main" not in w)


@settings(deadline=None)
@given(st.randoms(use_true_random=False))
def test_an_agent_that_names_its_call_is_believed(rng: random.Random) -> None:
    starts = [start("call_1", "a"), start("call_2", "b")]
    agents = [list(agent_lines("main/y#1")), list(agent_lines("main/x#1"))]
    agents[0][0]["tool_call_id"] = "call_1"
    agents[1][0]["tool_call_id"] = "call_2"
    bodies = [[*agents[0], end("call_1")], [*agents[1], end("call_2")]]
    wanted = text([*starts, *chain.from_iterable(bodies)])
    assert text([*starts, *interleaved(rng, bodies)]) == wanted


def task(n: int, path: str | None = None) -> list[Event]:
    return [
        of("task_start", task_id="each", iteration=n),
        *(agent_lines(path) if path else ()),
        of("task_end", task_id="each", iteration=n),
        of("expectation", task_id="each", kind="contains", passed=True, detail=str(n)),
    ]


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_parallel_tasks_stand_in_the_items_order(rng: random.Random, most: int) -> None:
    tasks = [task(n + 1, f"main/rev#{n + 1}") for n in range(5)]
    wanted = text([*chain.from_iterable(tasks), of("agent_end")])
    out: list[Event] = []
    waiting = [list(t) for t in tasks]
    running: list[list[Event]] = []
    while waiting or running:
        while waiting and len(running) < most:
            running.append(waiting.pop(0))
            out.append(running[-1].pop(0))
        one = rng.choice(running)
        out.append(one.pop(0))
        if len(one) == 1:  # a task's end and its expectations come in one go
            out.append(one.pop())
            running.remove(one)
    assert text([*out, of("agent_end")]) == wanted


def test_the_first_of_parallel_tasks_is_shown_as_it_goes() -> None:
    form = Canonical()
    log = stamped([*task(1)[:1], *task(2)[:1], of("agent_start", "main/rev#1"), *task(2)[1:]])
    assert [len(form.feed(event)) for event in log] == [1, 0, 1, 0, 0]


def test_is_the_same_when_done_twice() -> None:
    log = [
        *(start("a", "rev"), start("b", "rev"), *agent_lines("main/rev#2"), end("b")),
        *(*agent_lines("main/rev#1"), of("message_queued"), end("a"), of("turn_end")),
    ]
    once = list(canonical(stamped(log)))
    assert list(canonical(once)) == once
