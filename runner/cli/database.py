"""What the commands that work with a database have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner.error import UsageError

if TYPE_CHECKING:
    from runner.fleet.database.connect import Database

_F = TypeVar("_F", bound=Callable[..., Any])


def database_option(*, required: bool) -> Callable[[_F], _F]:
    """Let a command take a database, by an option or the environment."""
    return click.option(
        "--database",
        metavar="URL",
        required=required,
        show_envvar=True,
        help="sqlite:///FILE for one machine, postgresql://USER@HOST/NAME for many. With a "
        "password in it rather in PI_RUN_DATABASE, where other users can't see it.",
    )


@contextmanager
def opened(url: str, *, there: bool = False) -> Iterator[Database]:
    """The database, until it is no longer needed.

    Args:
        url: Its URL.
        there: Whether it has to be there, and is not to be made.

    Raises:
        UsageError: where it is none, or the extra is not installed.
    """
    from runner.fleet.database import open_database

    database = open_database(url)
    try:
        if there and database.is_sqlite and not os.path.exists(str(database.url.database)):
            raise UsageError(f"{database.shown}: there is no such database; look at its path")
        yield database
    finally:
        database.close()
