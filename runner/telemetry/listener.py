"""A listener that tells a run's events to OpenTelemetry, as its application has set that up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runner.error import UsageError
from runner.telemetry.trace import Trace

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from runner.telemetry.span import Span

SCOPE = "pi-run"
"""The name of what makes the spans and metrics."""


class Telemetry:
    """Tells the events of one run as spans and metrics: ``run_spec(…, on_event=Telemetry())``.

    Spans end where the current context has one, and else begin a trace; each run needs a
    `Telemetry` of its own.

    Args:
        tracer_provider: Makes the spans; by default the application's global one.
        meter_provider: Makes the metrics; by default the application's global one.
        content: Whether what was said is told too: prompts, answers, arguments and results.
        context: What the run is a part of; by default OpenTelemetry's current context.
        announce: Is called with each span before it is made.

    Raises:
        UsageError: where OpenTelemetry is not installed.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        content: bool = False,
        context: Context | None = None,
        announce: Callable[[Span], None] | None = None,
    ) -> None:
        need_opentelemetry()
        from opentelemetry.context import get_current
        from opentelemetry.metrics import get_meter
        from opentelemetry.trace import get_tracer

        from runner.telemetry.metrics import Metrics
        from runner.telemetry.spans import Spans

        tracer = get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = get_meter(SCOPE, meter_provider=meter_provider)
        parent = get_current() if context is None else context
        self._trace = Trace([Spans(tracer, parent, announce), Metrics(meter)], content=content)

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Take the next event of the run."""
        self._trace.event(event)

    @property
    def times(self) -> tuple[int, int]:
        """When the run began and the latest event was, in nanoseconds since 1970."""
        return self._trace.times

    def finish(self) -> None:
        """End what is still open as unfinished: for a log whose run was killed."""
        self._trace.finish()


def need_opentelemetry() -> None:
    """Hold that OpenTelemetry's SDK is installed.

    Raises:
        UsageError: where it is not.
    """
    try:
        # One may be there without the other.
        import opentelemetry.exporter.otlp.proto.http  # noqa: F401
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError:
        raise UsageError(
            "OpenTelemetry is not installed, which telemetry needs; pip install 'pi-run[otel]'"
        ) from None
