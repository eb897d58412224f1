"""``pi-run tools``."""

from __future__ import annotations

import click

from runner.cli.command import Command
from runner.cli.streams import Streams


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run tools
  pi-run tools triage.yaml --format json""",
)
@click.argument("spec", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json")),
    default="text",
    envvar="PI_RUN_FORMAT",
    help="A table, or a JSON list with each tool's schema.",
)
@click.pass_obj
def command(streams: Streams, /, spec: str | None, form: str) -> int:
    """List the built-in tools, or the tools of a spec, with where they come from."""
    from runner import api, json_text
    from runner.views.text import tool_lines

    tools = api.tools(spec)
    if form == "json":
        streams.line(json_text.line(tools))
    else:
        streams.result("\n".join(tool_lines(tools)))
    return 0
