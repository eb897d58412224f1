"""A batch in a database: its runs put in, waited for, and read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import sqlalchemy as sa

from runner.engine.message import tokens_of
from runner.error import PiRunError
from runner.fleet.batch import LIMIT, BatchOptions
from runner.fleet.contract import Job, Outcome, Start
from runner.fleet.database import listed, runs
from runner.fleet.database.bundle import hold_no_secret, pack
from runner.fleet.database.connect import Database
from runner.fleet.database.engine import Queue
from runner.fleet.database.lease import tell_cancelled
from runner.fleet.database.schema import RUNS, create_tables
from runner.fleet.database.worker import Worker
from runner.fleet.work import Work, default_name
from runner.thread import call_in_thread
from runner.views.batch_progress import Progress

_BLOCK = 200
"""Runs that are put in by one transaction."""
_LOOK_SECONDS = 0.3
_OVERLAP_SECONDS = 30.0
"""How far the clocks of workers may be apart, and how long a transaction may last, for what ended
to be found by its time. The rest is found by a look at all, now and then."""
_WHOLE_SECONDS = 5.0


class FleetControl:
    """What is done with the runs of a fleet from outside.

    Args:
        database: Where they are. Its tables are made where they are not there.

    Raises:
        UsageError: where its tables are those of another version.
        DatabaseError: where it can't be used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        create_tables(database)
        with database.told():
            self._queue = Queue(database)
            self._queue.create_tables()

    def put(self, work: Work, batch: str) -> int:
        """Put the runs of a batch in; gives how many were not there.

        Raises:
            UsageError: where they can't be sent.
            DatabaseError: where the database can't be used.
        """
        bundles = [pack(compiled) for compiled in work.specs]
        with self._database.begin() as connection:
            for each in bundles:
                runs.add_bundle(connection, each.digest, each.content)
        jobs, place, new = work.jobs(), 0, 0
        while block := list(islice(jobs, _BLOCK)):
            rows = [
                (job, work.specs[job.spec].loaded.name, bundles[job.spec].digest) for job in block
            ]
            with self._database.begin() as connection:
                added = runs.add(connection, rows, batch, place)
                self._queue.put(connection, [job.key for job in block if job.key in added])
            place, new = place + len(block), new + len(added)
        return new

    def cancel(self, names: Sequence[str]) -> set[str]:
        """Have runs not be done, or not to their end; gives the ids of those that had not ended.

        Raises:
            DatabaseError: where the database can't be used.
        """
        with self._database.begin() as connection:
            found = runs.cancel(connection, names)
            tell_cancelled(self._database, connection)
        if found:
            with self._database.told():
                self._queue.cancel(sorted(found))
            with self._database.begin() as connection:
                runs.end_orphans(connection)
        return found

    def retry(self, names: Sequence[str]) -> set[str]:
        """Have runs done again that were not good; gives the ids of those that will be.

        Raises:
            DatabaseError: where the database can't be used.
        """
        done: set[str] = set()
        for start in range(0, len(names), _BLOCK):
            with self._database.begin() as connection:
                todo = runs.renew(connection, names[start : start + _BLOCK])
                if todo:
                    self._queue.renew(connection, sorted(todo))
            done |= todo
        return done


class Stored:
    """The `Store` of a batch in a database, for who reads what came of it.

    Args:
        database: Where it is.
        work: What the batch is.
    """

    def __init__(self, database: Database, work: Work) -> None:
        self._database = database
        self._work = work

    def find(self, job: Job) -> Outcome | Start:
        """See `Store.find`; a run that was not done is a worker's."""
        raise NotImplementedError("the runs of a database are begun by its workers")

    def finish(self, outcome: Outcome) -> None:
        """See `Store.finish`; that is for workers."""
        raise NotImplementedError("the runs of a database are finished by its workers")

    def outcome(self, key: str) -> Outcome | None:
        """See `Store.outcome`."""
        return listed.outcomes(self._database, [key]).get(key)

    def outcomes(self) -> Iterator[Outcome]:
        """See `Store.outcomes`."""
        keys = (job.key for job in self._work.jobs())
        while block := list(islice(keys, _BLOCK)):
            yield from listed.outcomes(self._database, block).values()


class DatabaseBatch:
    """A batch whose runs are done by the workers of a database.

    Args:
        work: What there is to do.
        database: Where the runs go.
        options: How it is done.
        worker: Does some of them here.
        retry_failed: Whether runs that were done, and not good, are done again.
        told: Is called with each outcome, and whether it was there before.
    """

    def __init__(
        self,
        work: Work,
        database: Database,
        options: BatchOptions,
        worker: Worker,
        *,
        retry_failed: bool = False,
        told: Callable[[Outcome, bool], object] | None = None,
    ) -> None:
        self.progress = Progress(total=work.count)
        """How far it is."""
        self.stopped: str | None = None
        """Why it ended before all was done."""
        self._work = work
        self._database = database
        self._control = FleetControl(database)
        self._options = options
        self._worker = worker
        self._retry_failed = retry_failed
        self._told = told
        self._left: dict[str, None] = {}
        self._stopping = False
        self._code = 0

    def put(self) -> int:
        """Put its runs in; gives how many were not there. See `FleetControl.put`."""
        for compiled in self._work.specs:
            hold_no_secret(compiled, set(compiled.options.values) | set(compiled.options.texts))
        for job in self._work.jobs():
            hold_no_secret(self._work.specs[job.spec], set(job.inputs))
        new = self._control.put(self._work, default_name(self._work))
        if self._retry_failed:
            self._control.retry([job.key for job in self._work.jobs()])
        return new

    async def run(self) -> int:
        """Put its runs in, do some of them here, and wait for all.

        Gives the exit code of what ended it early; 0 where nothing did.

        Raises:
            UsageError: where they can't be sent.
            DatabaseError: where the database can't be used.
        """
        await call_in_thread(self.put, "pi-run-put")
        self._left = dict.fromkeys(job.key for job in self._work.jobs())
        await self._look(list(self._left), kept=True)
        worker = asyncio.ensure_future(self._worker.run()) if self._left else None
        try:
            await self._wait(worker)
        finally:
            self._worker.abort()
            if worker is not None:
                await worker
        return self._code

    def abort(self, signal: int | None = None) -> None:
        """Wait no more; its runs stay in the database for other workers."""
        self._stop("it was interrupted; its runs stay in the database", 128 + (signal or 2))

    def _stop(self, why: str, code: int) -> None:
        if self.stopped is None:
            self.stopped, self._code = why, code
            self._stopping = True

    async def _wait(self, worker: asyncio.Future[None] | None) -> None:
        whole = since = time.time()
        while self._left and not self._stopping:
            await asyncio.sleep(_LOOK_SECONDS)
            if worker is not None and worker.done():
                await worker  # which raises why it could not go on
            now = time.time()
            try:
                ended = await call_in_thread(partial(self._ended, since), "pi-run-look")
                since = now
                if now - whole > _WHOLE_SECONDS:
                    whole, ended = now, list(self._left)
                await self._look([key for key in ended if key in self._left])
            except PiRunError:  # the worker tells that the database is away
                continue
            await self._hold_budget()

    def _ended(self, since: float) -> list[str]:
        query = sa.select(RUNS.c.run_id).where(RUNS.c.ended_at >= since - _OVERLAP_SECONDS)
        with self._database.read() as connection:
            return list(connection.scalars(query))

    async def _look(self, keys: list[str], *, kept: bool = False) -> None:
        found = await call_in_thread(lambda: listed.outcomes(self._database, keys), "pi-run-look")
        for key in keys:
            if (outcome := found.get(key)) is not None and key in self._left:
                del self._left[key]
                self._tell(outcome, kept)

    def _tell(self, outcome: Outcome, kept: bool) -> None:
        progress = self.progress
        progress.done += 1
        progress.kept += kept
        progress.failed += not outcome.passed
        progress.cost_usd += outcome.cost_usd or 0.0
        progress.tokens += tokens_of(outcome.usage)
        if self._told is not None:
            self._told(outcome, kept)
        if not outcome.passed and self._options.fail_fast and not kept:
            self._stop("a run failed, and --fail-fast is set", outcome.exit_code)

    async def _hold_budget(self) -> None:
        options, progress = self._options, self.progress
        if options.max_cost is not None and progress.cost_usd >= options.max_cost:
            cost = f"it cost ${progress.cost_usd:.4f}"
            self._stop(f"{cost}, and --max-cost is {options.max_cost:g}", LIMIT)
        if options.max_tokens is not None and progress.tokens >= options.max_tokens:
            used = f"it used {progress.tokens:,} tokens"
            self._stop(f"{used}, and --max-tokens is {options.max_tokens}", LIMIT)
        if self._stopping and self._code < 128:
            await call_in_thread(lambda: self._control.cancel(list(self._left)), "pi-run-cancel")
