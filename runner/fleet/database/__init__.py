"""A fleet: the runs of batches in a database, done by any number of workers (the extra ``fleet``).

How it goes: `store` puts specs (a `bundle` each) and `runs` into the database → DBOS, behind
`engine`, hands each run to one `worker` → which does it (`one`) and `appends` its log, line by line
→ what came of it is `listed`, and read by `store`. What DBOS leaves to others is here: each worker
holds a `lease`, and in each a `reaper` takes over the runs of those whose lease is free.

Nothing here is imported where no database is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.error import UsageError

if TYPE_CHECKING:
    from runner.fleet.database.connect import Database


def open_database(url: str) -> Database:
    """The database of a fleet.

    Args:
        url: ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``.

    Raises:
        UsageError: where it is none, or the extra is not installed.
    """
    from importlib.util import find_spec

    if missing := [name for name in ("dbos", "psycopg", "sqlalchemy") if find_spec(name) is None]:
        raise UsageError(
            f"--database needs {' and '.join(missing)}, which is not installed; "
            "pip install 'pi-run[fleet]'"
        )
    from runner.fleet.database.connect import Database

    return Database(url)
