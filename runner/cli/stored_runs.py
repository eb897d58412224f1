"""``pi-run runs``: the runs in a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from runner.cli.command import Command, format_option
from runner.cli.database import database_option, opened
from runner.cli.streams import Streams
from runner.error import LogError, UsageError

if TYPE_CHECKING:
    from runner.fleet.database.connect import Database

_STATES = (
    *("waiting", "running", "cancelling"),
    *("ok", "failed", "error", "limit", "denied", "aborted"),
)


@click.group(
    epilog="""\b
Examples:
  pi-run runs list --database sqlite:///fleet.db --state failed
  pi-run runs export 3f2a --database sqlite:///fleet.db > run.jsonl && pi-run show run.jsonl

ID is a run's id, or the beginning of one."""
)
def command() -> None:
    """List, cancel, retry and export the runs in a database."""


_IDS = click.argument("ids", metavar="ID...", nargs=-1)
_BATCH = click.option("--batch", metavar="NAME", help="All runs of a batch.")


@command.command("list", cls=Command, epilog="Example:\n  pi-run runs list --state running")
@database_option(required=True)
@click.option(
    "--state",
    "states",
    type=click.Choice(_STATES),
    multiple=True,
    help="Only runs of this state; can be given more than once.",
)
@click.option("--batch", metavar="NAME", help="Only runs of this batch.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="How many at most, the last first.",
)
@format_option("jsonl")
@click.pass_obj
def list_(
    streams: Streams,
    /,
    database: str,
    states: tuple[str, ...],
    batch: str | None,
    limit: int,
    form: str,
) -> int:
    """List runs, the last that were put in first."""
    from runner import json_text

    with opened(database, there=True) as store:
        from runner.fleet.database import listed
        from runner.fleet.database.schema import create_tables
        from runner.fleet.database.told import table

        create_tables(store)
        found = listed.every(store, states=states, batch=batch, limit=limit)
        if form == "json":
            streams.line(json_text.line([each.as_json() for each in found]))
        elif form == "jsonl":
            for each in found:
                streams.line(json_text.line(each.as_json()))
        else:
            for line in table(found):
                streams.result(line)
    return 0


@command.command("show", cls=Command, epilog="Example:\n  pi-run runs show 3f2a")
@click.argument("name", metavar="ID")
@database_option(required=True)
@format_option()
@click.pass_obj
def show(streams: Streams, /, name: str, database: str, form: str) -> int:
    """Show what a run is to do, where it is, and what came of it."""
    from runner import json_text

    with opened(database, there=True) as store:
        from runner.fleet.database import listed
        from runner.fleet.database.schema import create_tables
        from runner.fleet.database.told import account

        create_tables(store)
        run = listed.find(store, [name])[0]
        if form == "json":
            streams.line(json_text.line(run.as_json()))
        else:
            streams.result("\n".join(account(run)))
    return 0


@command.command("export", cls=Command, epilog="Example:\n  pi-run runs export 3f2a > run.jsonl")
@click.argument("name", metavar="ID")
@database_option(required=True)
@click.pass_obj
def export(streams: Streams, /, name: str, database: str) -> int:
    """Print a run's log, as a file that every other command reads.

    That of a run under way ends where it is.
    """
    with opened(database, there=True) as store:
        from runner.fleet.database import listed
        from runner.fleet.database.lines import read_lines
        from runner.fleet.database.schema import create_tables

        create_tables(store)
        run = listed.find(store, [name])[0]
        empty = True
        for line in read_lines(store, run.run_id):
            streams.line(line)
            empty = False
        if empty:
            why = run.outcome.error if run.outcome is not None else f"it is {run.state}"
            raise LogError(f"{run.run_id}: there is no log of it yet: {why}")
    return 0


@command.command("cancel", cls=Command, epilog="Example:\n  pi-run runs cancel --batch triage")
@_IDS
@database_option(required=True)
@_BATCH
@click.pass_obj
def cancel(streams: Streams, /, ids: tuple[str, ...], database: str, batch: str | None) -> int:
    """Stop runs: those under way within a second, those that wait at once."""
    with opened(database, there=True) as store:
        from runner.fleet.database.store import FleetControl

        control = FleetControl(store)
        wanted = _wanted(store, ids, batch, ("waiting", "running"))
        found = control.cancel(wanted)
        streams.result(f"{len(found)} of {len(wanted)} cancelled")
    return 0


@command.command("retry", cls=Command, epilog="Example:\n  pi-run runs retry --batch triage")
@_IDS
@database_option(required=True)
@_BATCH
@click.pass_obj
def retry(streams: Streams, /, ids: tuple[str, ...], database: str, batch: str | None) -> int:
    """Have runs done again that did not end well.

    One that broke off by an error, or was cancelled, goes on by its log; what was done, and done
    wrong, begins anew.
    """
    with opened(database, there=True) as store:
        from runner.fleet.database.store import FleetControl

        control = FleetControl(store)
        states = ("failed", "error", "limit", "denied", "aborted")
        wanted = _wanted(store, ids, batch, states)
        found = control.retry(wanted)
        streams.result(f"{len(found)} of {len(wanted)} to be done again")
    return 0


def _wanted(
    database: Database, ids: tuple[str, ...], batch: str | None, states: tuple[str, ...]
) -> list[str]:
    """The ids that a command names."""
    from runner.fleet.database import listed

    if bool(ids) == (batch is not None):
        raise UsageError("name runs by their ids, or a batch with --batch; see pi-run runs list")
    if batch is None:
        return [run.run_id for run in listed.find(database, ids)]
    if not any(True for _ in listed.every(database, batch=batch, limit=1)):
        raise UsageError(f"there is no batch {batch!r}; see pi-run runs list")
    return [run.run_id for run in listed.every(database, batch=batch, states=states)]
