"""The runs in the database: what each is to do, whose it is, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import sqlalchemy as sa

from runner import json_text
from runner.fleet.contract import Job, Outcome
from runner.fleet.database import lines
from runner.fleet.database.connect import Database
from runner.fleet.database.schema import BUNDLES, RUNS, WORKERS
from runner.fleet.database.stored import Stored, stored

CANCELLED = "it was cancelled"


@dataclass(slots=True)
class Claim:
    """What a worker may do with a run that was handed to it."""

    kind: Literal["do", "over", "lost"]
    """``do``: it is the worker's. ``over``: it ended, or is not to be done. ``lost``: the worker
    was taken for gone, and can own nothing."""
    run: Stored | None = None


def add(
    connection: sa.Connection,
    rows: Sequence[tuple[Job, str, str]],
    batch: str,
    first: int,
) -> set[str]:
    """Put runs into the database; those that are there stay as they are.

    Args:
        connection: In a transaction.
        rows: Each a run, the name of its spec and the digest of its bundle.
        batch: What they are called together.
        first: The place of the first among those of the batch.

    Returns:
        The ids of those that were not there.
    """
    now = time.time()
    values = [
        {
            "run_id": job.key,
            "batch": batch,
            "place": first + index,
            "bundle": bundle,
            "spec": spec,
            "job": json_text.line(asdict(job)),
            "created_at": now,
            "claims": 0,
            "cancelled": False,
        }
        for index, (job, spec, bundle) in enumerate(rows)
    ]
    known = set(
        connection.scalars(
            sa.select(RUNS.c.run_id).where(RUNS.c.run_id.in_([job.key for job, _, _ in rows]))
        )
    )
    new = [each for each in values if each["run_id"] not in known]
    if not new:
        return set()
    statement = _insert(connection)(RUNS).on_conflict_do_nothing(index_elements=["run_id"])
    connection.execute(statement, new)
    return {job.key for job, _, _ in rows} - known


def add_bundle(connection: sa.Connection, digest: str, content: str) -> None:
    """Keep what a spec travels in."""
    statement = _insert(connection)(BUNDLES).on_conflict_do_nothing(index_elements=["digest"])
    connection.execute(statement, [{"digest": digest, "content": content}])


def _insert(connection: sa.Connection) -> Any:
    from sqlalchemy.dialects import postgresql, sqlite

    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert


def bundle(database: Database, digest: str) -> str:
    """What a spec travels in, as `add_bundle` took it.

    Raises:
        DatabaseError: where it can't be read.
    """
    with database.read() as connection:
        return str(
            connection.scalar(sa.select(BUNDLES.c.content).where(BUNDLES.c.digest == digest))
        )


# --- workers --------------------------------------------------------------------------------------


def claim(database: Database, run_id: str, worker: str) -> Claim:
    """Make a run a worker's own. From here on no one who had it before can add to its log.

    Raises:
        DatabaseError: where it fails; the same call can be made again.
    """
    with database.begin() as connection:
        # Held to the end, so that nobody takes the worker for gone in between.
        alive = sa.select(WORKERS.c.worker).where(WORKERS.c.worker == worker, ~WORKERS.c.gone)
        if connection.scalar(alive.with_for_update(read=True)) is None:
            return Claim("lost")
        row = connection.execute(
            sa.select(RUNS).where(RUNS.c.run_id == run_id).with_for_update()
        ).one_or_none()
        if row is None or row.outcome is not None or row.cancelled:
            return Claim("over")
        again = row.again
        if again == "anew":
            lines.remove(connection, [run_id])
            again = None
        connection.execute(
            sa.update(RUNS)
            .where(RUNS.c.run_id == run_id)
            .values(owner=worker, claims=RUNS.c.claims + 1, again=again, claimed_at=time.time())
        )
        return Claim("do", stored(row))


def finish(database: Database, worker: str, outcome: Outcome) -> bool:
    """Keep what came of a run; gives whether it was still the worker's.

    Raises:
        DatabaseError: where it fails; the same call can be made again.
    """
    with database.begin() as connection:
        mine = sa.and_(RUNS.c.run_id == outcome.key, RUNS.c.owner == worker)
        done = connection.execute(_ended(outcome).where(mine))
        return done.rowcount > 0


def _ended(outcome: Outcome) -> sa.Update:
    return sa.update(RUNS).values(
        outcome=json_text.line(asdict(outcome)),
        status=outcome.status,
        exit_code=outcome.exit_code,
        ended_at=time.time(),
        again=None,
    )


def end_orphans(connection: sa.Connection, given_up: Sequence[str] = ()) -> None:
    """Say what became of runs that nobody will do any more.

    Args:
        connection: In a transaction.
        given_up: The ids of those that were tried too often.
    """
    living = sa.select(WORKERS.c.worker).where(~WORKERS.c.gone)
    nobodys = sa.or_(RUNS.c.owner.is_(None), RUNS.c.owner.not_in(living))
    wanted = sa.select(RUNS).where(RUNS.c.cancelled, RUNS.c.outcome.is_(None), nobodys)
    for row in connection.execute(wanted).all():
        _end(connection, row, "aborted", f"{CANCELLED} before it ended")
    if given_up:
        wanted = sa.select(RUNS).where(RUNS.c.run_id.in_(given_up), RUNS.c.outcome.is_(None))
        for row in connection.execute(wanted).all():
            text = f"its worker died {row.claims} times; look at what it does, then retry it"
            _end(connection, row, "error", text)


def _end(connection: sa.Connection, row: Any, status: str, error: str) -> None:
    outcome = stored(row).outcome_as(status=status, exit_code=3, error=error)
    connection.execute(_ended(outcome).where(RUNS.c.run_id == row.run_id))


# --- people ---------------------------------------------------------------------------------------


def cancel(connection: sa.Connection, runs: Sequence[str]) -> set[str]:
    """Have runs not be done, or not to their end; gives those that had not ended."""
    wanted = sa.select(RUNS.c.run_id).where(RUNS.c.run_id.in_(runs), RUNS.c.outcome.is_(None))
    found = set(connection.scalars(wanted.order_by(RUNS.c.run_id).with_for_update()))
    if found:
        connection.execute(sa.update(RUNS).where(RUNS.c.run_id.in_(found)).values(cancelled=True))
    return found


def renew(connection: sa.Connection, runs: Sequence[str]) -> set[str]:
    """Have runs done again that ended and were not good; gives those that are to be done.

    One that broke off by an error, or was aborted, goes on by its log. What was done, and done
    wrong, begins anew.
    """
    wanted = sa.select(RUNS).where(RUNS.c.run_id.in_(runs)).order_by(RUNS.c.run_id)
    todo: set[str] = set()
    for row in connection.execute(wanted.with_for_update()).all():
        if row.outcome is None or row.exit_code == 0:
            continue
        todo.add(row.run_id)
        connection.execute(
            sa.update(RUNS)
            .where(RUNS.c.run_id == row.run_id)
            .values(
                owner=None,
                cancelled=False,
                again="on" if row.status in ("error", "aborted") else "anew",
                outcome=None,
                status=None,
                exit_code=None,
                ended_at=None,
            )
        )
    return todo
