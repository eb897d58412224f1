"""Runs of one spec or of several, once or often: prepared together, run in turn, told about."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from runner import api
from runner.cli import report
from runner.cli.failure import annotation_lines, tell, tell_faults
from runner.cli.interrupts import Interrupts
from runner.cli.steering import FileSteering, TerminalSteering
from runner.cli.streams import Streams
from runner.error import LogError, PiRunError
from runner.thread import run_in_loop
from runner.views.ci import CaseResult, append_summary, hold_junit, write_junit
from runner.views.text import TextView, plural


@dataclass(slots=True)
class Wanted:
    """How runs are to be done and told about."""

    form: str
    """``text``, ``json`` or ``jsonl``: what stdout gets."""
    repeat: int
    """How often each spec is run; ≥ 1."""
    min_pass: float
    """The part of a spec's runs that must be good; 0 to 1."""
    junit: str | None
    """Where JUnit XML goes."""
    color: bool
    """Whether colours are wanted where there could be some."""
    quiet: bool
    """Whether to tell nothing but errors."""
    steer: str | None = None
    """A file or FIFO whose lines steer the run."""
    interactive: bool = False
    """Whether who sits at the terminal steers the run."""
    otlp: str | None = None
    """Where spans and metrics go, as `runner.cli.collector` has it; None for nowhere."""
    otlp_content: bool = False
    """Whether what was said goes there too."""


class Work(Protocol):
    """A run that is ready to be done."""

    async def run(
        self,
        *,
        on_event: api.OnEvent | None = None,
        on_line: api.OnLine | None = None,
        control: api.Control | None = None,
    ) -> api.RunResult:
        """Do it."""
        ...


@dataclass(slots=True)
class _Run:
    """One run that is to be done."""

    path: str
    suffix: str
    """`` #2`` and so on, where a spec is run several times."""
    options: api.RunOptions
    prepared: api.Prepared | None = None
    """None for what is prepared only when its turn comes: a repetition."""

    @property
    def title(self) -> str:
        """Tells it apart from the others."""
        return self.path + self.suffix


def numbered(log: str, number: int) -> str:
    """A log's path with a number before its suffix."""
    path = Path(log)
    return str(path.with_name(f"{path.stem}-{number}{path.suffix}"))


class Runs:
    """Does runs, and gives the exit code of all."""

    def __init__(self, streams: Streams, wanted: Wanted) -> None:
        self._streams = streams
        self._wanted = wanted
        self._interrupts = Interrupts()
        self._results: list[CaseResult] = []
        self._codes: dict[str, list[int]] = {}
        self._several = False

    def run(self, specs: Sequence[str], options: api.RunOptions) -> int:
        """Prepare all, then do all, if nothing is wrong with any.

        Raises:
            LogError: where the JUnit file can't be written.
        """
        if self._wanted.otlp is not None:
            from runner.telemetry.listener import need_opentelemetry

            need_opentelemetry()
        plan = list(self._plan(specs, options))
        self._several = len(plan) > 1
        if code := self._prepare(plan):
            return code
        if self._wanted.junit:
            hold_junit(self._wanted.junit)
        with self._interrupts:
            for each in plan:
                self._do(each)
        code = max(map(self._verdict, self._codes))
        self._tell_ci()
        return code

    def _plan(self, specs: Sequence[str], options: api.RunOptions) -> Iterator[_Run]:
        repeat = self._wanted.repeat
        count = len(specs) * repeat
        for number in range(count):
            path, again = specs[number // repeat], number % repeat + 1
            log = options.log
            if count > 1 and log not in (None, "none"):
                log = numbered(str(log), number + 1)
            yield _Run(path, f" #{again}" if repeat > 1 else "", replace(options, log=log))

    def _prepare(self, plan: Sequence[_Run]) -> int:
        """Prepare each spec once; gives the highest exit code of what is wrong, or 0."""
        code = 0
        for each in {each.path: each for each in reversed(plan)}.values():
            try:
                each.prepared = api.prepare(each.path, each.options)
            except PiRunError as error:
                code = max(code, tell(error, self._streams))
            else:
                if not self._wanted.quiet:
                    tell_faults(each.prepared.doubts, self._streams)
        return code

    # --- one run --------------------------------------------------------------------------------

    def _do(self, each: _Run) -> None:
        if self._interrupts.received is not None:
            self._results.append(CaseResult(each.path, each.title, "skipped"))
            return
        try:
            prepared = each.prepared or api.prepare(each.path, each.options)
            result = self._drive(api.Ready(prepared))
        except PiRunError as error:
            code = tell(error, self._streams)
            why = " ".join(str(error).split())
            self._results.append(CaseResult(each.path, each.title, "error", why=[why]))
        else:
            code = result.exit_code
            self._tell(each, result)
        each.prepared = None
        self._codes.setdefault(each.path, []).append(code)

    def go_on(self, work: Work, title: str) -> int:
        """Do one run that is not that of a spec from its start, and give its exit code."""
        result = self.do(work)
        each = _Run(result.path or title, "", api.RunOptions())
        self._tell(each, result)
        self._tell_ci()
        return result.exit_code

    def do(self, work: Work) -> api.RunResult:
        """Do one run, and leave it to others to tell what came of it."""
        with self._interrupts:
            return self._drive(work)

    def _drive(self, work: Work) -> api.RunResult:
        control = api.Control()
        steering = self._steering(control)
        writer = _LineWriter(self._streams, control)

        async def drive(on_event: Callable[[dict[str, Any]], None] | None) -> api.RunResult:
            self._interrupts.attach(asyncio.get_running_loop(), control)
            for each in steering:
                each.attach(control)
            on_line = writer.write if self._wanted.form == "jsonl" else None
            return await work.run(on_event=on_event, on_line=on_line, control=control)

        try:
            with self._telemetry() as traced, self._view() as shown:
                result = run_in_loop(drive(_both(shown, traced)))
        finally:
            self._interrupts.detach()
            for each in steering:
                each.stop()
        if writer.error is not None:
            raise writer.error
        return result

    def _steering(self, control: api.Control) -> list[FileSteering | TerminalSteering]:
        """Who steers a run while it goes on."""
        steering: list[FileSteering | TerminalSteering] = []
        if self._wanted.steer is not None:
            steering.append(FileSteering(self._wanted.steer))
        if self._wanted.interactive:
            terminal = TerminalSteering(self._streams.say)
            control.at_rest = terminal.at_rest
            control.on_abort.append(terminal.stop)
            steering.append(terminal)
        return steering

    @contextmanager
    def _telemetry(self) -> Iterator[api.OnEvent | None]:
        """What sends spans; its one warning comes when the view is off the screen."""
        if self._wanted.otlp is None:
            yield None
            return
        from runner.api.export import telling
        from runner.cli.collector import address

        def warn(text: str) -> None:
            self._streams.say(f"pi-run: {text}")

        endpoint, content = address(self._wanted.otlp), self._wanted.otlp_content
        with telling(endpoint, content=content, warn=warn) as on_event:
            yield on_event

    @contextmanager
    def _view(self) -> Iterator[Callable[[dict[str, Any]], None] | None]:
        verbose = self._streams.verbose
        if self._wanted.quiet:
            yield None
        elif self._streams.can_draw:
            from runner.views.live import LiveView

            color = self._wanted.color and not os.environ.get("NO_COLOR")
            printed = self._wanted.form == "text" and self._streams.result_is_terminal
            with LiveView(
                sys.stderr, color=color, verbose=verbose, prints_result=not printed
            ) as view:
                yield view.event
        else:
            yield TextView(self._streams.say, verbose=verbose).event

    # --- telling --------------------------------------------------------------------------------

    def _tell(self, each: _Run, result: api.RunResult) -> None:
        """Print a result, say why it is not good, and keep it for the CI."""
        faults = report.faults_of(each.path, result)
        self._results.append(report.case_result(each.path, each.suffix, result, faults))
        if result.log is not None and not self._wanted.quiet:
            self._streams.say(f"log: {result.log}")
        if self._wanted.form == "json":
            self._streams.line(report.result_object(each.title, result))
        elif self._wanted.form == "text" and self._several:
            self._streams.result(report.result_line(each.title, result))
        elif self._wanted.form == "text":
            self._streams.result(report.final_text(result))
        which = f"{each.title}: " if self._several else ""
        # A reader that went away ended the run, and wants to hear no more of it.
        for fault in () if self._streams.closed else faults:
            self._streams.say(f"pi-run: {which}{report.sentence(fault)}")
        if self._streams.in_actions:
            for line in annotation_lines(faults):
                self._streams.annotate(line)

    def _verdict(self, path: str) -> int:
        """The exit code of all runs of a spec: how many were good, held against the wanted rate."""
        codes = self._codes[path]
        good = codes.count(0)
        if self._wanted.repeat > 1:
            wanted = f", {self._wanted.min_pass:.0%} is asked for"
            self._streams.say(f"{path}: {good} of {plural(len(codes), 'run')} passed{wanted}")
        if self._interrupts.received is None and good >= self._wanted.min_pass * len(codes) - 1e-9:
            return 0
        return max(codes)

    def _tell_ci(self) -> None:
        if self._several and not self._wanted.quiet:
            counts = ", ".join(report.count_by_status(self._results))
            self._streams.say(f"{plural(len(self._results), 'run')}: {counts}")
        if self._wanted.junit:
            write_junit(self._wanted.junit, self._results)
        if self._streams.in_actions and (path := os.environ.get("GITHUB_STEP_SUMMARY")):
            try:
                append_summary(path, self._results)
            except LogError as error:
                # It is Actions' file and not one that was asked for: no reason to fail.
                tell(error, self._streams)


def _both(one: api.OnEvent | None, other: api.OnEvent | None) -> api.OnEvent | None:
    """What gives each event to two listeners, of which there may be fewer."""
    if one is None or other is None:
        return one or other

    def both(event: dict[str, Any]) -> None:
        one(event)
        other(event)

    return both


class _LineWriter:
    """Passes the log's lines to stdout, and ends the run when that can't be done any more."""

    def __init__(self, streams: Streams, control: api.Control) -> None:
        self.error: LogError | None = None
        self._streams = streams
        self._control = control

    def write(self, line: str) -> None:
        """Pass a line on. Raises nothing: it is called in the middle of a run."""
        if self.error is not None or self._streams.closed:
            return
        try:
            self._streams.line(line)
        except LogError as error:
            self.error = error
            self._control.abort()
        if self._streams.closed:
            self._control.abort(signal.SIGPIPE)
