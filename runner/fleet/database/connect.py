"""The database of a fleet by its URL: SQLite for one machine, PostgreSQL for many."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from runner.error import LogError, UsageError

FORMS = "sqlite:///FILE or postgresql://USER@HOST/NAME"
OLDEST_POSTGRES = 14
"""Since this version the server itself ends sessions that have gone silent."""
SILENT_TRANSACTION_MS = 3000
"""After so long the server ends a transaction of a process that was stopped in the middle of it,
so that its locks keep nobody from taking over."""
_BUSY_MS = 30_000
_POOL = 6
_CONNECT_SECONDS = 10
_RETRYABLE = ("08", "40", "53", "57", "25P03")
"""SQLSTATEs, and classes of them, after which the same may well succeed."""


class DatabaseError(LogError):
    """The database can't be reached, or refused something.

    Attributes:
        passing: Whether the same may succeed later, as after a restart of the server.
    """

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing


class Database:
    """A database, with a pool of connections to it.

    Args:
        url: As of ``--database``. Its password is in no text that leaves here.

    Raises:
        UsageError: where the URL is none, or of another kind of database.
    """

    def __init__(self, url: str) -> None:
        self.url = _parsed(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.shown = self.url.render_as_string(hide_password=True)
        """The URL without its password."""
        self.engine = self._sqlite() if self.is_sqlite else self._postgres()

    @property
    def plain_url(self) -> str:
        """The URL without any password, for what needs one but uses `engine`."""
        url = self.url.set(drivername="sqlite" if self.is_sqlite else "postgresql")
        return url._replace(password=None).render_as_string()

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """A transaction; on SQLite no other can write meanwhile.

        Raises:
            DatabaseError: for whatever the database has to say.
        """
        with self.told(), self.engine.connect() as connection, connection.begin():
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection that only reads.

        Raises:
            DatabaseError: for whatever the database has to say.
        """
        with self.told(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def told(self) -> Iterator[None]:
        """Tell what the database, or DBOS, says of it as `DatabaseError`, in one line."""
        try:
            yield
        except SQLAlchemyError as error:
            raise self.error(error) from None
        except sqlite3.Error as error:
            raise DatabaseError(f"{self.shown}: {error}", passing=True) from None

    def error(self, error: SQLAlchemyError) -> DatabaseError:
        """An error of the database as one that people read."""
        said = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        text = " ".join(str(said).split()) or type(said).__name__
        return DatabaseError(f"{self.shown}: {self.hide(text)}", passing=_passes(error))

    def hide(self, text: str) -> str:
        """A text without the password."""
        password = self.url.password
        for secret in (password, quote(password, safe="")) if password else ():
            text = text.replace(secret, "***")
        return text

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    def _sqlite(self) -> sa.Engine:
        engine = sa.create_engine(self.url, pool_size=_POOL, max_overflow=_POOL)

        @sa.event.listens_for(engine, "connect")
        def prepare(connection: Any, _: object) -> None:
            # Before a first write, so that a transaction never finds out in its middle that
            # another one wrote.
            connection.isolation_level = "IMMEDIATE"
            connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA synchronous=NORMAL")
            _use_wal(connection)

        return engine

    def _postgres(self) -> sa.Engine:
        options = self.url.query.get("options", "")
        timeout = f"-c idle_in_transaction_session_timeout={SILENT_TRANSACTION_MS}"
        given = self.url.difference_update_query(["options"])
        return sa.create_engine(
            given.set(drivername="postgresql+psycopg"),
            pool_size=_POOL,
            max_overflow=_POOL,
            pool_pre_ping=True,
            connect_args={
                "application_name": "pi-run",
                "connect_timeout": _CONNECT_SECONDS,
                "options": f"{options if isinstance(options, str) else ''} {timeout}".strip(),
            },
        )


def _use_wal(connection: Any) -> None:
    """Let readers and the one writer not wait for each other.

    SQLite does not wait by itself for others that change the mode at the same time.
    """
    deadline = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _parsed(text: str) -> sa.URL:
    """A URL of a kind that a fleet can have.

    Raises:
        UsageError: where it is none. It is not shown, since there may be a password in it.
    """
    if text.startswith("postgres://"):
        text = text.replace("postgres://", "postgresql://", 1)
    try:
        url = sa.make_url(text)
        kind = url.get_backend_name()
    except (ArgumentError, ValueError):
        raise UsageError(f"--database is no URL of a database; give {FORMS}") from None
    if kind not in ("sqlite", "postgresql"):
        raise UsageError(f"--database is a URL of {kind}; give {FORMS}")
    if kind == "sqlite":
        if not url.database or url.database == ":memory:":
            raise UsageError("--database names no file, as in sqlite:///fleet.db")
        folder = os.path.dirname(os.path.abspath(url.database))
        if not os.path.isdir(folder):
            raise UsageError(f"--database: there is no folder {folder}; make it, or name another")
        return url.set(drivername="sqlite", database=os.path.abspath(url.database))
    if not url.database:
        raise UsageError(f"--database names no database; give {FORMS}")
    return url.set(drivername="postgresql")


def _passes(error: SQLAlchemyError) -> bool:
    if isinstance(error, PoolTimeout):
        return True
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    if error.connection_invalidated or (state or "").startswith(_RETRYABLE):
        return True
    # Without a state it is about the connection itself; so is all that SQLite calls operational.
    return state is None and type(error.orig).__name__ in ("OperationalError", "InterfaceError")
