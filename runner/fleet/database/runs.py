"""The runs in the database: what each is to do, whose it is, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import sqlalchemy as sa

from runner import json_text
from runner.engine.message import no_usage
from runner.error import UsageError
from runner.fleet.contract import Job, Outcome
from runner.fleet.database import lines
from runner.fleet.database.connect import Database
from runner.fleet.database.schema import BUNDLES, RUNS, WORKERS

CANCELLED = "it was cancelled"
_SOME = 5
"""Runs that an error names."""
_BLOCK = 500
_OUTCOME = frozenset(field.name for field in fields(Outcome))


@dataclass(slots=True)
class Stored:
    """A run as it is in the database."""

    run_id: str
    batch: str
    spec: str
    """The spec's name."""
    bundle: str
    """The digest of what the spec travels in."""
    job: Job
    state: str
    """``waiting``, ``running`` or ``cancelling``; of one that ended its status."""
    worker: str | None
    """The last that had it."""
    claims: int
    """How often a worker took it up."""
    created_at: float
    """Seconds since 1970, as all times here."""
    claimed_at: float | None
    ended_at: float | None
    outcome: Outcome | None
    """What came of it; None of one that did not end."""
    goes_on: bool = False
    """Whether it goes on from the end that its log has."""

    def as_json(self) -> dict[str, Any]:
        """All of it, for people and programs."""
        told: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("run_id", "batch", "spec", "state", "worker", "claims")
        }
        told |= {"created_at": self.created_at, "claimed_at": self.claimed_at}
        told |= {"ended_at": self.ended_at, "inputs": self.job.inputs, "number": self.job.number}
        outcome = None
        if self.outcome is not None:
            left_out = ("key", "row_key", "spec", "line", "number", "inputs", "log", "log_bytes")
            kept = {k: v for k, v in asdict(self.outcome).items() if k not in left_out}
            outcome = {k: v for k, v in kept.items() if k != "done"}
        return told | {"outcome": outcome}


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
        return Claim("do", _stored(row))


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
    outcome = outcome_of(_stored(row), status, 3, error=error)
    connection.execute(_ended(outcome).where(RUNS.c.run_id == row.run_id))


def outcome_of(run: Stored, status: str, exit_code: int, **more: Any) -> Outcome:
    """An outcome of a run, which has no secret input.

    Args:
        run: Which.
        status: As of a run.
        exit_code: The same.
        more: What else is known.
    """
    job = run.job
    known: dict[str, Any] = {"usage": no_usage()} | more
    return Outcome(
        key=job.key,
        row_key=job.row_key,
        spec=run.spec,
        line=job.line,
        number=job.number,
        inputs=job.inputs,
        status=status,
        exit_code=exit_code,
        **known,
    )


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
            found.append(_stored(rows[0]))
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
            yield _stored(row)
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
                found[row.run_id] = _outcome(row.outcome)
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


def _stored(row: Any) -> Stored:
    job = Job(**json_text.parse(row.job))
    outcome = None if row.outcome is None else _outcome(row.outcome)
    state = "waiting" if row.owner is None else "running"
    if row.cancelled:
        state = "cancelling"
    return Stored(
        run_id=row.run_id,
        batch=row.batch,
        spec=row.spec,
        bundle=row.bundle,
        job=job,
        state=state if outcome is None else outcome.status,
        worker=row.owner,
        claims=row.claims,
        created_at=row.created_at,
        claimed_at=row.claimed_at,
        ended_at=row.ended_at,
        outcome=outcome,
        goes_on=row.again == "on",
    )


def _outcome(text: str) -> Outcome:
    told = json_text.parse(text)
    return Outcome(**{name: told[name] for name in told.keys() & _OUTCOME})
