"""What a run tells, and to whom: its log, those who listen, and in the end what came of it."""

from __future__ import annotations

import datetime
import functools
from pathlib import Path
from typing import Any, cast

from runner.api.options import Control, OnEvent, RunResult
from runner.engine.contract import Clock
from runner.engine.emit import Emitter
from runner.engine.event import RunStart
from runner.engine.plan import Expected
from runner.engine.run import Ended, Run
from runner.error import LogError, PiRunError, describe
from runner.log.place import default_path
from runner.log.redact import LogRedactor
from runner.log.write import LogWriter


class Telling:
    """Where the events of one run go.

    Args:
        writer: The log's; None where nobody gets its lines.
        clock: For the events' times.
        redactor: Takes out of them what no one is to read.
        deltas: Whether there are events for deltas.
        on_event: Is called with each event.
        first_seq: The first event's number.
    """

    def __init__(
        self,
        writer: LogWriter | None,
        clock: Clock,
        redactor: LogRedactor,
        *,
        deltas: bool = True,
        on_event: OnEvent | None = None,
        first_seq: int = 0,
    ) -> None:
        self._writer = writer
        self._redactor = redactor
        self.emitter = Emitter(
            clock,
            sink=cast("Any", writer.write) if writer is not None else None,
            redactor=redactor,
            deltas=deltas,
            first_seq=first_seq,
        )
        if on_event is not None:
            self.emitter.subscribe(cast("Any", on_event))

    async def execute(self, run: Run, start: RunStart, control: Control | None) -> RunResult:
        """Do a run, and say what came of it.

        Args:
            run: The run, which tells its events here.
            start: Its ``run_start``.
            control: Takes hold of it.

        Raises:
            Exception: a bug of pi-run.
        """
        if control is not None:
            control._attach(run)
        return self.close(await run.execute(), start)

    def close(self, ended: Ended, start: RunStart) -> RunResult:
        """Close the log, and say what came of the run; see `execute`."""
        try:
            if self._writer is not None:
                self._writer.close()
        except LogError as error:
            ended.log_error = ended.log_error or error
        if ended.bug is not None:
            raise ended.bug
        return self._result(ended, start)

    def _result(self, ended: Ended, start: RunStart) -> RunResult:
        end = ended.event
        status, code, error = end["status"], end["exit_code"], end.get("error")
        if ended.log_error is not None:
            status, error = "error", describe(ended.log_error)
            code = ended.log_error.exit_code if isinstance(ended.log_error, PiRunError) else 6
        log = self._writer.path if self._writer is not None else None
        return RunResult(
            name=start["spec"]["name"],
            path=start["spec"].get("path", ""),
            run_id=start.get("run_id", ""),
            status=status,
            exit_code=code,
            text=end["text"],
            output=end["output"],
            usage=dict(cast("dict[str, int]", end["usage"])),
            cost_usd=end["cost_usd"],
            turns=end["turns"],
            tool_calls=end["tool_calls"],
            seconds=end.get("seconds", 0.0),
            log=str(log) if log is not None else None,
            expectations=[self._expectation(one) for one in ended.expected],
            error=error,
        )

    def _expectation(self, one: Expected) -> dict[str, Any]:
        place = one.expectation.place
        return {
            "task_id": one.task_id,
            "kind": one.expectation.kind,
            "passed": one.verdict.passed,
            "detail": self._redactor.text(one.verdict.detail),
            "file": place.file if place is not None else None,
            "line": place.line if place is not None else None,
            "column": place.column if place is not None else None,
        }


def new_log(wanted: str | None, start: RunStart) -> Path | None:
    """Where the log of a run goes that begins like this.

    Args:
        wanted: Its path; ``none`` for none, None for the usual place.
        start: Its ``run_start``.
    """
    if wanted == "none":
        return None
    if wanted is not None:
        return Path(wanted)
    return default_path(start["spec"]["name"], start.get("run_id", ""))


def now() -> str:
    """The time, UTC, as it stands in a log."""
    text = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


@functools.cache
def runner_version() -> str:
    """The version of pi-run that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pi-run")
    except PackageNotFoundError:
        return "unknown"
