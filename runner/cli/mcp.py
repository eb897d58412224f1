"""``pi-run mcp``."""

from __future__ import annotations

from typing import Any

import click

from runner.cli.command import Command, spec_options, specs_argument
from runner.cli.streams import Streams


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run mcp triage.yaml review.yaml
  PI_RUN_TOKEN=… pi-run mcp triage.yaml --http 127.0.0.1:8000

\b
In a client's configuration:
  {"command": "pi-run", "args": ["mcp", "triage.yaml"]}""",
)
@specs_argument
@spec_options
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve by streamable HTTP at /mcp, in place of stdin and stdout. A host that others can "
    "reach needs a token.",
)
@click.option(
    "--token",
    metavar="TEXT",
    help="What clients have to send as a bearer token; better in PI_RUN_TOKEN.",
)
@click.option("--workspace", metavar="DIR", help="The folder that the tools work in.")
@click.option("--yes", is_flag=True, help="Answer every question of a permission with yes.")
@click.pass_obj
def command(streams: Streams, /, specs: tuple[str, ...], **flags: Any) -> int:
    """Serve specs as the tools of an MCP server.

    A call runs the spec: its inputs are the arguments, its text or output is the result. Logs are
    written as in any run. Inputs that are given here are fixed, and no client sees them.
    """
    from runner.cli.inputs import find_specs
    from runner.cli.options import run_options
    from runner.cli.serving import serve

    http, token = flags.pop("http"), flags.pop("token")
    return serve(streams, find_specs(specs), run_options(**flags), http, token)
