"""``pi-run schema``."""

from __future__ import annotations

import click

from runner.cli.command import Command
from runner.cli.streams import Streams


@click.command(
    cls=Command,
    epilog="""\b
Example:
  pi-run schema spec > spec.schema.json""",
)
@click.argument("kind", type=click.Choice(("spec", "log")))
@click.pass_obj
def command(streams: Streams, /, kind: str) -> int:
    """Print the JSON Schema (Draft 2020-12) of specs, or of each line of a log."""
    from runner.bundled import folder

    path = folder("schemas") / f"{kind}.schema.json"
    streams.line(path.read_text(encoding="utf-8"))
    return 0
