"""``pi-run resume``."""

from __future__ import annotations

from typing import Any

import click

from runner.cli.command import Command, Line, format_option
from runner.cli.streams import Streams


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run resume last
  pi-run resume run.jsonl --set limits.turns=100

\b
LOG is a path, a run's id or the beginning of one, or `last`.""",
)
@click.argument("log")
@click.option(
    "--set",
    "sets",
    metavar="PATH=VALUE",
    multiple=True,
    type=Line(),
    help="Change the spec from here on, as in --set limits.turns=100.",
)
@click.option(
    "--open",
    "open_",
    type=click.Choice(("error", "rerun", "stop")),
    help="What becomes of calls that were under way: answered as unknown, run again, or nothing "
    "is done. By default those of idempotent tools are run again.",
)
@click.option(
    "--accept-spec-change", is_flag=True, help="Go on by the spec as it is now, if it has changed."
)
@format_option("jsonl")
@click.option("--workspace", metavar="DIR", help="The folder that the tools work in.")
@click.option("--durable", is_flag=True, help="Have the disk confirm what the log says (fsync).")
@click.option("--env-file", metavar="FILE", help="Read NAME=value lines.")
@click.option("-q", "--quiet", is_flag=True, help="Tell nothing but errors.")
@click.pass_obj
def command(streams: Streams, /, log: str, **flags: Any) -> int:
    """Go on with a run that was killed, stopped or at a limit, in the log that it left."""
    from runner.api.resume import ResumeOptions, Resumption
    from runner.cli.inputs import set_paths, take_variables
    from runner.cli.options import can_ask
    from runner.cli.runs import Runs, Wanted
    from runner.log.find import find

    take_variables(flags["env_file"])
    options = ResumeOptions(
        sets=set_paths(flags["sets"]),
        open=flags["open_"],
        accept_spec_change=flags["accept_spec_change"],
        workspace=flags["workspace"],
        durable=flags["durable"],
        interactive=can_ask(),
    )
    wanted = Wanted(flags["form"], 1, 1.0, None, color=True, quiet=flags["quiet"])
    file = find(log)
    return Runs(streams, wanted).go_on(Resumption(file, options), str(file))
