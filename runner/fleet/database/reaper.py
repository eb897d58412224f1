"""Takes over the runs of workers that are gone: one in every worker; one acts at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import sqlalchemy as sa

from runner.error import PiRunError
from runner.fleet.database.connect import Database
from runner.fleet.database.engine import Engine
from runner.fleet.database.lease import LOOK_SECONDS, SILENCE_SECONDS, Lease, free, lock_file
from runner.fleet.database.runs import end_orphans
from runner.fleet.database.schema import WORKERS

_LOCK = 0x70692D7265617065
_MINE = sa.select(sa.func.pg_try_advisory_xact_lock(_LOCK))
_FORGET_SECONDS = 86_400
"""After so long the row of a worker that is gone is removed."""


class Reaper:
    """Looks every `LOOK_SECONDS` for workers that are gone.

    Args:
        database: Where the workers are.
        worker: The one that it is in.
        lease: That of this worker.
        engine: Gives runs back to the queue.
        say: Is told of each worker that is gone.
    """

    def __init__(
        self,
        database: Database,
        worker: str,
        lease: Lease,
        engine: Engine,
        say: Callable[[str], object],
    ) -> None:
        self._database = database
        self._worker = worker
        self._lease = lease
        self._engine = engine
        self._say = say
        self._suspects: set[str] = set()
        """Whose lock was free at the last look."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_again, name="pi-run-reaper", daemon=True)

    def begin(self) -> None:
        """Begin to look."""
        self._thread.start()

    def end(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _look_again(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            since = self._lease.since
            # When the database was away all leases were free, and all are taken again just now.
            if not since or time.monotonic() - since < SILENCE_SECONDS:
                self._suspects.clear()
                continue
            try:
                with self._database.told():
                    self.look()
            except PiRunError:  # the lease tells that the database is away, and when it is back
                self._suspects.clear()

    def look(self) -> None:
        """Look once.

        Raises:
            DatabaseError: where the database can't be used.
        """
        gone = self._gone()
        if gone is None:
            return
        for worker in gone:
            self._say(f"{worker} is gone; its runs are taken over")
            if self._database.is_sqlite:
                lock_file(self._database, worker).unlink(missing_ok=True)
        living = self._living()
        # Also those of one that was taken for gone, and took up runs before it heard of that.
        self._engine.recover(sorted(self._engine.busy_workers() - living))
        given_up = self._engine.given_up()
        with self._database.begin() as connection:
            end_orphans(connection, given_up)

    def _gone(self) -> set[str] | None:
        """The workers that are gone since the last look; None where another one looks now."""
        with self._database.begin() as connection:
            if not self._database.is_sqlite and not connection.scalar(_MINE):
                return None
            others = sa.select(WORKERS.c.worker).where(
                WORKERS.c.worker != self._worker, ~WORKERS.c.gone
            )
            found = free(self._database, connection, sorted(connection.scalars(others)))
            gone, self._suspects = found & self._suspects, found
            if gone:
                connection.execute(
                    sa.update(WORKERS).where(WORKERS.c.worker.in_(gone)).values(gone=True)
                )
            old = WORKERS.c.began_at < time.time() - _FORGET_SECONDS
            connection.execute(sa.delete(WORKERS).where(WORKERS.c.gone, old))
            return gone

    def _living(self) -> set[str]:
        with self._database.read() as connection:
            return set(connection.scalars(sa.select(WORKERS.c.worker).where(~WORKERS.c.gone)))


def leave(database: Database, worker: str, engine: Engine) -> None:
    """Give a worker's runs back to the queue, before it ends in order.

    Raises:
        DatabaseError: where the database can't be used; other workers take the runs over then.
    """
    with database.begin() as connection:
        connection.execute(sa.update(WORKERS).where(WORKERS.c.worker == worker).values(gone=True))
    with database.told():
        engine.recover([worker])
