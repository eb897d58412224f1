"""What sends spans and metrics by OTLP, and counts them. Importing this imports the SDK."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator

from runner.error import describe
from runner.telemetry import names
from runner.telemetry.span import Span

BATCH = 128
"""Spans of an old log that are sent at once."""


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


class Session(requests.Session):
    """Keeps why something could not be sent."""

    problem: str | None = None

    def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
        """Ask; a server that can't be talked to is no reason to wait for it."""
        try:
            response = self._twice(method, url, *args, **kwargs)
        except requests.Timeout:
            self.problem = "it does not answer"
        except requests.ConnectionError as error:
            self.problem = _reason(error)
        except requests.RequestException:
            self.problem = "this is no address of a server"
        except OSError as error:  # of a certificate's file
            self.problem = describe(error)[:200]
        else:
            if not response.ok:
                self.problem = f"it answered {response.status_code} {response.reason}"
            return response
        raise _Unreachable(self.problem)

    def _twice(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
        try:
            return super().request(method, url, *args, **kwargs)
        except requests.Timeout:
            raise
        except requests.ConnectionError:
            # One that was kept open may have ended meanwhile.
            return super().request(method, url, *args, **kwargs)


class Counted(SpanExporter):
    """An exporter of spans, and how many it sent."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self.sent = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send them."""
        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        return result

    def shutdown(self) -> None:
        """Send no more."""
        self._inner.shutdown()


class Ended(SpanProcessor):
    """Counts the spans that ended."""

    count = 0

    def on_end(self, span: ReadableSpan) -> None:
        """One ended."""
        self.count += 1


class AtOnce(SpanProcessor):
    """Sends spans in this thread, many at once: none is lost, and few are held."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._held: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """One ended."""
        self._held.append(span)
        if len(self._held) >= BATCH:
            self.force_flush()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what is held."""
        held, self._held = self._held, []
        return not held or self._exporter.export(held) is SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Send no more."""
        self.force_flush()
        self._exporter.shutdown()


class Metrics(OTLPMetricExporter):
    """An exporter of metrics: those of an old log at the log's times."""

    failed = False
    times: tuple[int, int] | None = None
    """When the run of an old log began and ended, in nanoseconds since 1970."""

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Send them."""
        if self.times is not None:
            metrics_data = _timed(metrics_data, *self.times)
        result = super().export(metrics_data, timeout_millis, **kwargs)
        self.failed = self.failed or result is not MetricExportResult.SUCCESS
        return result


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
