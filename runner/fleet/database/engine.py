"""All that is used of DBOS: its queue, its claims, its recovery, its cancellation.

DBOS keeps which executor has which run, and hands each to one. Some of what is used here has no
public name; ``tests/fleet/database/test_database_dbos.py`` holds all of it, and its version is
pinned.

- An executor's name, which is the same for all by default, is the worker's.
- The application's version, by default a hash of the source, is the log's format: whoever can read
  a run's log can go on with it.
- Values are kept as JSON; by default they would be pickles, which a database could run code with.
- The queue is registered after the launch. How many runs a worker does at once is kept there for
  all of them, so each worker puts its own number in its place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer
from dbos import error as dbos_error

from runner.engine.event import FORMAT
from runner.fleet.database.connect import Database, DatabaseError

NAME = "pi-run"
"""Of the application, its workflow and its queue."""
MAX_RECOVERIES = 3
"""How often a run whose worker died is given to another."""
POLL_SECONDS = 0.3
"""How often a worker looks for runs to do."""

_NEXT, _LATER = 1, 2
"""Of runs that were begun, and of all others: the lower comes first."""

Do = Callable[[str], Coroutine[Any, Any, None]]
"""Does one run, named by its id. Cancels itself where the run is not the worker's any more."""


class Engine:
    """DBOS as one worker's. There is one in a process.

    DBOS has an event loop of its own, in which a run is no more than something that is waited for.

    Args:
        database: Where its tables are.
        worker: The worker's name.
        at_once: How many runs it does at a time.
        do: Does one, in the loop in which this was made.
        stop: Ends one in order that was cancelled by DBOS's own means, in the same loop.
    """

    def __init__(
        self,
        database: Database,
        worker: str,
        at_once: int,
        do: Do,
        stop: Callable[[str], object],
    ) -> None:
        self.at_once = at_once
        """How many runs are taken up at a time; 0: none any more."""
        _doing.do, _doing.stop, _doing.loop = do, stop, asyncio.get_running_loop()
        _register()
        config: DBOSConfig = {
            "name": NAME,
            "system_database_url": database.plain_url,
            "system_database_engine": database.engine,
            "executor_id": worker,
            "application_version": FORMAT,
            "serializer": DBOSPortableJSONSerializer(),
            "use_listen_notify": False,
            "log_level": "WARNING",
        }
        self._database = database
        self._dbos = DBOS(config=config)

    def launch(self) -> None:
        """Begin to take up runs. Not in a loop: DBOS would do them in that.

        Raises:
            DatabaseError: where its tables can't be used.
        """
        # The queue may be there, with the number of another worker.
        DBOS.listen_queues([])
        try:
            DBOS.launch()
        except dbos_error.DBOSException as error:
            text = self._database.hide(" ".join(str(error).split()))
            raise DatabaseError(f"{self._database.shown}: {text}", passing=False) from None
        self._own_limit()
        DBOS.register_queue(
            NAME,
            worker_concurrency=self.at_once or 1,
            polling_interval_sec=POLL_SECONDS,
            on_conflict="always_update",
        )
        self._dbos._listening_queues = [NAME]

    def _own_limit(self) -> None:
        """Have this process hold to its own number, whatever the queue's row says."""
        database = self._dbos._sys_db
        read = database.get_queue

        def own(name: str, **options: Any) -> Any:
            queue = read(name, **options)
            if queue is not None and name == NAME:
                queue._worker_concurrency = self.at_once
            return queue

        database.get_queue = own  # type: ignore[method-assign]

    def recover(self, workers: Iterable[str]) -> None:
        """Give the runs of workers that are gone back to the queue, where they come first."""
        table = self._dbos._sys_db.tables.workflow_status
        for worker in workers:
            theirs = sa.and_(table.c.executor_id == worker, table.c.status == "PENDING")
            with self._dbos._sys_db.engine.begin() as connection:
                connection.execute(sa.update(table).where(theirs).values(priority=_NEXT))
            DBOS._recover_pending_workflows([worker])

    def busy_workers(self) -> set[str]:
        """The workers to which runs are given that have not ended."""
        known = self._dbos._sys_db.tables.workflow_status.c
        query = sa.select(known.executor_id).where(known.status == "PENDING", known.name == NAME)
        with self._dbos._sys_db.engine.connect() as connection:
            return {name for name in connection.scalars(query.distinct()) if name}

    def given_up(self) -> list[str]:
        """The runs that were tried too often."""
        known = self._dbos._sys_db.tables.workflow_status.c
        query = sa.select(known.workflow_uuid).where(
            known.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED", known.name == NAME
        )
        with self._dbos._sys_db.engine.connect() as connection:
            return list(connection.scalars(query))

    def end(self) -> None:
        """Take up nothing any more, and let go of the database."""
        self.at_once = 0
        DBOS.destroy()


class Queue:
    """The queue, for who does not do runs but puts them in or takes them out.

    Args:
        database: Where it is.
    """

    def __init__(self, database: Database) -> None:
        self._client = DBOSClient(
            system_database_engine=database.engine,
            serializer=DBOSPortableJSONSerializer(),
            application_name=NAME,
            lazy=True,
            retry_connection_errors=False,
        )

    def create_tables(self) -> None:
        """Make those of DBOS where they are not there yet."""
        self._client._sys_db.run_migrations()

    def put(self, connection: sa.Connection, runs: Iterable[str]) -> None:
        """Have runs be done; one that is in the queue, or was, stays as it is."""
        for run_id in runs:
            self._client.enqueue_in_transaction(
                connection,
                {
                    "workflow_name": NAME,
                    "queue_name": NAME,
                    "workflow_id": run_id,
                    "app_version": FORMAT,
                    "priority": _LATER,
                },
                run_id,
            )

    def cancel(self, runs: Sequence[str]) -> None:
        """Have runs not be done."""
        self._client.cancel_workflows(list(runs))

    def renew(self, connection: sa.Connection, runs: Sequence[str]) -> None:
        """Have runs be done again, whatever became of them in the queue."""
        tables = self._client._sys_db.tables
        self._client._sys_db._apply_caller_schema(connection)
        for table in (
            tables.workflow_input,
            tables.workflow_output,
            tables.operation_outputs,
            tables.workflow_status,
        ):
            connection.execute(sa.delete(table).where(table.c.workflow_uuid.in_(runs)))
        self.put(connection, runs)


_EXPECTED = (
    *("Asyncio task cancelled", "no longer owned by this execution", "was cancelled"),
    *("is cancelled", "AwaitedWorkflowCancelled", "MaxRecoveryAttemptsExceeded"),
)
"""What DBOS warns of that is no trouble here: runs that are taken away or taken over."""


class _Doing:
    """What does runs in this process, and where."""

    do: Do
    stop: Callable[[str], object]
    loop: asyncio.AbstractEventLoop
    is_registered = False


_doing = _Doing()


def _register() -> None:
    """Tell DBOS, once, what a run is: one workflow with one step, which a cancellation ends."""
    if _doing.is_registered:
        return
    _doing.is_registered = True

    @DBOS.step(name="run", preemptible=True)
    async def step(run_id: str) -> str:
        work = asyncio.run_coroutine_threadsafe(_doing.do(run_id), _doing.loop)
        try:
            # It comes to its end, and tells it, also where nobody waits for that any more.
            await asyncio.shield(asyncio.wrap_future(work))
        except asyncio.CancelledError:
            _doing.loop.call_soon_threadsafe(_doing.stop, run_id)
            raise
        return run_id

    @DBOS.workflow(name=NAME, max_recovery_attempts=MAX_RECOVERIES)
    async def workflow(run_id: str) -> str:
        return await step(run_id)


def tell_troubles(say: Callable[[str], object], database: Database) -> None:
    """Have what DBOS warns of said in a line, and never a password.

    Args:
        say: Is called with each line, from any thread.
        database: Whose password it is.
    """

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            text = record.getMessage() + (f" {type(error).__name__}: {error}" if error else "")
            if any(words in text for words in _EXPECTED):
                return
            said = database.hide(" ".join(text.split()))
            say(f"database: {said:.300}")

    logger = logging.getLogger("dbos")
    logger.handlers = [Handler(logging.WARNING)]
    logger.propagate = False
