"""OTLP over HTTP: providers of OpenTelemetry that send to a collector, for the command.

The standard variables (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_EXPORTER_OTLP_HEADERS``,
``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_TRACES_SAMPLER`` …) hold as for any program with the SDK.
Importing this imports the SDK.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from runner.error import UsageError, describe
from runner.telemetry.exporters import AtOnce, Counted, Ended, Metrics, RunIds, Session

FLUSH_SECONDS = 3.0
"""How long the end of a run waits for what is not sent yet."""
DEFAULT = "http://localhost:4318"


class Collector:
    """Where the spans and metrics of one run go.

    Args:
        endpoint: The collector's address, without a signal's path; None for what the standard
            variables say.
        live: Whether a run goes on meanwhile, which nothing here may hold up: spans are sent by a
            thread, from a queue that has a bound. Else they are sent as they come.
        environ: The environment.

    Raises:
        UsageError: where it can't be set up like that.
    """

    def __init__(
        self, endpoint: str | None, *, live: bool, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.endpoint = _shown(endpoint or _configured(environ))
        self._session = Session()
        self._ids = RunIds()
        self.announce = self._ids.announce
        self._live = live
        self._quiet = _Quiet()
        self._ended = Ended()
        self._exporter: Counted | None = None
        self._metrics: Metrics | None = None
        try:
            self._set_up(endpoint, environ)
        except Exception as error:
            self._quiet.end()
            raise UsageError(
                f"telemetry can't be set up: {describe(error)}; look at the OTEL_ variables"
            ) from error

    def _set_up(self, endpoint: str | None, environ: Mapping[str, str]) -> None:
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
        self._exporter = Counted(OTLPSpanExporter(url, session=self._session))
        sender = BatchSpanProcessor if self._live else AtOnce
        self.tracer_provider.add_span_processor(self._ended)
        self.tracer_provider.add_span_processor(sender(self._exporter))

    def _readers(
        self, endpoint: str | None, environ: Mapping[str, str]
    ) -> list[PeriodicExportingMetricReader]:
        if environ.get("OTEL_METRICS_EXPORTER") == "none":
            return []
        url = None if endpoint is None else f"{endpoint}/v1/metrics"
        self._metrics = Metrics(url, session=self._session)
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
    if not parts.netloc:
        return parts.path.rpartition("@")[2]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
