"""What spans a run's events make, by the SDK's own exporter in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from runner import Agent, AgentOptions, Telemetry, from_function, model, run_spec
from runner.api import RunOptions

Event = dict[str, Any]
Run = Callable[..., list[Event]]

TOOLS = """\
version: 1
name: helper
description: Helps.
system_prompt: Be brief.
model:
  provider: scripted
  id: brain
  temperature: 0.2
  max_output_tokens: 99
  options: {top_p: 0.5}
  script:
    - tool_calls:
        - {name: look, arguments: {what: the secret plan}}
        - {name: fail, arguments: {}}
        - {name: rm, arguments: {}}
      usage: {input: 10, output: 4, cache_read: 3, cache_write: 2, reasoning: 1}
    - {text: the answer, usage: {input: 20, output: 5}}
prompt: What is there?
tools:
  - name: look
    description: Look.
    parameters: {type: object, properties: {what: {type: string}}}
    command: [echo, found it]
  - {name: fail, description: Fail., command: ["false"]}
  - {name: rm, description: Remove., command: ["true"]}
hooks:
  before_tool_call:
    - {deny: {tool: rm, reason: never}}
expect:
  - contains: answer
"""


class Told:
    """The spans and metrics that a `Telemetry` made."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.reader = InMemoryMetricReader()
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.tell = Telemetry(provider, meters, **options)

    def all(self, events: list[Event]) -> Told:
        for event in events:
            self.tell(event)
        self.tell.finish()
        return self

    @property
    def spans(self) -> list[ReadableSpan]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def tree(self) -> dict[str, list[str]]:
        """The paths of names, each with how it ended."""
        spans = {span.context.span_id: span for span in self.spans if span.context}

        def path(span: ReadableSpan) -> str:
            above = spans[span.parent.span_id] if span.parent else None
            return f"{path(above)} / {span.name}" if above else span.name

        found: dict[str, list[str]] = {}
        for span in self.spans:
            found.setdefault(path(span), []).append(span.status.description or "ok")
        return found

    def said(self) -> list[Any]:
        """All that does not differ from run to run."""
        spans = {span.context.span_id: span for span in self.spans if span.context}
        volatile = {"gen_ai.conversation.id", "gen_ai.response.time_to_first_chunk"}
        return [
            (
                span.name,
                span.kind,
                span.status.status_code,
                {k: v for k, v in (span.attributes or {}).items() if k not in volatile},
                [(event.name, dict(event.attributes or {})) for event in span.events],
                spans[span.parent.span_id].name if span.parent else None,
            )
            for span in self.spans
        ]

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        return [
            point for metric in metrics if metric.name == name for point in metric.data.data_points
        ]


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_run_is_an_agent_with_tasks_model_calls_and_tools(run: Run) -> None:
    told = Told().all(run(TOOLS))

    assert told.tree() == {
        "invoke_agent helper": ["ok"],
        "invoke_agent helper / task main": ["ok"],
        "invoke_agent helper / task main / chat brain": ["ok", "ok"],
        "invoke_agent helper / task main / execute_tool look": ["ok"],
        "invoke_agent helper / task main / execute_tool fail": ["tool_error"],
        "invoke_agent helper / task main / execute_tool rm": ["blocked"],
    }
    assert len({span.context.trace_id for span in told.spans if span.context}) == 1


def test_spans_have_the_attributes_of_the_conventions(run: Run) -> None:
    events = run(TOOLS)
    told = Told().all(events)
    common = {
        "gen_ai.agent.name": "helper",
        "gen_ai.conversation.id": events[0]["run_id"],
    }
    asked = {"gen_ai.provider.name": "scripted", "gen_ai.request.model": "brain"}
    first = attributes(told.named("chat brain")[0])
    assert first.pop("gen_ai.response.time_to_first_chunk") >= 0
    assert first == {
        **common,
        **asked,
        "gen_ai.operation.name": "chat",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.2,
        "gen_ai.request.max_tokens": 99,
        "gen_ai.request.top_p": 0.5,
        "gen_ai.response.model": "brain",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 15,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 1,
        "pi_run.attempt": 1,
        "pi_run.turn": 1,
    }
    assert attributes(told.one("execute_tool fail")) == {
        **common,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "fail",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Fail.",
        "gen_ai.tool.call.id": "call_2",
        "error.type": "tool_error",
        "pi_run.turn": 1,
    }
    assert attributes(told.one("invoke_agent helper")) == {
        **common,
        **asked,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": "main",
        "gen_ai.agent.description": "Helps.",
        "gen_ai.usage.input_tokens": 35,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 1,
        "pi_run.status": "ok",
        "pi_run.cost_usd": 0.0,
    }
    assert {span.kind for span in told.spans} == {SpanKind.INTERNAL}


def test_nothing_that_was_said_is_told_unless_it_is_asked_for(run: Run) -> None:
    events = run(TOOLS)
    said = ("secret plan", "found it", "What is there", "the answer", "Be brief", "never")

    def text(**options: Any) -> str:
        return "".join(span.to_json() for span in Told(**options).all(events).spans)

    assert [word for word in said if word in text()] == []
    assert [word for word in said if word not in text(content=True)] == []


def test_content_has_the_form_of_the_conventions(run: Run) -> None:
    told = Told(content=True).all(run(TOOLS))
    first, second = map(attributes, told.named("chat brain"))

    assert json.loads(first["gen_ai.system_instructions"]) == [
        {"type": "text", "content": "Be brief."}
    ]
    assert json.loads(first["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "What is there?"}]}
    ]
    whole = json.loads(second["gen_ai.input.messages"])
    assert [message["role"] for message in whole] == ["user", "assistant", "tool", "tool", "tool"]
    assert whole[1]["parts"][0] == {
        "type": "tool_call",
        "id": "call_1",
        "name": "look",
        "arguments": {"what": "the secret plan"},
    }
    (response,) = whole[2]["parts"]
    assert response["type"], response["id"] == ("tool_call_response", "call_1")
    assert response["response"].strip() == "found it"
    assert json.loads(second["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "the answer"}],
            "finish_reason": "stop",
        }
    ]
    look = attributes(told.one("execute_tool look"))
    assert json.loads(look["gen_ai.tool.call.arguments"]) == {"what": "the secret plan"}
    assert "found it" in look["gen_ai.tool.call.result"]


def test_sub_agents_are_inside_their_tasks_side_by_side(run: Run) -> None:
    told = Told().all(run("chain.yaml"))
    read = "invoke_agent chain / task read / invoke_agent reader"

    tree = told.tree()
    assert {path: len(ends) for path, ends in tree.items() if path.startswith(read)} == {
        read: 3,
        f"{read} / task main": 3,
        f"{read} / task main / chat scripted": 6,
        f"{read} / task main / execute_tool count_words": 3,
    }
    owners = [span.parent.span_id for span in told.named("invoke_agent reader") if span.parent]
    assert len(set(owners)) == 3
    ids = [attributes(span)["gen_ai.agent.id"] for span in told.named("invoke_agent reader")]
    assert sorted(ids) == ["main/reader#1", "main/reader#2", "main/reader#3"]
    assert len(tree["invoke_agent chain / task judge / invoke_agent judge"]) == 1


AGENT_TOOLS = """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls:
        - {name: slow, arguments: {}}
        - {name: quick, arguments: {}}
    - text: Done.
prompt: Ask both.
tools:
  - {agent: ./slow.yaml}
  - {agent: ./quick.yaml}
"""
ASKED = """\
version: 1
description: Answers.
model: {provider: scripted, script: [{text: yes, delay: %s, usage: {input: 2, output: 3}}]}
prompt: Well?
"""


def test_an_agent_that_is_a_tool_is_inside_its_own_call(run: Run, tmp_path: Any) -> None:
    (tmp_path / "slow.yaml").write_text(ASKED % "0.05", encoding="utf-8")
    (tmp_path / "quick.yaml").write_text(ASKED % "0", encoding="utf-8")
    told = Told().all(run(AGENT_TOOLS))

    for name in ("slow", "quick"):
        path = f"invoke_agent spec / task main / execute_tool {name} / invoke_agent {name}"
        assert told.tree()[path] == ["ok"]
        assert attributes(told.one(f"invoke_agent {name}"))["gen_ai.usage.input_tokens"] == 2
    assert attributes(told.one("invoke_agent spec"))["gen_ai.usage.output_tokens"] == 6


RETRIES = """\
version: 1
model:
  provider: scripted
  retry: {attempts: 3, max_delay: 0.001}
  script:
    - {error: the secret reason, status: 503}
    - {text: half of it, error: gone, status: 429}
    - {text: whole}
prompt: Hello
"""


def test_each_attempt_is_a_model_call_and_a_retry_an_event_of_the_one_that_failed(
    run: Run,
) -> None:
    told = Told().all(run(RETRIES))
    chats = told.named("chat scripted")

    assert [attributes(span)["pi_run.attempt"] for span in chats] == [1, 2, 3]
    kinds = [attributes(span).get("error.type") for span in chats]
    assert kinds == ["_OTHER", "rate_limit", None]
    assert [[event.name for event in span.events] for span in chats] == [
        ["pi_run.model_retry"],
        ["pi_run.model_retry"],
        [],
    ]
    assert chats[0].status.status_code is StatusCode.ERROR
    assert "secret" not in "".join(span.to_json() for span in chats)


FAILED = """\
version: 1
model: {provider: scripted, script: [{error: no key, status: 401}]}
prompt: Hello
"""


def test_an_error_is_told_by_its_kind_all_the_way_up(run: Run) -> None:
    tree = Told().all(run(FAILED)).tree()

    assert tree == {
        "invoke_agent spec": ["error"],
        "invoke_agent spec / task main": ["error"],
        "invoke_agent spec / task main / chat scripted": ["auth"],
    }
    words = Told(content=True).all(run(FAILED)).one("chat scripted").status.description
    assert words is not None
    assert "no key" in words


def test_limits_and_expectations_are_events_of_the_run(run: Run) -> None:
    told = Told().all(run(TOOLS.replace("contains: answer", "contains: question")))
    (event,) = told.one("invoke_agent helper").events
    assert event.name == "gen_ai.evaluation.result"
    assert dict(event.attributes or {}) == {
        "gen_ai.evaluation.name": "contains",
        "gen_ai.evaluation.score.label": "fail",
        "pi_run.task.id": "main",
    }
    limited = Told().all(run(TOOLS + "limits: {turns: 1}\n"))
    (event,) = limited.one("invoke_agent helper").events
    assert event.name == "pi_run.limit_reached"
    assert limited.one("invoke_agent helper").status.description == "limit"


@pytest.mark.parametrize("spec", ["chain.yaml", "parallel_tools.yaml", "steering.yaml", TOOLS])
def test_a_run_gives_the_same_spans_live_and_from_its_log(run: Run, spec: str) -> None:
    events = run(spec)
    live, later = Told(content=True), Told(content=True).all(events)
    for event in events:
        live.tell(event)

    assert live.said() == later.said()


def test_a_listener_gets_what_the_log_gets(run: Run, tmp_path: Any) -> None:
    live, log = Told(content=True), tmp_path / "live.jsonl"
    (tmp_path / "spec.yaml").write_text(TOOLS, encoding="utf-8")
    run_spec(tmp_path / "spec.yaml", on_event=live.tell, options=RunOptions(log=str(log)))
    lines = log.read_text(encoding="utf-8").splitlines()
    later = Told(content=True).all(list(map(json.loads, lines)))

    def exact(told: Told) -> list[Any]:
        return [(s.name, s.start_time, s.end_time, attributes(s)) for s in told.spans]

    assert sorted(map(repr, exact(live))) == sorted(map(repr, exact(later)))


def test_a_run_is_a_part_of_the_span_around_it() -> None:
    told = Told()
    provider = TracerProvider(shutdown_on_exit=False)
    with provider.get_tracer("test").start_as_current_span("around") as around:
        inside = Told()
    start = {
        "seq": 0,
        "t": 0.0,
        "type": "run_start",
        "started_at": "2026-01-02T03:04:05.678Z",
        "spec": {"name": "x", "sha256": ""},
        "plan": {},
        "inputs": {},
    }
    inside.all([start])
    told.all([start])

    assert told.one("invoke_agent x").parent is None
    parent = inside.one("invoke_agent x").parent
    assert parent is not None
    assert parent.span_id == around.get_span_context().span_id
    assert told.one("invoke_agent x").start_time == 1767323045678000000


def test_what_never_ended_ends_as_unfinished_where_it_was_last_seen(run: Run) -> None:
    events = run("parallel_tools.yaml")
    cut = next(n for n, e in enumerate(events) if e["type"] == "tool_execution_end") + 1
    told = Told().all(events[:cut])

    tree = told.tree()
    call = "invoke_agent parallel_tools / task main / execute_tool wait"
    assert sorted(tree[call]) == ["ok", "unfinished", "unfinished"]
    assert tree["invoke_agent parallel_tools"] == ["unfinished"]
    assert max(span.end_time or 0 for span in told.spans) == told.tell.times[1]
    assert told.points("gen_ai.execute_tool.duration")[0].count == 1


@pytest.mark.parametrize("spec", ["chain.yaml", TOOLS])
def test_every_beginning_of_a_log_gives_whole_spans(run: Run, spec: str) -> None:
    events = [event for event in run(spec) if event["type"] != "message_update"]
    for cut in range(1, len(events)):
        spans = Told().all(events[:cut]).spans
        ids = {span.context.span_id for span in spans if span.context}
        assert all(span.parent is None or span.parent.span_id in ids for span in spans)


@pytest.mark.parametrize("spec", ["chain.yaml", TOOLS])
def test_a_log_that_lacks_a_line_gives_whole_spans_too(run: Run, spec: str) -> None:
    events = [event for event in run(spec) if event["type"] != "message_update"]
    for left_out in range(1, len(events)):
        spans = Told(content=True).all(events[:left_out] + events[left_out + 1 :]).spans
        ids = {span.context.span_id for span in spans if span.context}
        assert all(span.parent is None or span.parent.span_id in ids for span in spans)


def test_a_run_that_went_on_after_its_end_has_two_spans_that_are_linked(run: Run) -> None:
    events = run(TOOLS)
    again = [
        {"seq": 900, "t": events[-1]["t"], "type": "run_resume", "at_seq": 0, "reason": "limit"},
        {
            "seq": 901,
            "t": events[-1]["t"] + 1,
            "type": "task_start",
            "task_id": "x",
            "iteration": 1,
        },
    ]
    told = Told().all(events + again)
    first, second = told.named("invoke_agent helper")

    assert second.parent is None
    assert second.links[0].context == first.context
    assert attributes(second)["pi_run.resume"] == "limit"
    assert told.tree()["invoke_agent helper / task x"] == ["unfinished"]


def test_a_run_that_went_on_after_a_kill_is_one_span(run: Run) -> None:
    events = run(TOOLS)
    cut = next(n for n, e in enumerate(events) if e["type"] == "tool_execution_start") + 1
    resume = {"seq": cut, "t": events[cut]["t"], "type": "run_resume", "reason": "killed"}
    told = Told().all([*events[:cut], resume, *events[cut:]])

    assert told.one("invoke_agent helper").events[0].name == "pi_run.resume"
    assert told.tree()["invoke_agent helper / task main / execute_tool look"] == ["ok"]


def test_metrics_count_tokens_and_seconds(run: Run) -> None:
    told = Told().all(run(TOOLS))
    data = told.points("gen_ai.client.token.usage")
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "brain",
        "gen_ai.response.model": "brain",
    }
    tokens = {point.attributes["gen_ai.token.type"]: point for point in data}
    assert tokens["input"].sum, tokens["input"].count == (35, 2)
    assert dict(tokens["output"].attributes) == {**model, "gen_ai.token.type": "output"}
    assert tokens["output"].explicit_bounds[:3] == (1, 4, 16)


def test_a_log_s_odd_values_are_told_as_they_can_be(run: Run) -> None:
    events = run(TOOLS)
    odd = {
        "task_id": "\ud800",
        "iteration": 10**30,
        "item": {"a": float("inf")},
        "type": "task_start",
        "t": 1e30,
    }
    told = Told(content=True).all([*events[:3], odd, *events[3:]])

    (span,) = [span for span in told.spans if "�" in span.name]
    assert attributes(span)["pi_run.task.iteration"] == "1" + "0" * 19
    assert span.to_json()


def test_an_agent_of_one_s_own_is_a_span_each_time_it_is_asked() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    call = {"name": "add", "arguments": {"a": 2, "b": 3}}
    script = [{"tool_calls": [call]}, {"text": "five"}, {"text": "welcome"}]
    told = Told()

    async def ask() -> None:
        tools = [from_function(add)]
        agent = Agent(AgentOptions(model=model("scripted", script=script), tools=tools))
        agent.subscribe(told.tell)
        await agent.prompt("2 + 3?")
        await agent.prompt("Thanks.")

    asyncio.run(ask())

    assert told.tree() == {
        "invoke_agent main": ["ok", "ok"],
        "invoke_agent main / chat scripted": ["ok", "ok", "ok"],
        "invoke_agent main / execute_tool add": ["ok"],
    }
