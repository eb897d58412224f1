"""Spans of OpenTelemetry: a sink over a tracer. Importing this imports OpenTelemetry's API."""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode

from runner.telemetry import names
from runner.telemetry.span import Span, told, told_value

_INSIDE = ("scripted", "local")
"""Providers whose models answer in this process, or in a child of it."""


class Spans:
    """Makes each span one of OpenTelemetry's, but for turns, which the conventions don't know.

    Args:
        tracer: Makes them.
        parent: What the run is a part of; a context without a span for a trace of its own.
        announce: Is called with each span before it is made, by who gives it its id.
    """

    def __init__(
        self,
        tracer: trace.Tracer,
        parent: Context,
        announce: Callable[[Span], None] | None = None,
    ) -> None:
        self._tracer = tracer
        self._outside = parent
        self._announce = announce
        self._contexts: dict[Span, Context] = {}
        self._spans: dict[Span, trace.Span] = {}
        self._first: trace.SpanContext | None = None

    def begin(self, span: Span) -> None:
        """Start it, inside its parent's."""
        outside = self._outside
        parent = outside if span.parent is None else self._contexts.get(span.parent, outside)
        if span.kind == "turn":
            self._contexts[span] = parent
            return
        if self._announce is not None:
            self._announce(span)
        # A run that went on after its end has a second span without a parent here.
        links = [trace.Link(self._first)] if self._first and span.parent is None else []
        made = self._tracer.start_span(
            told_value(span.name),
            context=parent,
            kind=_kind(span),
            attributes=told(span.attributes),
            links=links,
            start_time=span.start,
        )
        if self._first is None:
            self._first = made.get_span_context()
        self._contexts[span] = trace.set_span_in_context(made, self._outside)
        self._spans[span] = made

    def end(self, span: Span) -> None:
        """End it, at its own time."""
        self._contexts.pop(span, None)
        made = self._spans.pop(span, None)
        if made is None:
            return
        made.set_attributes(told(span.attributes))
        for note in span.notes:
            made.add_event(note.name, told(note.attributes), note.time)
        if span.error is not None:
            made.set_status(Status(StatusCode.ERROR, told_value(span.message or span.error)))
        made.end(span.end)


def _kind(span: Span) -> SpanKind:
    if span.kind == "chat" and span.attributes.get(names.PROVIDER) not in _INSIDE:
        return SpanKind.CLIENT
    return SpanKind.INTERNAL
