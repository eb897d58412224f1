"""``pi-run init``."""

from __future__ import annotations

import click

from runner.cli.command import Command
from runner.cli.streams import Streams


@click.command(
    cls=Command,
    epilog="""\b
Example:
  pi-run init demo && cd demo && pi-run words.yaml && pytest""",
)
@click.argument("directory", default=".", metavar="[DIR]")
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    # What others tell besides their results is its result: PI_RUN_QUIET does not mean that.
    allow_from_autoenv=False,
    help="Tell nothing but errors.",
)
@click.pass_obj
def command(streams: Streams, /, directory: str, quiet: bool) -> int:
    """Write a first spec, a tool and a test, which pass as they are.

    They need no key and no network. A file that is there already is kept as it is.
    """
    from runner.cli.first_files import write_first_files

    for path, is_new in write_first_files(directory):
        if not quiet:
            streams.result(f"{path}: {'written' if is_new else 'kept as it was'}")
    return 0
