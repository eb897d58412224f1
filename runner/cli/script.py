"""``pi-run script``."""

from __future__ import annotations

import click

from runner.cli.command import Command
from runner.cli.streams import Streams


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run script last > script.yaml
  pi-run run triage.yaml --set model.provider=scripted --set "model.script={file: script.yaml}"
  pi-run script run.jsonl --agent main/reviewer#1

\b
LOG is a path, a run's id or the beginning of one, or `last`.
What a script can't say is told on stderr.""",
)
@click.argument("log")
@click.option(
    "--agent",
    metavar="PATH",
    default="main",
    show_default=True,
    help="The agent whose model is meant, such as main/reviewer#1.",
)
@click.option(
    "--fallback",
    metavar="N",
    type=click.IntRange(0),
    help="The fallback model that is meant, as in model.fallback[N].",
)
@click.pass_obj
def command(streams: Streams, /, log: str, agent: str, fallback: int | None) -> int:
    """Make a script for the scripted model of what a model said in a run."""
    from runner.api.scripting import script, written
    from runner.log.find import find

    path = str(find(log))
    made = script(
        path, agent=agent, fallback=fallback, warn=lambda text: streams.say(f"pi-run: {text}")
    )
    text = written(made)
    for warning in made.warnings:
        streams.say(f"pi-run: {warning}")
    streams.line(text)
    return 0
