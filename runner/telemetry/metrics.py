"""Metrics of OpenTelemetry: a sink over a meter. Importing this imports OpenTelemetry's API.

Source: gen-ai-metrics.md of the conventions, its names, units and bounds.
"""

from __future__ import annotations

from typing import Any

from opentelemetry.metrics import Meter

from runner.telemetry import names
from runner.telemetry.span import Span, told

TOKEN_USAGE = "gen_ai.client.token.usage"
OPERATION_DURATION = "gen_ai.client.operation.duration"
AGENT_DURATION = "gen_ai.invoke_agent.duration"
TOOL_DURATION = "gen_ai.execute_tool.duration"

TOKEN_BOUNDS = [4**n for n in range(14)]
DURATION_BOUNDS = [0.01 * 2**n for n in range(14)]
AGENT_BOUNDS = [0.1 * 2**n for n in range(13)]

_MODEL = (
    names.OPERATION,
    names.PROVIDER,
    names.REQUEST_MODEL,
    names.RESPONSE_MODEL,
    names.SERVER_ADDRESS,
    names.SERVER_PORT,
)
_AGENT = (names.AGENT_NAME, names.REQUEST_MODEL, names.ERROR_TYPE)
_TOOL = (names.TOOL_NAME, names.TOOL_TYPE, names.AGENT_NAME, names.ERROR_TYPE)


class Metrics:
    """Counts tokens and seconds of what ends. What never ended is in no metric."""

    def __init__(self, meter: Meter) -> None:
        self._tokens = meter.create_histogram(
            TOKEN_USAGE,
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKEN_BOUNDS,
        )
        self._seconds = {
            kind: meter.create_histogram(
                name, "s", told, explicit_bucket_boundaries_advisory=_rounded(bounds)
            )
            for kind, name, told, bounds in (
                ("chat", OPERATION_DURATION, "GenAI operation duration.", DURATION_BOUNDS),
                ("agent", AGENT_DURATION, "The duration of an agent invocation.", AGENT_BOUNDS),
                ("tool", TOOL_DURATION, "The duration of a tool execution.", DURATION_BOUNDS),
            )
        }

    def begin(self, span: Span) -> None:
        """Nothing is counted yet."""

    def end(self, span: Span) -> None:
        """Count it."""
        if span.error == names.UNFINISHED or span.kind not in self._seconds:
            return
        known = {"chat": (*_MODEL, names.ERROR_TYPE), "agent": _AGENT, "tool": _TOOL}[span.kind]
        self._seconds[span.kind].record(span.seconds, _some(span, known))
        if span.kind != "chat":
            return
        for kind, name in (("input", names.INPUT_TOKENS), ("output", names.OUTPUT_TOKENS)):
            if name in span.attributes:
                attributes = {**_some(span, _MODEL), names.TOKEN_TYPE: kind}
                self._tokens.record(span.attributes[name], attributes)


def _some(span: Span, known: tuple[str, ...]) -> dict[str, Any]:
    return told({name: span.attributes[name] for name in known if name in span.attributes})


def _rounded(bounds: list[float]) -> list[float]:
    return [round(bound, 6) for bound in bounds]
