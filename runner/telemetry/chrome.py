"""A trace as Chrome and Perfetto read it: each agent a process, on its threads what it did.

Source: the "Trace Event Format" of Chromium's catapult, in the parts that Perfetto's importer for
JSON takes: metadata (``M``), begin and end of a slice (``B``, ``E``), flows (``s``, ``f``). Slices
of one thread lie within one another and never overlap otherwise; what happens at the same time,
such as parallel calls, goes to further threads of its agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runner.json_text import line
from runner.telemetry.span import Span, told

HEAD = '{"displayTimeUnit":"ms","traceEvents":[\n'
TAIL = "\n]}\n"


class Chrome:
    """A sink that makes lines of a trace: each an event, in the order in which they come."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._processes: dict[str, _Process] = {}
        self._made = 0
        self._places: dict[Span, tuple[_Process, int]] = {}
        self._told: dict[Span, dict[str, Any]] = {}
        self._zero: int | None = None

    def take(self) -> Iterator[str]:
        """The lines since the last time."""
        lines, self._lines = self._lines, []
        return iter(lines)

    def begin(self, span: Span) -> None:
        """A slice begins."""
        if self._zero is None:
            self._zero = span.start
        process = self._process(span)
        thread = self._thread(process, span)
        process.threads[thread].append(span)
        self._places[span] = process, thread
        args = self._told[span] = _shown(span.attributes)
        self._tell("B", span.start, process, thread, name=span.name, cat=span.kind, args=args)
        if span.parent is not None and span.parent.agent != span.agent:
            self._flow(span, process, thread)

    def end(self, span: Span) -> None:
        """It ends; what is known only now joins what was told."""
        process, thread = self._places.pop(span)
        process.threads[thread].remove(span)
        before = self._told.pop(span)
        args = {k: v for k, v in _shown(span.attributes).items() if before.get(k) != v}
        for note in span.notes:
            args.setdefault(note.name, []).append(_shown(note.attributes))
        if span.message is not None:
            args["error.message"] = span.message
        self._tell("E", span.end or span.start, process, thread, args=args)
        if span.kind == "agent":
            process.open -= 1
            # The run's own may go on; of others there may be many.
            if not process.open and span.parent is not None:
                self._processes.pop(span.agent, None)

    def _process(self, span: Span) -> _Process:
        process = self._processes.get(span.agent)
        if process is None:
            self._made += 1
            process = self._processes[span.agent] = _Process(self._made)
            self._describe(process, "process_name", name=span.agent)
            self._describe(process, "process_sort_index", sort_index=process.number)
        if span.kind == "agent":
            process.open += 1
        return process

    def _thread(self, process: _Process, span: Span) -> int:
        """Where a slice goes: under its parent where that has no other now, else where nothing is.

        Of a parent in another agent nothing is on the process's threads.
        """
        for number, stack in process.threads.items():
            if stack and stack[-1] is span.parent:
                return number
        for number, stack in process.threads.items():
            if not stack:
                return number
        number = len(process.threads) + 1
        process.threads[number] = []
        name = "agent" if number == 1 else f"at the same time {number}"
        self._describe(process, "thread_name", number, name=name)
        self._describe(process, "thread_sort_index", number, sort_index=number)
        return number

    def _flow(self, span: Span, process: _Process, thread: int) -> None:
        """An arrow from what an agent works for to the agent."""
        place = self._places.get(span.parent) if span.parent is not None else None
        if place is None:
            return
        name = "works for"
        self._tell("s", span.start, *place, name=name, cat="agent", id=span.seq)
        self._tell("f", span.start, process, thread, name=name, cat="agent", id=span.seq, bp="e")

    def _describe(self, process: _Process, what: str, thread: int = 1, **args: Any) -> None:
        event = {"ph": "M", "pid": process.number, "tid": thread, "name": what, "args": args}
        self._lines.append(line(event))

    def _tell(self, phase: str, time: int, process: _Process, thread: int, **more: Any) -> None:
        """One event; its time is in microseconds since the run's start."""
        since = (time - (self._zero or 0)) // 1000
        event = {"ph": phase, "ts": since, "pid": process.number, "tid": thread, **more}
        self._lines.append(line(event))


class _Process:
    """The threads of an agent: what is open on each, the innermost last."""

    __slots__ = ("number", "open", "threads")

    def __init__(self, number: int) -> None:
        self.number = number
        self.open = 0
        self.threads: dict[int, list[Span]] = {}


def _shown(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes as arguments of a slice: a list as the text that it is."""
    return {
        key: ", ".join(map(str, value)) if isinstance(value, list) else value
        for key, value in told(attributes).items()
    }
