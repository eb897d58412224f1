"""The logs of runs in the database: a row a line, and who may add one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import sqlalchemy as sa

from runner.fleet.database.connect import Database
from runner.fleet.database.schema import LINES, RUNS

Line = tuple[str, int, str]
"""A run's id, the line's ``seq``, and its text without the line break."""
_BLOCK = 500
"""Lines that are read at once."""
_ROWS = 1000
"""Rows of one statement, for which SQLite has room."""


def append(database: Database, owner: str, lines: Sequence[Line]) -> set[str]:
    """Add lines to the logs of any number of runs, all of them or none.

    That of a run which `owner` does not own any more is left as it is.

    Args:
        database: Where they are kept.
        owner: The worker that writes.
        lines: In order.

    Returns:
        The ids of the runs that `owner` may not write to.

    Raises:
        DatabaseError: where it fails; whether the lines are there is then not known, and the same
            call can be made again.
    """
    runs = sorted({run_id for run_id, _, _ in lines})
    with database.begin() as connection:
        # Held to the end: nobody can take over in between. In order, so that two never wait for
        # each other.
        owned = sa.select(RUNS.c.run_id).where(RUNS.c.run_id.in_(runs), RUNS.c.owner == owner)
        held = set(connection.scalars(owned.order_by(RUNS.c.run_id).with_for_update(read=True)))
        rest = [line for line in lines if line[0] in held]
        added = _insert(database, connection, rest) if rest else 0
        if added < len(rest):
            # Written by this very call, when the answer to it was lost; or by another owner.
            held -= {line[0] for line in rest if not _is_there(connection, line)}
    return set(runs) - held


def _insert(database: Database, connection: sa.Connection, lines: Sequence[Line]) -> int:
    if not database.is_sqlite:
        # One statement of one text, whatever the number of lines.
        done = connection.exec_driver_sql(
            f"INSERT INTO {LINES.name} (run_id, seq, line) "
            "SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[]) ON CONFLICT DO NOTHING",
            tuple(map(list, zip(*lines, strict=True))),
        )
        return done.rowcount
    added = 0
    for start in range(0, len(lines), _ROWS):
        part = lines[start : start + _ROWS]
        rows = ",".join(["(?,?,?)"] * len(part))
        done = connection.exec_driver_sql(
            f"INSERT OR IGNORE INTO {LINES.name} (run_id, seq, line) VALUES {rows}",
            tuple(value for line in part for value in line),
        )
        added += done.rowcount
    return added


def _is_there(connection: sa.Connection, line: Line) -> bool:
    run_id, seq, text = line
    same = sa.select(LINES.c.line).where(LINES.c.run_id == run_id, LINES.c.seq == seq)
    return connection.scalar(same) == text


def read_lines(database: Database, run_id: str) -> Iterator[str]:
    """The lines of a log, in constant memory.

    Raises:
        DatabaseError: where they can't be read.
    """
    last = -1
    while True:
        wanted = sa.select(LINES.c.seq, LINES.c.line).where(
            LINES.c.run_id == run_id, LINES.c.seq > last
        )
        with database.read() as connection:
            rows = connection.execute(wanted.order_by(LINES.c.seq).limit(_BLOCK)).all()
        for row in rows:
            yield row.line
        if len(rows) < _BLOCK:
            return
        last = rows[-1].seq


def remove(connection: sa.Connection, runs: Iterable[str]) -> None:
    """Remove the logs of runs."""
    connection.execute(sa.delete(LINES).where(LINES.c.run_id.in_(list(runs))))
