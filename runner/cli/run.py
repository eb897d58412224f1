"""``pi-run run``."""

from __future__ import annotations

from typing import Any

import click

from runner.cli.collector import STANDARD, Endpoint
from runner.cli.command import (
    Command,
    format_option,
    min_pass_option,
    repeat_option,
    spec_options,
    specs_argument,
)
from runner.cli.streams import Streams
from runner.error import UsageError


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run run triage.yaml -i issue="It crashes at start" -i depth:=3
  git diff | pi-run review.yaml --prompt - --format json
  pi-run run specs/*.yaml --repeat 5 --min-pass 0.8 --junit junit.xml

\b
Exit codes:
  0 done, every expectation met    4 a limit was reached
  1 an expectation failed          5 stopped by a permission or a hook
  2 wrong usage or spec            6 a log or file could not be used
  3 the run ended in an error      130, 143 interrupted, terminated""",
)
@specs_argument
@spec_options
@click.option("--prompt", metavar="TEXT", help="The prompt; - reads it from stdin.")
@click.option(
    "--log",
    metavar="PATH",
    help="Where the log goes; - prints its lines in place of the result, none keeps none. "
    "By default .pi-run/logs/NAME-RUNID.jsonl. Of several runs each gets its number.",
)
@format_option(
    "jsonl",
    help="What stdout gets: the final text, an object that sums up the run, or the log's lines.",
)
@click.option("--junit", metavar="FILE", help="Write JUnit XML, for any CI.")
@repeat_option("spec")
@min_pass_option
@click.option("--require-expect", is_flag=True, help="Refuse a spec that expects nothing.")
@click.option("--workspace", metavar="DIR", help="The folder that the tools work in.")
@click.option("--yes", is_flag=True, help="Answer every question of a permission with yes.")
@click.option("--read-only", is_flag=True, help="Refuse tools that may change something.")
@click.option("--steer", metavar="PATH", help="Steer with each line of this file or FIFO.")
@click.option(
    "--interactive", is_flag=True, help="Steer with each line that is typed; ask for follow-ups."
)
@click.option("--frozen", is_flag=True, help="Write a log that is the same from run to run.")
@click.option("--durable", is_flag=True, help="Have the disk confirm what the log says (fsync).")
@click.option(
    "--otlp",
    metavar="[ENDPOINT]",
    type=Endpoint(),
    is_flag=False,
    flag_value=STANDARD,
    help="Send spans and metrics to a collector, by OTLP over HTTP. Without an address: as "
    "OTEL_EXPORTER_OTLP_ENDPOINT says, or http://localhost:4318. Needs the extra otel.",
)
@click.option(
    "--otlp-content",
    is_flag=True,
    help="Send what was said too: prompts, answers, arguments and results of tools.",
)
@click.option("--no-color", is_flag=True, help="Use no colour. NO_COLOR does the same.")
@click.option("-q", "--quiet", is_flag=True, help="Tell nothing but errors.")
@click.pass_obj
def command(streams: Streams, /, specs: tuple[str, ...], **flags: Any) -> int:
    """Run specs.

    stdout gets the result alone; progress goes to stderr, with the log's place. All specs are
    checked before the first is run.
    """
    from runner.cli.inputs import find_specs
    from runner.cli.options import can_ask, run_options
    from runner.cli.runs import Runs, Wanted
    from runner.cli.steering import hold_steerable

    if flags["steer"] is not None:
        hold_steerable(flags["steer"])
    if flags["interactive"] and not can_ask():
        raise UsageError("--interactive needs a terminal; --steer PATH takes a file or a FIFO")
    wanted = Wanted(
        form="jsonl" if flags["log"] == "-" else flags["form"],
        repeat=flags["repeat"],
        min_pass=flags["min_pass"],
        junit=flags["junit"],
        color=not flags["no_color"],
        quiet=flags["quiet"],
        steer=flags["steer"],
        interactive=flags["interactive"],
        otlp=flags["otlp"],
        otlp_content=flags["otlp_content"],
    )
    return Runs(streams, wanted).run(find_specs(specs), run_options(**flags))
