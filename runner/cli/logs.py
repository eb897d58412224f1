"""``pi-run logs``."""

from __future__ import annotations

import os

import click

from runner.cli.command import Command, format_option
from runner.cli.streams import Streams
from runner.error import UsageError


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run logs
  pi-run logs --incomplete
  pi-run logs runs""",
)
@click.argument("directory", required=False, metavar="[DIR]")
@click.option("--incomplete", is_flag=True, help="Only those of runs that did not end.")
@format_option(help="A table, or a JSON list.")
@click.pass_obj
def command(streams: Streams, /, directory: str | None, incomplete: bool, form: str) -> int:
    """List the logs below .pi-run, or in DIR, the oldest first."""
    from runner import json_text
    from runner.log.find import logs
    from runner.log.place import FOLDER

    if directory is not None and not os.path.isdir(directory):
        raise UsageError(f"{directory}: there is no such folder")
    found = logs(FOLDER if directory is None else directory)
    entries = [entry for entry in found if entry.incomplete or not incomplete]
    rows = [
        {
            "run_id": entry.run_id,
            "name": entry.name,
            "status": entry.status,
            "started_at": entry.started_at.isoformat(timespec="seconds"),
            "turns": entry.turns,
            "cost_usd": entry.cost_usd,
            "seconds": entry.seconds,
            "path": str(entry.path),
        }
        for entry in entries
    ]
    if form == "json":
        streams.line(json_text.line(rows))
    elif rows:
        streams.result(
            "\n".join(
                f"{row['started_at']}  {row['run_id']:<14} {row['status'] or 'incomplete':<10} "
                f"{row['path']}"
                for row in rows
            )
        )
    return 0
