"""One run of a batch: begun anew or by its log, with an outcome however it goes."""

from __future__ import annotations

import os
from dataclasses import replace

from runner.api import Control, RunResult
from runner.api.runs import run
from runner.error import LogError
from runner.fleet.contract import Job, Outcome, Start
from runner.fleet.outcome import said_by_error, said_by_result
from runner.fleet.work import Work


class Runs:
    """The `Doer` of the runs of a batch, in this event loop."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def run(self, job: Job, start: Start, control: Control) -> Outcome:
        """See `Doer.run`."""
        try:
            result = await self._result(job, start, control)
        except Exception as error:  # one run's end by it is not to end the others
            return self._broken(job, start, error)
        return self._work.outcome(
            job,
            **said_by_result(result),
            log=result.log,
            log_bytes=_size(result.log),
            done=result.status != "aborted" and result.exit_code != LogError.exit_code,
        )

    async def _result(self, job: Job, start: Start, control: Control) -> RunResult:
        compiled = self._work.specs[job.spec]
        if start.how == "resume":
            from runner.api.resume import ResumeOptions, Resumption

            options = compiled.options
            going_on = ResumeOptions(
                workspace=str(compiled.workspace),
                durable=options.durable,
                environ=options.environ,
                secrets=self._work.secrets(job),
                paced=True,
            )
            return await Resumption(start.log, going_on).run(control=control)
        log = str(start.log)
        given = replace(compiled.options, values=job.inputs, texts={}, log=log, paced=True)
        return await run(compiled.prepare(given), control=control)

    def _broken(self, job: Job, start: Start, error: Exception) -> Outcome:
        """The outcome of a run that could not begin, or not go on."""
        outcome = self._work.outcome(job, **said_by_error(error))
        if start.log.exists():
            # What it says so far may be all of it, which is found when the run is looked for again.
            outcome.log, outcome.log_bytes = str(start.log), _size(str(start.log))
            outcome.done = False
        return outcome


def _size(log: str | None) -> int:
    try:
        return os.stat(log).st_size if log is not None else 0
    except OSError:
        return 0
