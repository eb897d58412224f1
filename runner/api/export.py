"""Traces of old logs, and of runs while they go on, for others' tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runner.api.options import OnEvent
from runner.error import LogError, UsageError, named
from runner.telemetry.listener import Telemetry, need_opentelemetry

Warn = Callable[[str], None]
"""Takes a sentence for the user."""


def chrome_trace(log: str | Path, *, content: bool = False, warn: Warn) -> Iterator[str]:
    """A log as a trace that Perfetto and Chrome open, piece by piece, in constant memory.

    Args:
        log: The log's path.
        content: Whether what was said is in it too.
        warn: Is told of a torn tail.

    Raises:
        UsageError: where the log has no times.
        LogError: where it can't be read.
    """
    from runner.log.read import read
    from runner.telemetry.chrome import HEAD, TAIL, Chrome
    from runner.telemetry.trace import Trace

    chrome = Chrome()
    trace = Trace([chrome], content=content)
    before = HEAD
    for _, event in read(log, warn):
        _told(trace.event, event, log)
        for line in chrome.take():
            yield before + line
            before = ",\n"
    trace.finish()
    for line in chrome.take():
        yield before + line
        before = ",\n"
    yield TAIL


def send(log: str | Path, endpoint: str | None, *, content: bool = False, warn: Warn) -> str:
    """Send a log's spans and metrics to a collector, at the log's times; gives what was sent.

    Args:
        log: The log's path.
        endpoint: The collector's address; None for what ``OTEL_EXPORTER_OTLP_ENDPOINT`` says.
        content: Whether what was said is sent too.
        warn: Is told of a torn tail.

    Raises:
        UsageError: where the log has no times, or OpenTelemetry is not installed.
        LogError: where the log can't be read, or the collector does not take what is sent.
    """
    need_opentelemetry()
    from opentelemetry.context import Context

    from runner.log.read import read
    from runner.telemetry.otlp import Collector

    collector = Collector(endpoint, live=False)
    telemetry = Telemetry(
        collector.tracer_provider,
        collector.meter_provider,
        content=content,
        context=Context(),
        announce=collector.announce,
    )
    try:
        for _, event in read(log, warn):
            _told(telemetry, event, log)
            if collector.problem is not None and not collector.sent:
                break
        telemetry.finish()
        collector.at(*telemetry.times)
    finally:
        problem = collector.close()
    if problem is not None:
        raise LogError(problem)
    return f"{collector.sent} spans sent to {collector.endpoint}"


@contextmanager
def telling(
    endpoint: str | None,
    *,
    content: bool = False,
    warn: Warn,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[OnEvent]:
    """Something that tells a run's events to a collector while the run goes on.

    It neither fails a run nor holds it up; what could not be sent is told at the end.

    Args:
        endpoint: The collector's address; None for what ``OTEL_EXPORTER_OTLP_ENDPOINT`` says.
        content: Whether what was said is sent too.
        warn: Is told, once, what could not be sent.
        environ: Has ``TRACEPARENT``, where the run is a part of something.

    Raises:
        UsageError: where OpenTelemetry is not installed.
    """
    need_opentelemetry()
    from runner.telemetry.otlp import Collector, parent_of

    collector = Collector(endpoint, live=True, environ=environ)
    telemetry = Telemetry(
        collector.tracer_provider,
        collector.meter_provider,
        content=content,
        context=parent_of(environ),
        announce=collector.announce,
    )
    faults: list[str] = []

    def tell(event: Mapping[str, Any]) -> None:
        try:
            if not faults:
                telemetry(event)
        except Exception as error:  # whatever it is, the run goes on without it
            faults.append(f"it was given up: {named(error)}")

    try:
        yield tell
    finally:
        # Of a run that could not be brought to its end, what it had begun is told too.
        telemetry.finish()
        problem = collector.close()
        for told in (*faults, problem) if problem is not None else faults:
            warn(f"telemetry: {told}")


def _told(tell: Callable[[Any], None], event: Mapping[str, Any], log: str | Path) -> None:
    """Tell an event; what is wrong with it is wrong with the log."""
    try:
        tell(event)
    except UsageError as error:
        raise UsageError(f"{log}: {error}") from None
