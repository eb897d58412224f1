"""``pi-run serve``."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import click

from runner.cli.command import MAX_RUNS, Command, FiniteRange, spec_options
from runner.cli.streams import Streams
from runner.error import UsageError

PORT = 8322
"""Where it listens unless told otherwise."""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run serve triage.yaml review.yaml
  PI_RUN_TOKEN=… pi-run serve specs/*.yaml --port 9000 --max-runs 50""",
)
@click.argument("specs", metavar="[SPEC]...", nargs=-1)
@spec_options
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", help="Where to listen. 127.0.0.1")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=PORT,
    help=f"The port; 0 for one that is free. {PORT}",
)
@click.option(
    "--token",
    metavar="TEXT",
    help="What clients have to know; better in PI_RUN_TOKEN. One is made where none is given.",
)
@click.option(
    "--allow-host",
    "names",
    metavar="NAME",
    multiple=True,
    help="Another name that the server is called by, as behind a proxy.",
)
@click.option(
    "--max-runs",
    type=click.IntRange(1, MAX_RUNS),
    metavar="N",
    default=16,
    help="How many runs may go on at once. 16",
)
@click.option(
    "--keep",
    type=click.IntRange(0, MAX_RUNS),
    metavar="N",
    default=100,
    help="How many ended runs stay in memory; all others are known by their logs. 100",
)
@click.option(
    "--grace",
    type=FiniteRange(0, 86400),
    metavar="SECONDS",
    default=10.0,
    help="How long runs may take to end by themselves when the server is stopped. 10",
)
@click.option(
    "--answer-within",
    type=FiniteRange(0, 7 * 86400),
    metavar="SECONDS",
    default=600.0,
    help="How long a run waits for an answer; 0: nobody is asked. 600",
)
@click.option("--logs", metavar="DIR", help="The folder of logs. .pi-run/logs")
@click.option("--durable", is_flag=True, help="Sync the logs to the disk at each write point.")
@click.option("--workspace", metavar="DIR", help="The folder that the tools work in.")
@click.option("--yes", is_flag=True, help="Answer every question of a permission with yes.")
@click.pass_obj
def command(streams: Streams, /, specs: tuple[str, ...], **flags: Any) -> int:
    """Serve specs by HTTP, with a page to start, watch and lead their runs.

    Only the specs that are given can be run. Without one, the server shows the runs that are in its
    folder of logs.
    """
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise UsageError("serve needs an extra; pip install 'pi-run[serve]'")
    from runner.cli.inputs import find_specs
    from runner.cli.options import run_options
    from runner.server.hosting import Bounds
    from runner.server.start import Wanted, start

    # No child of a run is to have it.
    os.environ.pop("PI_RUN_TOKEN", None)
    wanted = Wanted(
        host=flags.pop("host"),
        port=flags.pop("port"),
        token=flags.pop("token"),
        names=flags.pop("names"),
        bounds=Bounds(
            runs=flags.pop("max_runs"),
            kept=flags.pop("keep"),
            answer_within=flags.pop("answer_within"),
        ),
        grace=flags.pop("grace"),
        logs=flags.pop("logs"),
        verbose=streams.verbose,
    )
    return start(find_specs(specs), run_options(**flags), wanted, streams.say)
