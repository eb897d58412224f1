"""OTLP over HTTP: providers of OpenTelemetry that send to a collector, for the command.

The standard variables (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_EXPORTER_OTLP_HEADERS``,
``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_TRACES_SAMPLER`` …) hold as for any program with the SDK.
Importing this imports the SDK.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from runner.telemetry import names
from runner.telemetry.span import Span

FLUSH_SECONDS = 3.0
"""How long the end of a run waits for what is not sent yet."""
BATCH = 128
"""Spans of an old log that are sent at once."""
DEFAULT = "http://localhost:4318"


class RunIds(IdGenerator):
    """Ids made of the run's own: what is sent twice, live and from its log, is the same trace."""

    def __init__(self) -> None:
        self._run = self._span = ""

    def announce(self, span: Span) -> None:
        """The span that is made next."""
        self._run = str(span.attributes.get(names.CONVERSATION, ""))
        self._span = f"{self._run}:{span.seq}"

    def generate_trace_id(self) -> int:
        """The run's."""
        return _number(self._run, 16)

    def generate_span_id(self) -> int:
        """The announced span's."""
        return _number(self._span, 8)


class _Unreachable(Exception):  # noqa: N818 - it says what is the case, for the SDK's own log
    """The collector can't be talked to, and there is no use in trying it again and again."""


class _Session(requests.Session):
    """Keeps why something could not be sent."""

    problem: str | None = None

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        try:
            response = self._send(request, **kwargs)
        except requests.Timeout:
            self.problem = "it does not answer"
            raise _Unreachable(self.problem) from None
        except requests.RequestException as error:
            self.problem = _reason(error)
            raise _Unreachable(self.problem) from None
        if not response.ok:
            self.problem = f"it answered {response.status_code} {response.reason}"
        return response

    def _send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        try:
            return super().send(request, **kwargs)
        except requests.Timeout:
            raise
        except requests.ConnectionError:
            # One that was kept open may have ended meanwhile.
            return super().send(request, **kwargs)


class _Counted(SpanExporter):
    """An exporter of spans, and how many it sent."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self.sent = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


class _Ended(SpanProcessor):
    """Counts the spans that ended."""

    count = 0

    def on_end(self, span: ReadableSpan) -> None:
        self.count += 1


class _AtOnce(SpanProcessor):
    """Sends spans in this thread, many at once: none is lost, and few are held."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._held: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._held.append(span)
        if len(self._held) >= BATCH:
            self.force_flush()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        held, self._held = self._held, []
        return not held or self._exporter.export(held) is SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.force_flush()
        self._exporter.shutdown()


class _Metrics(OTLPMetricExporter):
    """An exporter of metrics: those of an old log at the log's times."""

    failed = False
    times: tuple[int, int] | None = None
    """When the run of an old log began and ended, in nanoseconds since 1970."""

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        if self.times is not None:
            metrics_data = _timed(metrics_data, *self.times)
        result = super().export(metrics_data, timeout_millis, **kwargs)
        self.failed = self.failed or result is not MetricExportResult.SUCCESS
        return result


class Collector:
    """Where the spans and metrics of one run go.

    Args:
        endpoint: The collector's address, without a signal's path; None for what the standard
            variables say.
        live: Whether a run goes on meanwhile, which nothing here may hold up: spans are sent by a
            thread, from a queue that has a bound. Else they are sent as they come.
        environ: The environment.
    """

    def __init__(
        self, endpoint: str | None, *, live: bool, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.endpoint = _shown(endpoint or _configured(environ))
        self._session = _Session()
        self._ids = RunIds()
        self.announce = self._ids.announce
        self._live = live
        self._quiet = _Quiet()
        self._ended = _Ended()
        self._exporter: _Counted | None = None
        self._metrics: _Metrics | None = None
        resource = _resource(environ)
        self.tracer_provider = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        self._add_traces(endpoint, environ)
        readers = self._readers(endpoint, environ)
        self.meter_provider = MeterProvider(readers, resource, shutdown_on_exit=False)

    def _add_traces(self, endpoint: str | None, environ: Mapping[str, str]) -> None:
        if environ.get("OTEL_TRACES_EXPORTER") == "none":
            return
        url = None if endpoint is None else f"{endpoint}/v1/traces"
        self._exporter = _Counted(OTLPSpanExporter(url, session=self._session))
        sender = BatchSpanProcessor if self._live else _AtOnce
        self.tracer_provider.add_span_processor(self._ended)
        self.tracer_provider.add_span_processor(sender(self._exporter))

    def _readers(
        self, endpoint: str | None, environ: Mapping[str, str]
    ) -> list[PeriodicExportingMetricReader]:
        if environ.get("OTEL_METRICS_EXPORTER") == "none":
            return []
        url = None if endpoint is None else f"{endpoint}/v1/metrics"
        self._metrics = _Metrics(url, session=self._session)
        interval = None if self._live else float("inf")
        return [PeriodicExportingMetricReader(self._metrics, interval)]

    @property
    def sent(self) -> int:
        """How many spans the collector took."""
        return 0 if self._exporter is None else self._exporter.sent

    @property
    def problem(self) -> str | None:
        """Why it does not take what is sent, if it does not."""
        return self._session.problem

    def at(self, start: int, end: int) -> None:
        """Say when the run was that an old log tells of, in nanoseconds since 1970."""
        if self._metrics is not None:
            self._metrics.times = (start, end)

    def close(self) -> str | None:
        """Send what is left; gives what could not be sent, in words.

        Of a live run no longer than `FLUSH_SECONDS`.
        """
        closing = threading.Thread(target=self._shut_down, name="pi-run-telemetry", daemon=True)
        closing.start()
        closing.join(FLUSH_SECONDS if self._live else None)
        late = closing.is_alive()
        lost = 0 if self._exporter is None else self._ended.count - self._exporter.sent
        metrics = self._metrics is not None and self._metrics.failed
        if not (late or lost or metrics):
            return None
        what = "metrics" if not lost else "1 span" if lost == 1 else f"{lost} spans"
        why = self.problem or ("it did not take them in time" if late else "the queue was full")
        return f"{what} could not be sent to {self.endpoint}: {why}"

    def _shut_down(self) -> None:
        steps: list[Callable[[], object]] = [self.tracer_provider.shutdown]
        if not self._live:
            # Without an interval the end of its reader is no reason for it to send.
            steps.append(self.meter_provider.force_flush)
        for step in (*steps, self.meter_provider.shutdown):
            # Versions of the SDK differ in what they raise; what was not sent is counted here.
            with suppress(Exception):
                step()
        self._quiet.end()


class _Quiet:
    """Keeps what the SDK logs off stderr, where nothing is set up for it: `Collector` tells it."""

    def __init__(self) -> None:
        self._logger = logging.getLogger("opentelemetry")
        self._handler = logging.NullHandler()
        self._logger.addHandler(self._handler)
        self._propagate, self._logger.propagate = self._logger.propagate, False

    def end(self) -> None:
        self._logger.removeHandler(self._handler)
        self._logger.propagate = self._propagate


def parent_of(environ: Mapping[str, str]) -> Context:
    """What a run is a part of, by ``TRACEPARENT`` and ``TRACESTATE``: a CI's job, for example."""
    keys = {"traceparent": "TRACEPARENT", "tracestate": "TRACESTATE"}
    carrier = {key: environ[name] for key, name in keys.items() if name in environ}
    return TraceContextTextMapPropagator().extract(carrier, Context())


def _resource(environ: Mapping[str, str]) -> Resource:
    """What the telemetry is of: pi-run, where the environment has no other name."""
    named = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return Resource.create({} if named else {"service.name": "pi-run"})


def _configured(environ: Mapping[str, str]) -> str:
    keys = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return next((environ[key] for key in keys if environ.get(key)), DEFAULT)


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _reason(error: BaseException) -> str:
    """Why a connection failed, in few words."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.strerror:
            return seen.strerror.lower()
        inner = getattr(seen, "reason", None) or (seen.args[0] if seen.args else None)
        seen = inner if isinstance(inner, BaseException) else seen.__cause__ or seen.__context__
    return "it can't be reached"


def _number(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size]) or 1


def _timed(data: MetricsData, start: int, end: int) -> MetricsData:
    """Metrics with all their points at these times."""

    def timed(point: Any) -> Any:
        return dataclasses.replace(point, start_time_unix_nano=start, time_unix_nano=end)

    def again(value: Any, key: str, change: Any) -> Any:
        return dataclasses.replace(value, **{key: [change(one) for one in getattr(value, key)]})

    def of_metric(metric: Any) -> Any:
        return dataclasses.replace(metric, data=again(metric.data, "data_points", timed))

    def of_scope(scope: Any) -> Any:
        return again(scope, "metrics", of_metric)

    whole: MetricsData = again(
        data, "resource_metrics", lambda one: again(one, "scope_metrics", of_scope)
    )
    return whole
