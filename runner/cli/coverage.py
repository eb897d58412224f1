"""``pi-run coverage``."""

from __future__ import annotations

import click

from runner.cli.command import Command, FiniteRange, format_option
from runner.cli.streams import Streams

# As of `runner.api.coverage_items.KINDS`, which a help need not import.
_KINDS = (
    *("tool", "fallback", "hook", "permission", "limit", "task", "message", "output"),
    "expectation",
)


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run coverage triage.yaml .pi-run/logs
  pi-run coverage triage.yaml "tests/**/*.jsonl" --fail-under 90

\b
LOG is a path, a glob, a folder, a run's id or the beginning of one, or `last`.
Exit codes: 0 enough, 1 less than --fail-under, 2 wrong usage, spec or a log of another spec,
6 a log can't be read.""",
)
@click.argument("spec")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--fail-under",
    type=FiniteRange(0, 100),
    metavar="PERCENT",
    help="Exit with 1 where less is covered.",
)
@click.option(
    "--omit",
    type=click.Choice(_KINDS),
    multiple=True,
    help="Leave out a kind, such as limits that no test is to reach.",
)
@format_option("github", help="A table, a JSON object, or annotations of GitHub Actions.")
@click.pass_obj
def command(
    streams: Streams,
    /,
    spec: str,
    logs: tuple[str, ...],
    fail_under: float | None,
    omit: tuple[str, ...],
    form: str,
) -> int:
    """Tell which tools, hooks, tasks and so on of a spec no log ever exercised."""
    from runner import json_text
    from runner.api.spec_coverage import coverage
    from runner.cli.failure import annotation_lines
    from runner.views.coverage import coverage_lines, missing, percent_of

    found = coverage(spec, logs, omit=omit, warn=lambda text: streams.say(f"pi-run: {text}"))
    told = found.as_json()
    if form == "json":
        streams.line(json_text.line(told))
    elif form == "github":
        for line in annotation_lines(missing(told)):
            streams.line(line)
    else:
        streams.result("\n".join(coverage_lines(told)))
    if fail_under is None or found.percent >= fail_under:
        return 0
    covered = percent_of(found.percent)
    streams.say(f"pi-run: {covered} of {spec} is covered, and {fail_under:g}% is asked for")
    return 1
