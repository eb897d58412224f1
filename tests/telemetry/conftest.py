from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from runner import run_spec
from runner.api import RunOptions

Event = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Collected:
    """What came over the wire, as its protobuf messages say it."""

    endpoint: str
    spans: list[Any] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    resources: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: int = 200
    """With what it answers."""
    silent: bool = False
    """Whether it takes a request and never answers."""

    def take(self, path: str, body: bytes) -> bytes:
        if path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body)
            for resource in traces.resource_spans:
                self.resources.append(self.attributes(resource.resource))
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            return bytes(ExportTraceServiceResponse().SerializeToString())
        assert path == "/v1/metrics"
        metrics = ExportMetricsServiceRequest.FromString(body)
        for resource in metrics.resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics.update({metric.name: metric for metric in scope.metrics})
        return bytes(ExportMetricsServiceResponse().SerializeToString())

    @staticmethod
    def attributes(span: Any) -> dict[str, Any]:
        """The attributes of a span, a point or a resource, as Python's values."""

        def value(one: Any) -> Any:
            kind = one.WhichOneof("value")
            if kind == "array_value":
                return [value(each) for each in one.array_value.values]
            return getattr(one, kind)

        return {one.key: value(one.value) for one in span.attributes}

    def tree(self) -> list[tuple[str, str | None]]:
        """Each span's name with its parent's, in the order in which they began."""
        names = {span.span_id: span.name for span in self.spans}
        spans = sorted(self.spans, key=lambda span: span.start_time_unix_nano)
        return [(span.name, names.get(span.parent_span_id)) for span in spans]


@pytest.fixture
def collector() -> Iterator[Collected]:
    """A collector for OTLP over HTTP that listens on a port of its own."""
    done = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collected.headers.append(dict(self.headers))
            if collected.silent:
                done.wait(30)
                return
            answer = collected.take(self.path, body) if collected.status == 200 else b""
            self.send_response(collected.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        collected = Collected(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield collected
        done.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., list[Event]]:
    """Runs a spec, given as text or by its name among the examples; gives its log's events."""

    def run(spec: str, **flags: Any) -> list[Event]:
        path = ROOT / "specs" / spec
        if "\n" in spec:
            path = tmp_path / "spec.yaml"
            path.write_text(spec, encoding="utf-8")
        log = tmp_path / "log.jsonl"
        run_spec(path, options=RunOptions(log=str(log), **flags))
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    return run
