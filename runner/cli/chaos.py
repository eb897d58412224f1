"""``pi-run chaos``."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from runner.cli.command import Command, format_option, spec_options
from runner.cli.interrupts import Interrupts
from runner.cli.streams import Streams
from runner.error import UsageError

if TYPE_CHECKING:
    from runner.api import RunOptions
    from runner.api.chaos import Chaos, Outcome
    from runner.api.chaos_point import Point

_TELL_SECONDS = 2.0
"""How often it is told how far it is."""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run chaos triage.yaml -i issue="It crashes at start"
  pi-run chaos last --only crash --only abort
  pi-run chaos run.jsonl --points 200 --seed 7 --keep broken

\b
A SPEC is run once, and its log is kept; LOG is a path, a run's id or the beginning of one, or
`last`. All that follows is in memory, with the recorded model and the recorded tools.
Exit codes: 0 every point was survived, 1 one was not, 2 wrong usage or spec, 6 the log can't be
read.""",
)
@click.argument("spec_or_log", metavar="SPEC|LOG")
@spec_options
@click.option("--prompt", metavar="TEXT", help="The prompt of a SPEC; - reads it from stdin.")
@click.option("--workspace", metavar="DIR", help="The folder that the tools of a SPEC work in.")
@click.option("--yes", is_flag=True, help="Answer every question of a permission with yes.")
@click.option("--log", metavar="PATH", help="Where the log of a SPEC is kept.")
@click.option(
    "--only",
    type=click.Choice(("model", "tool", "hook", "crash", "abort")),
    multiple=True,
    help="Try the points of this kind, and no others.",
)
@click.option(
    "--points",
    "count",
    metavar="N",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Try no more points; which ones, the seed decides.",
)
@click.option(
    "--seed",
    metavar="N",
    type=int,
    default=0,
    show_default=True,
    help="Decides all that is left to chance.",
)
@click.option("--keep", metavar="DIR", help="Keep the logs of the runs that broke.")
@click.option("--keep-all", is_flag=True, help="With --keep: those of all others too.")
@click.option("-q", "--quiet", is_flag=True, help="Tell nothing but errors.")
@format_option()
@click.pass_obj
def command(streams: Streams, /, spec_or_log: str, **flags: Any) -> int:
    """Run a recorded run again for each point where it can fail, and tell what was survived.

    Each model call fails or is cut, each tool fails or takes too long, each hook raises, and the
    run is killed or aborted after each line of its log and goes on.
    """
    from runner.api.chaos import Chaos

    chosen = ("only", "count", "seed", "keep", "keep_all", "quiet", "form")
    own = {name: flags.pop(name) for name in chosen}
    if own["keep_all"] and own["keep"] is None:
        raise UsageError("--keep-all needs a place for the logs; add --keep DIR")
    say = (lambda text: None) if own["quiet"] else streams.say
    with Interrupts() as interrupts:
        log = _log_of(spec_or_log, flags, interrupts, say)
        if interrupts.received is not None:
            return 128 + interrupts.received
        chaos = Chaos(log, own["seed"])
        for warning in chaos.warnings:
            streams.say(f"pi-run: {warning}")
        points = _points(chaos, own, say)
        outcomes = _try(chaos, points, interrupts, say)
    kept = _keep(outcomes, own)
    _tell(streams, log, own, outcomes, kept)
    if interrupts.received is not None:
        return 128 + interrupts.received
    return 1 if any(outcome.broken for outcome in outcomes) else 0


def _log_of(spec_or_log: str, flags: dict[str, Any], interrupts: Interrupts, say: Any) -> str:
    """The log to begin with: the one that is named, or that of the spec that is named, run now."""
    import os

    from runner.api.chaos import is_log
    from runner.cli.options import run_options
    from runner.log.find import find

    is_spec = spec_or_log.endswith((".yaml", ".yml")) or os.path.isfile(spec_or_log)
    if not is_spec or is_log(spec_or_log):
        given = [name for name, value in flags.items() if value]
        if given:
            raise UsageError(f"{spec_or_log} is a log, and {given[0]} changes a spec; leave it out")
        return str(find(spec_or_log))
    if flags["log"] in ("none", "-"):
        raise UsageError("--log: the run's log is what is run again; name a file for it")
    options = run_options(**flags)
    options.interactive = False
    return _record(spec_or_log, options, interrupts, say)


def _record(spec: str, options: RunOptions, interrupts: Interrupts, say: Any) -> str:
    from runner.api import Control
    from runner.api.chaos import record
    from runner.thread import run_in_loop

    async def run() -> Any:
        control = Control()
        interrupts.attach(asyncio.get_running_loop(), control)
        try:
            return await record(spec, options, control)
        finally:
            interrupts.detach()

    result = run_in_loop(run())
    say(f"recorded: {result.status}" + (f": {result.error}" if result.error else ""))
    say(f"log: {result.log}")
    return str(result.log)


def _points(chaos: Chaos, own: dict[str, Any], say: Any) -> list[Point]:
    """The points that are tried; the run without any of them has to be sound itself."""
    from runner.api.chaos_point import chosen

    control = chaos.control
    recorded = chaos.recorded
    if recorded is None or (recorded["status"], recorded["text"]) != (
        control.status,
        control.lines[-1].get("text"),
    ):
        was = "it broke off" if recorded is None else f"it was recorded as {recorded['status']}"
        say(f"undisturbed it ends as {control.status}; {was}")
    for text in control.broken:
        say(f"undisturbed: {text}")
    there = [point for point in chaos.points() if not own["only"] or point.kind in own["only"]]
    if not there:
        raise UsageError(f"the run has no point of kind {' or '.join(own['only'])}; try another")
    points = chosen(there, own["count"], own["seed"])
    if len(points) < len(there):
        say(f"{len(points)} of {len(there)} points, chosen by seed {own['seed']}")
    return points


def _try(chaos: Chaos, points: list[Point], interrupts: Interrupts, say: Any) -> list[Outcome]:
    outcomes: list[Outcome] = []
    told = time.monotonic()
    for point in points:
        if interrupts.received is not None:
            break
        outcomes.append(chaos.run(point))
        if time.monotonic() - told > _TELL_SECONDS:
            told = time.monotonic()
            broken = sum(1 for outcome in outcomes if outcome.broken)
            say(f"{len(outcomes)} of {len(points)} points, {broken} broken")
    return outcomes


def _keep(outcomes: list[Outcome], own: dict[str, Any]) -> list[str | None]:
    from runner.api.chaos import Keeper

    if own["keep"] is None:
        return [None] * len(outcomes)
    keeper = Keeper(own["keep"], keeps_all=own["keep_all"])
    return [keeper.keep(outcome) for outcome in outcomes]


def _tell(
    streams: Streams,
    log: str,
    own: dict[str, Any],
    outcomes: list[Outcome],
    kept: list[str | None],
) -> None:
    from runner import json_text
    from runner.views.chaos import outcome_json, table

    if own["form"] == "text":
        streams.result("\n".join(table(outcomes)))
        return
    told = [outcome_json(*one) for one in zip(outcomes, kept, strict=True)]
    survived = sum(one["survived"] for one in told)
    whole = {"log": log, "seed": own["seed"], "points": told, "survived": survived}
    streams.line(json_text.line({**whole, "broken": len(told) - survived}))
