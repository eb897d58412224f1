"""Whatever a model says, tools and hooks do, and whoever stops it when: what always holds."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.engine.contract import Clock, ToolResult
from runner.engine.emit import Emitter
from runner.engine.hook import Hook, Hooks
from runner.engine.limit import Limits
from runner.engine.plan import Repeat, Task
from runner.engine.run import Run
from runner.engine.sub_agent import AgentTool

# --- what models say ------------------------------------------------------------------------------

TOOLS = ("quick", "slow", "late", "stubborn", "raises", "nonsense", "updates", "done", "alone")
call = st.fixed_dictionaries(
    {"name": st.sampled_from((*TOOLS, "agent", "none"))},
    optional={
        "id": st.sampled_from(("a", "b", "call_1")),
        "arguments": st.sampled_from(({}, {"a": 1}, '{"a', "[]", "null")),
    },
)
ends = st.sampled_from(
    (
        *[{}] * 6,
        {"stop": "length"},
        {"stop": "aborted"},
        {"stop": "error"},
        {"error": "overloaded", "status": 529},
        {"error": "bad", "status": 400},
    )
)
reply = st.builds(
    lambda said, end: {**said, **end},
    st.fixed_dictionaries(
        {},
        optional={
            "text": st.sampled_from(("Hi.", "a b c d", "🙂ü")),
            "thinking": st.just("Hm."),
            "deltas": st.integers(1, 5),
            "delay": st.sampled_from((0, 0.5)),
            "tool_calls": st.lists(call, min_size=1, max_size=4),
            "usage": st.just({"input": 10, "output": 1}),
        },
    ),
    ends,
)
scripts = st.lists(reply, min_size=1, max_size=5)


# --- what hooks do --------------------------------------------------------------------------------


def nothing(*args: Any) -> None:
    return None


def raises(*args: Any) -> None:
    raise ValueError("no")


async def hangs(*args: Any) -> None:
    await asyncio.sleep(5)


def garbage(*args: Any) -> Any:
    return 7


@dataclass
class Doing:
    """What one run is made of, as numbers that shrink."""

    script: list[Any]
    inner: list[Any]
    hooks: dict[str, Any]
    acts: list[tuple[int, str]]
    limits: dict[str, Any]
    options: dict[str, Any]
    tasks: list[str]
    listener: str
    put: list[str] = field(default_factory=list)


def hook(*own: Any) -> Any:
    choices = st.sampled_from((nothing, raises, hangs, garbage, *own))
    return st.builds(Hook, choices, st.sampled_from((None, "warn", "block", "fail")))


hooks = st.fixed_dictionaries(
    {},
    optional={
        "transform_context": hook(lambda messages: messages[-2:]),
        "convert_to_llm": hook(lambda messages: [*messages]),
        "before_tool_call": hook(
            lambda call: {"block": True, "reason": "no"},
            lambda call: {"block": True, "stop": True},
            lambda call: {"arguments": {"a": 2}},
        ),
        "after_tool_call": hook(
            lambda call: {"content": "other"}, lambda call: {"terminate": True}
        ),
        "stop_after_turn": hook(lambda turn: turn["turn"] > 2),
        "api_key": hook(lambda *names: "key"),
    },
)
acts = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from(("abort", "cancel", "steer", "follow_up", "steer", "follow_up")),
    ),
    max_size=5,
)
limits = st.fixed_dictionaries(
    {},
    optional={
        "turns": st.integers(0, 5),
        "tool_calls": st.integers(0, 4),
        "repeats": st.integers(1, 3),
        "tokens": st.integers(0, 50),
        "seconds": st.sampled_from((0.2, 1.0, 3.0)),
    },
)
options = st.fixed_dictionaries(
    {
        "tool_execution": st.sampled_from(("parallel", "sequential")),
        "max_parallel_tools": st.integers(1, 3),
        "steering_mode": st.sampled_from(("all", "one_at_a_time")),
        "follow_up_mode": st.sampled_from(("all", "one_at_a_time")),
        "interrupt": st.booleans(),
        "grace": st.sampled_from((0.1, 2.0)),
    }
)
kinds_of_task = st.sampled_from(("prompt", "repeat", "items", "agents", "may_fail"))
doings = st.builds(
    Doing,
    script=scripts,
    inner=scripts,
    hooks=hooks,
    acts=acts,
    limits=limits,
    options=options,
    tasks=st.lists(
        st.sampled_from(("prompt", "repeat", "items", "agents", "may_fail")), max_size=2
    ),
    listener=st.sampled_from(("none", "raises", "slow")),
)


# --- what tools do --------------------------------------------------------------------------------


async def slow(**_: Any) -> str:
    await asyncio.sleep(0.7)
    return "slow"


async def stubborn(**_: Any) -> str:
    for _n in range(4):
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            continue
    return "at last"


async def updating(update: Any, cancellation: Any, **_: Any) -> str:
    for n in range(3):
        update(n)
        await asyncio.sleep(0.1)
    return "told"


def all_tools(tool: Any) -> list[Any]:
    return [
        tool("quick", lambda **_: "quick"),
        tool("slow", slow),
        tool("late", slow, timeout=0.3),
        tool("stubborn", stubborn, timeout=0.5),
        tool("raises", lambda **_: raises()),
        tool("nonsense", lambda **_: None),
        tool("updates", updating, told=True),
        tool("done", lambda **_: ToolResult("done", terminate=True)),
        tool("alone", slow, execution="sequential"),
    ]


def all_tasks(names: list[str], make_agent: Callable[[], Any]) -> list[Task]:
    def say(scope: Any) -> str:
        return "next"

    made = {
        "prompt": {"prompt": say},
        "repeat": {"prompt": say, "repeat": Repeat(lambda scope: False, 2)},
        "items": {"prompt": say, "for_each": lambda scope: [1, 2], "on_error": "continue"},
        "agents": {
            "agent": lambda scope: make_agent(),
            "for_each": lambda scope: [1, 2, 3],
            "max_parallel": 2,
            "on_error": "continue",
        },
        "may_fail": {"prompt": say, "on_error": "continue"},
    }
    whole: Any = made
    return [Task(f"{name}{n}", **whole[name]) for n, name in enumerate(names)]


# --- what holds -----------------------------------------------------------------------------------


async def run(doing: Doing, plan: Any, tool: Any) -> tuple[list[Any], list[Any], Run]:
    """Run it. Gives its events, what the event loop was told of, and the run."""
    loop = asyncio.get_running_loop()
    reports: list[Any] = []
    loop.set_exception_handler(lambda loop, told: reports.append(told))
    tools = all_tools(tool)
    hooks = Hooks(**doing.hooks)

    def make_agent(inputs: Any = None) -> Any:
        return plan(*doing.inner, name="agent", tools=tools, hooks=hooks, grace=0.1)

    agent = AgentTool("agent", "Helps.", {}, make_agent, lambda _: [], timeout=4.0)
    limits = Limits(**{"turns": 12, **doing.limits})
    whole = plan(
        *doing.script,
        {"text": "The end.", "repeat": "forever"},
        tools=[*tools, agent],
        hooks=hooks,
        limits=limits,
        tasks=all_tasks(doing.tasks, make_agent),
        **doing.options,
    )
    clock = Clock()
    clock.now = loop.time  # type: ignore[method-assign]
    emitter = Emitter(clock)
    spec = {"name": "main", "sha256": ""}
    start: Any = {"type": "run_start", "format": "pi-run-log/1", "spec": spec}
    start |= {"plan": {}, "inputs": {}}
    one = Run(whole, start, emitter, clock)
    events: list[Any] = []
    running: list[asyncio.Task[Any]] = []

    def act(event: Any) -> Any:
        events.append(json.loads(json.dumps(event)))
        for number, what in doing.acts:
            if number == event["seq"]:
                do(what)
        if doing.listener == "raises" and event["seq"] % 7 == 0:
            raises()
        if doing.listener == "slow" and event["seq"] % 5 == 0:
            return asyncio.sleep(0.05)
        return None

    def do(what: str) -> None:
        if what == "abort":
            one.abort(2)
        elif what == "cancel":
            running[0].cancel()
        else:
            doing.put.append(f"{what} {len(doing.put)}")
            getattr(one, what)(doing.put[-1])

    emitter.subscribe(act)
    running.append(asyncio.ensure_future(one.execute()))
    try:
        await running[0]
    except asyncio.CancelledError:
        assert any(what == "cancel" for _, what in doing.acts)
    told = len(events)
    await asyncio.sleep(30)
    assert len(events) == told, "events after the end"
    assert len(asyncio.all_tasks()) == 1, "tasks after the end"
    assert one.session.cancellation._callbacks == []
    return events, reports, one


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(doing=doings)
def test_what_always_holds(doing: Doing, plan: Any, tool: Any, wrong: Any, virtual: Any) -> None:
    events, reports, one = virtual(lambda: run(doing, plan, tool))
    gc.collect()

    assert wrong(events) == []
    assert (events[0]["type"], events[-1]["type"]) == ("run_start", "run_end")
    assert events[-1]["exit_code"] != 70, events[-1]["error"]
    assert events[-1]["t"] < 200
    expected = "A listener of a run's events raised"
    assert [told for told in reports if told["message"] != expected] == []
    holds_of_the_queues(doing, events)
    holds_of_the_history(one)


def holds_of_the_queues(doing: Doing, events: list[Any]) -> None:
    """Each queue gives its messages in their order, and all that were put are told till the end."""
    own = [event for event in events if "agent" not in event]
    users = [
        event["message"]["content"][0]["text"]
        for event in own
        if event["type"] == "message_end" and event["message"]["role"] == "user"
    ]
    taken = [text for text in users if text in doing.put]
    last = [event for event in own if event["type"] == "agent_end"][-1:]
    left = [q["message"]["content"][0]["text"] for event in last for q in event["queued"]]
    told = [e["message"]["content"][0]["text"] for e in own if e["type"] == "message_queued"]
    assert set(told) <= set(doing.put)
    for queue in ("steer", "follow_up"):
        of_queue = [text for text in doing.put if text.startswith(queue) and text in told]
        in_order = [text for text in taken + left if text.startswith(queue)]
        assert in_order == of_queue


def holds_of_the_history(one: Run) -> None:
    """Each call of an answer that counts has one result, in the model's order, after it."""
    calls: list[str] = []
    for message in one.session.context:
        if message["role"] == "tool_result":
            assert message["tool_call_id"] == calls.pop(0)
        else:
            assert calls == []
        if message["role"] == "assistant":
            assert message["stop_reason"] not in ("error", "aborted")
            calls = [b["id"] for b in message["content"] if b["type"] == "tool_call"]
    assert calls == []


# --- what the check itself finds ------------------------------------------------------------------


def changed(events: list[Any], kind: str, **fields: Any) -> list[Any]:
    """Events of which the first of a kind has other fields."""
    place = next(n for n, event in enumerate(events) if event["type"] == kind)
    return [*events[:place], events[place] | fields, *events[place + 1 :]]


def without(events: list[Any], kind: str) -> list[Any]:
    """Events without the last of a kind, numbered anew."""
    place = max(n for n, event in enumerate(events) if event["type"] == kind)
    rest = events[:place] + events[place + 1 :]
    return [event | {"seq": n} for n, event in enumerate(rest)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda events: without(events, "message_end"), "ends with a message open"),
        (lambda events: without(events, "tool_execution_end"), "a result of call_1 before its end"),
        (lambda events: without(events, "tool_execution_start"), "call_1 is not open"),
        (lambda events: without(events, "turn_end"), "its turn open"),
        (lambda events: without(events, "agent_end"), "the run ends before main"),
        (lambda events: without(events, "task_end"), "tasks are open: main 1"),
        (lambda events: without(events, "run_end"), "there is no run_end"),
        (lambda events: without(events, "message_queued"), "queued that were taken"),
        (lambda events: changed(events, "turn_start", seq=9), "its number is 9"),
        (lambda events: changed(events, "turn_start", turn=2), "turn 2 is not the next"),
        (lambda events: changed(events, "turn_start", turn="1"), "turn is a text"),
        (lambda events: changed(events, "agent_end", queued=[]), "1 queued messages are lost"),
        (
            lambda events: changed(events, "run_end", exit_code=3),
            "3 is none of status ok",
        ),
        (lambda events: changed(events, "run_end", turns=3), "3 turns of 2"),
        (lambda events: changed(events, "run_end", tool_calls=2), "2 tool calls of 1"),
        (lambda events: [*events, events[-1] | {"seq": len(events)}], "after the run's end"),
    ],
)
def test_what_does_not_hold_is_found(
    change: Callable[[list[Any]], list[Any]], words: str, run_plan: Any, tool: Any, wrong: Any
) -> None:
    script = ({"tool_calls": [{"name": "quick"}]}, {"text": "Done."})
    quick = tool("quick", lambda **_: "quick")
    stop = {"stop_after_turn": lambda turn: turn["turn"] == 2}
    events = run_plan(
        *script, tools=[quick], hooks=Hooks(**stop), plan={"follow_ups": ["Never taken."]}
    ).events

    assert wrong(events) == []
    assert any(words in text for text in wrong(change(list(events)))), wrong(change(list(events)))
