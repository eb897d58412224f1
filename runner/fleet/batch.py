"""Many runs at once in one event loop: what is done of a batch, and when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runner.api import Control
from runner.engine.message import tokens_of
from runner.fleet.contract import Doer, Job, Outcome, Start, Store
from runner.fleet.garbage import seldom_collected
from runner.fleet.work import Work
from runner.providers.gate import slowed
from runner.views.batch_progress import Progress

LIMIT = 4
"""Exit code of a batch that stopped at its budget, as of a run at a limit."""
_LOOK_SECONDS = 0.05
"""How often it is looked at what the runs under way have used."""


@dataclass(slots=True)
class BatchOptions:
    """How a batch is done."""

    at_once: int = 8
    """How many runs are under way at a time; ≥ 1."""
    fail_fast: bool = False
    """Whether nothing more is begun, and what is under way is stopped, once a run fails."""
    max_cost: float | None = None
    """USD that the whole batch may cost."""
    max_tokens: int | None = None
    """Tokens that the whole batch may use."""


class Batch:
    """Does the runs of a batch that are not done yet.

    Args:
        work: What there is to do.
        store: Keeps what was done.
        doer: Does one run.
        options: How it is done.
        told: Is called with each outcome, and whether it was there before.
    """

    def __init__(
        self,
        work: Work,
        store: Store,
        doer: Doer,
        options: BatchOptions,
        told: Callable[[Outcome, bool], object] | None = None,
    ) -> None:
        self.progress = Progress(total=work.count)
        """How far it is."""
        self.stopped: str | None = None
        """Why it ended before all was done."""
        self._work = work
        self._store = store
        self._doer = doer
        self._options = options
        self._told = told
        self._jobs: Iterator[Job] = work.jobs()
        self._controls: set[Control] = set()
        self._code = 0
        self._error: BaseException | None = None

    async def run(self) -> int:
        """Do them. Gives the exit code of what ended it early; 0 where nothing did.

        What was begun and stopped goes on when the same is done again.

        Raises:
            LogError: where the rows can't be read any more, or the store can't be used.
        """
        self._count_spent()
        watch = asyncio.ensure_future(self._watch_budget())
        workers = min(self._options.at_once, self._work.count)
        with seldom_collected():
            await asyncio.gather(*(self._work_off() for _ in range(workers)))
        watch.cancel()
        if self._error is not None:
            raise self._error
        return self._code

    def abort(self, signal: int | None = None) -> None:
        """Begin no more runs, and stop those that are under way; in the loop's thread."""
        self._stop("it was interrupted", 128 + (signal or 2), signal)

    def _stop(self, why: str, code: int, signal: int | None = None) -> None:
        if self.stopped is None:
            self.stopped, self._code = why, code
            for control in list(self._controls):
                control.abort(signal)

    # --- runs -------------------------------------------------------------------------------------

    async def _work_off(self) -> None:
        """Do one run after the other, as long as there is one."""
        try:
            while self.stopped is None and (job := next(self._jobs, None)) is not None:
                await self._one(job)
                self._hold_budget()
        except Exception as error:  # none of the others can go on without what failed here
            self._error = self._error or error
            self._stop("it could not go on", 0)

    async def _one(self, job: Job) -> None:
        found = self._store.find(job)
        if isinstance(found, Outcome):
            self._tell(found, kept=True)
            # Thousands in a row may have been done, and who waits is to see that.
            await asyncio.sleep(0)
            return
        outcome = await self._do(job, found)
        if not outcome.done:
            self.progress.unfinished += 1
        else:
            self._store.finish(outcome)
        self._spend(outcome, 1)
        self.progress.slowed = slowed()
        if outcome.done or outcome.status != "aborted":
            self._tell(outcome, kept=False)
            if self._options.fail_fast and not outcome.passed:
                self._stop("a run failed, and --fail-fast is set", outcome.exit_code)

    async def _do(self, job: Job, start: Start) -> Outcome:
        control = Control()
        self._controls.add(control)
        self.progress.running += 1
        try:
            if start.how == "resume" and (before := self._store.outcome(job.key)) is not None:
                # It is counted with the rest of its run.
                self._spend(before, -1)
            return await self._doer.run(job, start, control)
        finally:
            self.progress.running -= 1
            self._controls.discard(control)

    def _tell(self, outcome: Outcome, *, kept: bool) -> None:
        if outcome.done:
            self.progress.done += 1
            self.progress.kept += kept
        self.progress.failed += not outcome.passed
        if self._told is not None:
            self._told(outcome, kept)

    # --- budgets ----------------------------------------------------------------------------------

    def _count_spent(self) -> None:
        """Begin with what earlier calls of the same command spent."""
        for outcome in self._store.outcomes():
            self._spend(outcome, 1)
        self._hold_budget()

    def _spend(self, outcome: Outcome, sign: int) -> None:
        self.progress.cost_usd += sign * (outcome.cost_usd or 0.0)
        self.progress.tokens += sign * tokens_of(outcome.usage)

    async def _watch_budget(self) -> None:
        """Stop runs that are under way as soon as all of them together are over the budget."""
        if self._options.max_cost is None and self._options.max_tokens is None:
            return
        while self.stopped is None:
            self._hold_budget()
            await asyncio.sleep(_LOOK_SECONDS)

    def _hold_budget(self) -> None:
        options = self._options
        if options.max_cost is None and options.max_tokens is None:
            return
        used = [control.used for control in self._controls]
        cost = self.progress.cost_usd + sum(cost for _, cost in used)
        tokens = self.progress.tokens + sum(tokens for tokens, _ in used)
        if options.max_cost is not None and cost >= options.max_cost:
            self._stop(f"it cost ${cost:.4f}, and --max-cost is {options.max_cost:g}", LIMIT)
        elif options.max_tokens is not None and tokens >= options.max_tokens:
            self._stop(
                f"it used {tokens:,} tokens, and --max-tokens is {options.max_tokens}", LIMIT
            )
