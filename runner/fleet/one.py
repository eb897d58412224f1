"""One run of a batch: begun anew or by its log, with an outcome however it goes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runner.api import Control, RunResult
from runner.api.runs import run
from runner.engine.message import Usage
from runner.error import BUG, LogError, PiRunError, describe
from runner.fleet.contract import Job, Outcome, Start
from runner.fleet.work import Work


class Runs:
    """The `Doer` of the runs of a batch, in this event loop."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def run(self, job: Job, start: Start, control: Control) -> Outcome:
        """See `Doer.run`."""
        try:
            result = await self._result(job, start, control)
        except PiRunError as error:
            return self._broken(job, start, error, error.exit_code)
        except Exception as error:  # one run's bug is not to end the others
            message = f"this is a bug of pi-run: {type(error).__name__}: {describe(error)}"
            return self._broken(job, start, PiRunError(message), BUG)
        return self._outcome(job, result)

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

    def _outcome(self, job: Job, result: RunResult) -> Outcome:
        return replace(
            self._plain(job, result.status, result.exit_code),
            text=result.text,
            output=result.output,
            error=result.error,
            failed=[one["detail"] for one in result.expectations if not one["passed"]],
            turns=result.turns,
            tool_calls=result.tool_calls,
            usage=_usage(result.usage),
            cost_usd=result.cost_usd,
            seconds=result.seconds,
            log=result.log,
            log_bytes=_size(result.log),
            done=result.status != "aborted" and result.exit_code != LogError.exit_code,
        )

    def _broken(self, job: Job, start: Start, error: PiRunError, code: int) -> Outcome:
        """The outcome of a run that could not begin, or not go on."""
        # With these inputs it can't be run; that is no wrong usage of the command.
        outcome = self._plain(job, "error", 3 if code == 2 else code)
        outcome.error = " ".join(str(error).split())
        if start.log.exists():
            # What it says so far may be all of it, which is found when the run is looked for again.
            outcome.log, outcome.log_bytes = str(start.log), _size(str(start.log))
            outcome.done = False
        return outcome

    def _plain(self, job: Job, status: str, code: int) -> Outcome:
        return Outcome(
            key=job.key,
            row_key=job.row_key,
            spec=self._work.specs[job.spec].loaded.name,
            line=job.line,
            number=job.number,
            inputs=self._work.shown(job),
            status=status,
            exit_code=code,
        )


def _usage(usage: Mapping[str, int]) -> Usage:
    given: Any = dict(usage)
    whole: Usage = given
    return whole


def _size(log: str | None) -> int:
    try:
        return os.stat(log).st_size if log is not None else 0
    except OSError:
        return 0
