"""Over a real wire: what a collector gets, and what becomes of a run without one."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner import run_spec
from runner.api import RunOptions
from runner.api.export import send, telling
from runner.error import LogError, UsageError
from runner.telemetry import otlp

Event = dict[str, Any]
Run = Callable[..., list[Event]]

SPEC = """\
version: 1
name: wired
model:
  provider: scripted
  script:
    - tool_calls: [{name: look, arguments: {what: the plan}}]
      usage: {input: 5, output: 3}
    - {text: done, usage: {input: 9, output: 1}}
prompt: Look.
tools:
  - name: look
    description: Look.
    parameters: {type: object, properties: {what: {type: string}}}
    command: [echo, found]
"""


OUTSIDE = ("TRACEPARENT", "TRACESTATE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of OpenTelemetry, nor a proxy, from outside."""
    for name in os.environ:
        if name.startswith("OTEL_") or name in OUTSIDE:
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def no_warning(text: str) -> None:
    raise AssertionError(text)


def live(folder: Path, endpoint: str | None, warnings: list[str], **more: Any) -> Path:
    """Run the spec while it is told; gives its log."""
    (folder / "wired.yaml").write_text(SPEC, encoding="utf-8")
    log = folder / "live.jsonl"
    with telling(endpoint, warn=warnings.append, **more) as on_event:
        options = RunOptions(log=str(log))
        result = run_spec(folder / "wired.yaml", on_event=on_event, options=options)
    assert result.status == "ok"
    return log


TREE = [
    ("invoke_agent wired", None),
    ("task main", "invoke_agent wired"),
    ("chat scripted", "task main"),
    ("execute_tool look", "task main"),
    ("chat scripted", "task main"),
]


def test_a_collector_gets_the_spans_of_a_run(collector: Any, tmp_path: Path) -> None:
    warnings: list[str] = []
    live(tmp_path, collector.endpoint, warnings)

    assert warnings == []
    assert sorted(collector.tree(), key=str) == sorted(TREE, key=str)
    assert collector.resources[0]["service.name"] == "pi-run"
    (tool,) = [span for span in collector.spans if span.name == "execute_tool look"]
    assert collector.attributes(tool)["gen_ai.tool.name"] == "look"
    assert "plan" not in str(collector.spans)


def test_a_collector_gets_the_metrics_of_a_run(collector: Any, tmp_path: Path) -> None:
    live(tmp_path, collector.endpoint, [])

    tokens = collector.metrics["gen_ai.client.token.usage"]
    assert tokens.unit == "{token}"
    counted = {
        collector.attributes(point)["gen_ai.token.type"]: (point.sum, point.count)
        for point in tokens.histogram.data_points
    }
    assert counted == {"input": (14, 2), "output": (4, 2)}
    (seconds,) = collector.metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert list(seconds.explicit_bounds)[:2] == [0.01, 0.02]
    assert collector.metrics["gen_ai.client.operation.duration"].unit == "s"


def test_a_log_gives_the_same_trace_as_its_run_did(collector: Any, tmp_path: Path) -> None:
    log = live(tmp_path, collector.endpoint, [], content=True)

    def told() -> list[Any]:
        spans = sorted(collector.spans, key=lambda span: span.span_id)
        return [span.SerializeToString() for span in spans]

    before, points = told(), dict(collector.metrics)
    collector.spans.clear()
    collector.metrics.clear()
    sent = send(log, collector.endpoint, content=True, warn=no_warning)

    assert sent == f"5 spans sent to {collector.endpoint}"
    assert told() == before
    assert "plan" in str(collector.spans)
    for name, metric in points.items():
        again = collector.metrics[name]
        assert [p.sum for p in again.histogram.data_points] == [
            p.sum for p in metric.histogram.data_points
        ]


def test_metrics_of_a_log_have_its_times(collector: Any, tmp_path: Path) -> None:
    log = live(tmp_path, collector.endpoint, [])
    text = log.read_text(encoding="utf-8")
    started = json.loads(text.partition("\n")[0])["started_at"]
    log.write_text(text.replace(started, "2026-01-02T03:04:05.000Z", 1), encoding="utf-8")
    send(log, collector.endpoint, warn=no_warning)

    began = 1767323045_000_000_000
    (point,) = collector.metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert point.start_time_unix_nano == began
    assert began < point.time_unix_nano < began + 60_000_000_000
    assert min(span.start_time_unix_nano for span in collector.spans[5:]) == began


def test_a_run_is_a_part_of_what_traceparent_says(collector: Any, tmp_path: Path) -> None:
    environ = {"TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    live(tmp_path, collector.endpoint, [], environ=environ)

    (root,) = [span for span in collector.spans if span.name == "invoke_agent wired"]
    assert root.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert root.parent_span_id.hex() == "b7ad6b7169203331"


def test_a_traceparent_that_is_none_is_let_be(collector: Any, tmp_path: Path) -> None:
    live(tmp_path, collector.endpoint, [], environ={"TRACEPARENT": "nonsense"})

    assert ("invoke_agent wired", None) in collector.tree()


def test_the_standard_variables_configure_what_is_not_said(
    collector: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "ours")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    live(tmp_path, None, [])

    assert len(collector.spans) == 5
    assert collector.metrics == {}
    assert collector.headers[0]["x-key"] == "abc"
    assert collector.headers[0]["Content-Encoding"] == "gzip"
    resource = collector.resources[0]
    assert (resource["service.name"], resource["team"]) == ("ours", "a")


def test_a_dead_collector_costs_one_warning(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    warnings: list[str] = []
    live(tmp_path, "http://user:secret@127.0.0.1:1", warnings)

    assert warnings == [
        "telemetry: 5 spans could not be sent to http://127.0.0.1:1: connection refused"
    ]
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("opentelemetry").propagate


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_collector_that_refuses_costs_one_warning(
    collector: Any, tmp_path: Path, status: int
) -> None:
    collector.status = status
    warnings: list[str] = []
    live(tmp_path, collector.endpoint, warnings)

    (warning,) = warnings
    assert f"it answered {status}" in warning


def test_a_collector_that_never_answers_holds_a_run_up_no_longer_than_it_may(
    collector: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "FLUSH_SECONDS", 0.2)
    collector.silent = True
    warnings: list[str] = []
    live(tmp_path, collector.endpoint, warnings)

    (warning,) = warnings
    assert "it did not take them in time" in warning


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "me:pass@nowhere", "to nowhere: this is no address"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1", "connection refused"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://nowhere.invalid", "could not be sent to"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem", "/nowhere.pem"),
    ],
)
def test_a_setting_that_can_t_work_costs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1")
    monkeypatch.setenv(name, value)
    warnings: list[str] = []
    live(tmp_path, None, warnings)

    (warning,) = warnings
    assert told in warning


def test_a_setting_that_the_sdk_refuses_is_told_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")

    with pytest.raises(UsageError, match=r"telemetry can't be set up: .*OTEL_"):
        live(tmp_path, "http://127.0.0.1:1", [])


def test_what_telling_breaks_on_ends_the_telling_alone(collector: Any) -> None:
    warnings: list[str] = []
    with telling(collector.endpoint, warn=warnings.append) as on_event:
        on_event({"type": "run_start"})
        on_event({"type": "run_start"})

    (warning,) = warnings
    assert "it was given up" in warning


def test_an_old_log_that_can_t_be_sent_is_an_error(collector: Any, tmp_path: Path) -> None:
    log = live(tmp_path, collector.endpoint, [])

    with pytest.raises(LogError, match=r"5 spans could not be sent to .*: connection refused"):
        send(log, "http://127.0.0.1:1", warn=no_warning)
    collector.status = 401
    with pytest.raises(LogError, match="it answered 401 Unauthorized"):
        send(log, collector.endpoint, warn=no_warning)


def test_a_canonical_log_has_no_times_to_send(collector: Any, run: Run, tmp_path: Path) -> None:
    run(SPEC, frozen=True)

    with pytest.raises(UsageError, match=r"log\.jsonl: a canonical log has no times"):
        send(tmp_path / "log.jsonl", collector.endpoint, warn=no_warning)
    assert collector.spans == []


def test_a_long_log_is_sent_in_pieces(collector: Any, run: Run, tmp_path: Path) -> None:
    events = run(SPEC)
    path = tmp_path / "long.jsonl"
    calls = [event for event in events if event["type"].startswith("tool_execution_")]
    made = [*events[:3], *(calls * 300)]
    lines = [json.dumps({**event, "seq": seq}) for seq, event in enumerate(made)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    assert send(path, collector.endpoint, warn=no_warning).startswith("302 spans")
    traces = [headers for headers in collector.headers if len(collector.spans) == 302]
    assert len(traces) >= 3


def test_a_secret_in_a_call_is_in_no_span(
    collector: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_TOKEN", "hunter2-hunter2")
    spec = tmp_path / "secret.yaml"
    spec.write_text(
        SPEC.replace("the plan", '"{{ inputs.token }} hunter2-hunter2"')
        + "inputs: {token: {type: string, secret: true}}\n",
        encoding="utf-8",
    )
    with telling(collector.endpoint, content=True, warn=no_warning) as on_event:
        options = RunOptions(log="none", values={"token": "hunter2-hunter2"})
        run_spec(spec, on_event=on_event, options=options)

    assert "hunter2" not in str(collector.spans)
    assert len(collector.spans) == 5


def test_neither_a_run_nor_help_imports_opentelemetry(tmp_path: Path) -> None:
    (tmp_path / "wired.yaml").write_text(SPEC, encoding="utf-8")
    code = """
import sys
from runner import run_spec
from runner.cli import execute
from runner.cli.streams import Streams
for words in (["run", "--help"], ["export", "--help"], ["run", "wired.yaml", "--log", "a.jsonl"],
              ["export", "a.jsonl", "--chrome", "trace.json"]):
    assert execute(words, Streams()) == 0
print([name for name in sys.modules if name.startswith("opentelemetry")], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert done.stderr.splitlines()[-1] == "[]"


def test_without_the_extra_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry.exporter")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)

    with pytest.raises(UsageError, match=r"pip install 'pi-run\[otel\]'"):
        send(tmp_path / "none.jsonl", None, warn=no_warning)
