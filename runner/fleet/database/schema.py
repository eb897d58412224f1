"""The tables of a fleet, beside those of DBOS."""

from __future__ import annotations

import sqlalchemy as sa

from runner.error import UsageError
from runner.fleet.database.connect import OLDEST_POSTGRES, Database

FORMAT = "pi-run-fleet/1"
_LOCK = 0x70692D72756E
"""Who makes the tables holds this lock, so that two workers can begin at the same time."""

METADATA = sa.MetaData()

FORMATS = sa.Table("pi_run_format", METADATA, sa.Column("format", sa.Text, primary_key=True))

WORKERS = sa.Table(
    "pi_run_workers",
    METADATA,
    sa.Column("worker", sa.Text, primary_key=True),
    sa.Column("at_once", sa.Integer, nullable=False),
    sa.Column("began_at", sa.Float, nullable=False),
    # One that is gone stays so, however alive it may be: it can own no run any more.
    sa.Column("gone", sa.Boolean, nullable=False, default=False),
)

BUNDLES = sa.Table(
    "pi_run_bundles",
    METADATA,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
)

RUNS = sa.Table(
    "pi_run_runs",
    METADATA,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("batch", sa.Text, nullable=False),
    sa.Column("place", sa.BigInteger, nullable=False),
    sa.Column("bundle", sa.Text, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
    # What `Job` says of it, as JSON.
    sa.Column("job", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    # The worker that may append to its log.
    sa.Column("owner", sa.Text),
    sa.Column("claims", sa.Integer, nullable=False, default=0),
    sa.Column("cancelled", sa.Boolean, nullable=False, default=False),
    # How it is done again: "anew", without its log, or "on" from the end that its log has.
    sa.Column("again", sa.Text),
    sa.Column("claimed_at", sa.Float),
    sa.Column("ended_at", sa.Float),
    sa.Column("status", sa.Text),
    sa.Column("exit_code", sa.Integer),
    # What came of it, as of `Outcome`, as JSON.
    sa.Column("outcome", sa.Text),
    sa.Index("pi_run_runs_owner", "owner"),
    sa.Index("pi_run_runs_ended_at", "ended_at"),
    sa.Index("pi_run_runs_created_at", "created_at", "place"),
)

LINES = sa.Table(
    "pi_run_lines",
    METADATA,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True),
    sa.Column("line", sa.Text, nullable=False),
)


def create_tables(database: Database) -> None:
    """Make the tables where they are not there yet.

    Raises:
        UsageError: where they are those of another version, or the server is too old.
        DatabaseError: where the database can't be used.
    """
    with database.begin() as connection:
        if not database.is_sqlite:
            _hold_version(database, connection)
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        METADATA.create_all(connection)
        found = set(connection.scalars(sa.select(FORMATS.c.format)))
        if not found:
            connection.execute(sa.insert(FORMATS).values(format=FORMAT))
        elif found != {FORMAT}:
            raise UsageError(
                f"{database.shown}: its fleet is of {', '.join(sorted(found))}, and this pi-run "
                f"knows {FORMAT}; use the pi-run of all its workers, or another database"
            )


def _hold_version(database: Database, connection: sa.Connection) -> None:
    number = int(connection.scalar(sa.text("SHOW server_version_num")) or 0)
    if number < OLDEST_POSTGRES * 10_000:
        raise UsageError(
            f"{database.shown}: its PostgreSQL is {number // 10_000}; {OLDEST_POSTGRES} or newer "
            "is needed, since only that ends the sessions of machines that went silent"
        )
