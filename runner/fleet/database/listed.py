"""The runs in the database as people look at them: by ids, of a state, with what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import sqlalchemy as sa

from runner.error import UsageError
from runner.fleet.contract import Outcome
from runner.fleet.database.connect import Database
from runner.fleet.database.schema import RUNS
from runner.fleet.database.stored import Stored, outcome, stored

_SOME = 5
"""Runs that an error names."""
_BLOCK = 500


def find(database: Database, names: Sequence[str]) -> list[Stored]:
    """Runs by their ids, or the beginnings of them.

    Raises:
        UsageError: where there is none, or more than one.
        DatabaseError: where they can't be read.
    """
    found = []
    with database.read() as connection:
        for name in names:
            like = RUNS.c.run_id.startswith(name, autoescape=True)
            rows = connection.execute(sa.select(RUNS).where(like).limit(_SOME + 1)).all()
            if not rows or not name:
                raise UsageError(
                    f"{database.shown}: there is no run {name!r}; see pi-run runs list"
                )
            if len(rows) > 1:
                some = ", ".join(row.run_id for row in rows[:_SOME])
                raise UsageError(f"{name}: more than one run begins like that: {some} …")
            found.append(stored(rows[0]))
    return found


def every(
    database: Database,
    *,
    states: Iterable[str] = (),
    batch: str | None = None,
    limit: int | None = None,
) -> Iterator[Stored]:
    """Runs, the last that were put in first.

    Raises:
        DatabaseError: where they can't be read.
    """
    wanted, given = set(states), 0
    order = (RUNS.c.created_at.desc(), RUNS.c.place, RUNS.c.run_id)
    query = sa.select(RUNS).order_by(*order)
    if batch is not None:
        query = query.where(RUNS.c.batch == batch)
    if wanted:
        query = query.where(_state().in_(wanted))
    offset = 0
    while True:
        size = _BLOCK if limit is None else min(_BLOCK, limit - given)
        with database.read() as connection:
            rows = connection.execute(query.limit(size).offset(offset)).all()
        for row in rows:
            yield stored(row)
        given, offset = given + len(rows), offset + len(rows)
        if len(rows) < size or given == limit:
            return


def outcomes(database: Database, keys: Sequence[str]) -> dict[str, Outcome]:
    """What came of runs, of those that ended.

    Raises:
        DatabaseError: where it can't be read.
    """
    wanted = sa.select(RUNS.c.run_id, RUNS.c.outcome).where(RUNS.c.outcome.is_not(None))
    found: dict[str, Outcome] = {}
    with database.read() as connection:
        for start in range(0, len(keys), _BLOCK):
            part = wanted.where(RUNS.c.run_id.in_(keys[start : start + _BLOCK]))
            for row in connection.execute(part):
                found[row.run_id] = outcome(row.outcome)
    return found


def is_idle(database: Database) -> bool:
    """Whether no run waits or is under way, of any worker.

    Raises:
        DatabaseError: where that can't be read.
    """
    with database.read() as connection:
        query = sa.select(RUNS.c.run_id).where(RUNS.c.ended_at.is_(None)).limit(1)
        return connection.scalar(query) is None


def _state() -> sa.ColumnElement[str]:
    return sa.case(
        (RUNS.c.outcome.is_not(None), RUNS.c.status),
        (RUNS.c.cancelled, "cancelling"),
        (RUNS.c.owner.is_(None), "waiting"),
        else_="running",
    )
