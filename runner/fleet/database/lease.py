"""What shows that a worker lives: a lock that is free as soon as it does not.

On PostgreSQL it is the lock of a session that the server ends when nothing is heard of it, so that
a machine that is stopped, or can't be reached, loses it as well. On SQLite it is the lock of a file
beside the database: there a worker that is stopped keeps its runs until it goes on or is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from runner.error import describe
from runner.fleet.database.connect import Database, DatabaseError
from runner.fleet.database.schema import RUNS, WORKERS

SILENCE_SECONDS = 2.0
"""After so long without a word the server takes a worker for gone."""
LOOK_SECONDS = 0.4
"""How often a worker is heard of, and asks what was cancelled."""
CHANNEL = "pi_run_cancel"
"""Where it is told at once that something was cancelled."""
_ALIVE = f"SELECT 1 FROM {WORKERS.name} WHERE worker = :worker AND NOT gone"
_CANCELLED = (
    f"SELECT run_id FROM {RUNS.name} WHERE owner = :worker AND cancelled AND outcome IS NULL"
)
_AGAIN_SECONDS = 0.2
_END_SECONDS = 5.0


class Lease:
    """A worker's lock, held by a thread of its own.

    Args:
        database: Where it is a worker.
        worker: Its name, which no other has or had.
        at_once: How many runs it does at a time.
        cancelled: Is called in that thread with the ids of its runs that were cancelled, again and
            again until they have ended.
        lost: Is called once in that thread when the worker was taken for gone.
    """

    def __init__(
        self,
        database: Database,
        worker: str,
        at_once: int,
        cancelled: Callable[[set[str]], object],
        lost: Callable[[], object],
    ) -> None:
        self.since = 0.0
        """Since when it is held without a break, as of ``time.monotonic``; 0 where it is not."""
        self._database = database
        self._worker = worker
        self._at_once = at_once
        self._cancelled = cancelled
        self._lost = lost
        self._stop = threading.Event()
        self._held = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._hold, name="pi-run-lease", daemon=True)

    def begin(self) -> None:
        """Take the lock, and make the worker known.

        Raises:
            DatabaseError: where the database can't be used.
        """
        self._thread.start()
        if not self._held.wait(_END_SECONDS) or self._error is not None:
            self._stop.set()
            why = "no answer" if self._error is None else describe(self._error)
            text = self._database.hide(" ".join(why.split()))
            raise DatabaseError(f"{self._database.shown}: {text}", passing=True)

    def end(self) -> None:
        """Let go of it."""
        self._stop.set()
        self._thread.join(_END_SECONDS)

    def _hold(self) -> None:
        while not self._stop.is_set():
            try:
                with self._lock():
                    if not self._held.is_set():
                        # Only now: a worker whose lock is free is taken for gone.
                        self._register()
                    self.since = time.monotonic()
                    self._held.set()
                    self._watch()
            except Exception as error:  # the database is away; until it is back nothing is held
                if not self._held.is_set():
                    self._error = error
                    self._held.set()
                    return
            finally:
                self.since = 0.0
            self._stop.wait(_AGAIN_SECONDS)

    def _register(self) -> None:
        row = {"worker": self._worker, "at_once": self._at_once, "began_at": time.time()}
        with self._database.begin() as connection:
            connection.execute(sa.insert(WORKERS).values(**row, gone=False))

    def _watch(self) -> None:
        while not self._stop.is_set():
            # It may have been stopped for so long that it was taken for gone.
            alive, cancelled = self._look()
            if not alive:
                self._stop.set()
                self._lost()
            elif cancelled:
                self._cancelled(cancelled)
            if not self._stop.is_set():
                self._wait()

    def _lock(self) -> contextlib.AbstractContextManager[object]:
        """The lock, taken.

        Raises:
            Exception: where it can't be had now.
        """
        raise NotImplementedError

    def _look(self) -> tuple[bool, set[str]]:
        """Whether the worker is not taken for gone, and those of its runs that were cancelled.

        Raises:
            Exception: where the lock was lost.
        """
        raise NotImplementedError

    def _wait(self) -> None:
        """Wait for news, but no longer than `LOOK_SECONDS`.

        Raises:
            Exception: where the lock was lost.
        """
        raise NotImplementedError


class FileLease(Lease):
    """A lock of a file beside an SQLite database."""

    @contextlib.contextmanager
    def _lock(self) -> Any:
        path = lock_file(self._database, self._worker)
        path.parent.mkdir(exist_ok=True)
        # Not to be had by the programs that the worker starts, which may outlive it.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def _look(self) -> tuple[bool, set[str]]:
        try:
            with self._database.read() as connection:
                alive = connection.scalar(sa.text(_ALIVE), {"worker": self._worker}) is not None
                found = connection.scalars(sa.text(_CANCELLED), {"worker": self._worker})
                return alive, set(found)
        except DatabaseError:
            # The lock is not the database's, and is held on.
            return True, set()

    def _wait(self) -> None:
        self._stop.wait(LOOK_SECONDS)


class PostgresLease(Lease):
    """An advisory lock of a session of PostgreSQL."""

    _session: Any = None

    def _look(self) -> tuple[bool, set[str]]:
        # By the session that holds the lock: this is also what the server hears of the worker.
        alive = self._session.execute(_ALIVE.replace(":worker", "%s"), (self._worker,)).fetchone()
        found = self._session.execute(_CANCELLED.replace(":worker", "%s"), (self._worker,))
        return alive is not None, {row[0] for row in found}

    @contextlib.contextmanager
    def _lock(self) -> Any:
        import psycopg

        engine = self._database.engine
        words, known = engine.dialect.create_connect_args(engine.url)
        options = {**known, "application_name": "pi-run lease", "connect_timeout": 10}
        with psycopg.connect(*words, **options, autocommit=True) as session:
            session.execute(f"SET idle_session_timeout = {int(SILENCE_SECONDS * 1000)}")
            row = session.execute(
                "SELECT pg_try_advisory_lock(%s)", (key(self._worker),)
            ).fetchone()
            if row is None or not row[0]:
                raise LookupError("the session before this one has not ended yet")
            session.execute(f"LISTEN {CHANNEL}")
            self._session = session
            yield

    def _wait(self) -> None:
        for _ in self._session.notifies(timeout=LOOK_SECONDS, stop_after=1):
            pass


def lease_of(
    database: Database,
    worker: str,
    at_once: int,
    cancelled: Callable[[set[str]], object],
    lost: Callable[[], object],
) -> Lease:
    """The lease that a database has; see `Lease`."""
    kind = FileLease if database.is_sqlite else PostgresLease
    return kind(database, worker, at_once, cancelled, lost)


def free(database: Database, connection: sa.Connection, workers: Sequence[str]) -> set[str]:
    """Of workers those whose lock is free.

    On PostgreSQL these locks are taken until the transaction's end, so that it stays like that.
    """
    if database.is_sqlite:
        return {worker for worker in workers if _is_free(lock_file(database, worker))}
    return {
        worker
        for worker in workers
        if connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(key(worker))))
    }


def tell_cancelled(database: Database, connection: sa.Connection) -> None:
    """Have workers look at once for what was cancelled, when this transaction ends."""
    if not database.is_sqlite:
        connection.exec_driver_sql(f"NOTIFY {CHANNEL}")


def lock_file(database: Database, worker: str) -> Path:
    """The file whose lock a worker holds."""
    return Path(f"{database.url.database}.workers") / worker


def key(worker: str) -> int:
    """A worker's advisory lock."""
    digest = hashlib.sha256(f"pi-run worker {worker}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _is_free(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
