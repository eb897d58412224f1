"""``pi-run check``."""

from __future__ import annotations

from typing import Any

import click

from runner.cli.command import Command, format_option, spec_options, specs_argument
from runner.cli.streams import Streams


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run check specs/*.yaml
  pi-run check triage.yaml --format json
  pi-run check triage.yaml --explain

Exit code 2 if something is wrong; a warning is not.""",
)
@specs_argument
@spec_options
@format_option(
    "github", help="How faults are printed: lines, a JSON list, or annotations of GitHub Actions."
)
@click.option(
    "--explain", is_flag=True, help="Tell in words what each spec will do, in which order."
)
@click.pass_obj
def command(
    streams: Streams, /, specs: tuple[str, ...], form: str, explain: bool, **given: Any
) -> int:
    """Check specs: all that can be known without a model call.

    Each fault stands on a line of its own as FILE:LINE:COLUMN: PATH: what is wrong; what would be
    right.
    """
    from runner.cli.checks import check_all, explain_all
    from runner.cli.inputs import find_specs
    from runner.cli.options import run_options

    found, options = find_specs(specs), run_options(**given)
    code = check_all(streams, found, form, options)
    if explain and code == 0:
        explain_all(streams, found, options)
    return code
