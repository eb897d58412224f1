"""What a run tells, and to whom: its log, those who listen, and in the end what came of it."""

from __future__ import annotations

from typing import Any, cast

from runner.api.options import Control, RunResult
from runner.api.runs import OnEvent, result_of
from runner.engine.contract import Clock
from runner.engine.emit import Emitter
from runner.engine.event import RunStart
from runner.engine.run import Ended, Run
from runner.error import LogError
from runner.log.redact import LogRedactor
from runner.log.write import LogWriter


class Telling:
    """Where the events of one run go.

    Args:
        writer: The log's.
        clock: For the events' times.
        redactor: Takes out of them what no one is to read.
        deltas: Whether there are events for deltas.
        on_event: Is called with each event.
        first_seq: The first event's number.
    """

    def __init__(
        self,
        writer: LogWriter,
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
            sink=cast("Any", writer.write),
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
            self._writer.close()
        except LogError as error:
            ended.log_error = ended.log_error or error
        if ended.bug is not None:
            raise ended.bug
        return result_of(
            ended,
            self._redactor.text,
            name=start["spec"]["name"],
            path=start["spec"].get("path", ""),
            run_id=start.get("run_id", ""),
            log=self._writer.path,
        )
