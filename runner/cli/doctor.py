"""``pi-run doctor``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli.command import MAX_RUNS, Command, format_option, spec_options
from runner.cli.streams import Streams

if TYPE_CHECKING:
    from runner.api import RunOptions, RunResult
    from runner.api.doctor import Need
    from runner.log.source import Source


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run doctor triage.yaml -i issue="It crashes at start"
  pi-run doctor triage.yaml --no-run

\b
Exit codes: 0 all is well, 1 something is missing or the runs differ, 2 wrong usage or spec;
where the runs are the same, that of the run.""",
)
@click.argument("spec")
@spec_options
@click.option("--prompt", metavar="TEXT", help="The prompt; - reads it from stdin.")
@click.option("--workspace", metavar="DIR", help="The folder that the tools work in.")
@click.option("--yes", is_flag=True, help="Answer every question of a permission with yes.")
@click.option(
    "--runs",
    metavar="N",
    type=click.IntRange(2, MAX_RUNS),
    default=2,
    show_default=True,
    help="How many runs are compared.",
)
@click.option("--no-run", is_flag=True, help="Look for keys, programs and servers only.")
@format_option()
@click.pass_obj
def command(
    streams: Streams, /, spec: str, runs: int, no_run: bool, form: str, **given: Any
) -> int:
    """Look for all that a spec needs, run it twice, and name each source of difference."""
    from runner.api.doctor import needs
    from runner.cli.options import run_options

    options = run_options(**given)
    options.interactive = False
    needed = needs(spec, options)
    missing = [need for need in needed if need.problem is not None]
    if missing or no_run:
        _tell(streams, form, needed)
        return 1 if missing else 0
    return _examine(streams, spec, options, runs, form, needed)


def _examine(
    streams: Streams, spec: str, options: RunOptions, runs: int, form: str, needed: list[Need]
) -> int:
    from runner.cli.interrupts import Interrupts
    from runner.guardian import temporary_folder

    sources: list[Source] = []
    codes: list[int] = []
    with temporary_folder("pi-run-doctor-") as folder, Interrupts() as interrupts:
        first = Path(folder, "1.jsonl")
        for number in range(1, runs + 1):
            log = Path(folder, f"{number}.jsonl")
            result = _run(spec, options, log, interrupts)
            streams.say(f"run {number} of {runs}: {result.status}")
            if result.status != "ok" and result.error:
                streams.say(f"  {result.error}")
            codes.append(result.exit_code)
            if interrupts.received is not None:
                return 128 + interrupts.received
            if number > 1:
                _add(sources, first, log)
    _tell(streams, form, needed, sources, runs)
    return 1 if sources else codes[0]


def _run(spec: str, options: RunOptions, log: Path, interrupts: Any) -> RunResult:
    from runner.api import Control
    from runner.api.doctor import run_into
    from runner.thread import run_in_loop

    async def run() -> RunResult:
        control = Control()
        interrupts.attach(asyncio.get_running_loop(), control)
        try:
            return await run_into(spec, options, log, control)
        finally:
            interrupts.detach()

    return run_in_loop(run())


def _add(sources: list[Source], first: Path, log: Path) -> None:
    """Add what makes a run differ from the first one, and is not yet known."""
    from runner.log.source import sources_of

    known = {(source.kind, source.name) for source in sources}
    found = sources_of(first, log)
    sources += [source for source in found if (source.kind, source.name) not in known]


def _tell(
    streams: Streams,
    form: str,
    needed: Sequence[Need],
    sources: Sequence[Source] | None = None,
    runs: int = 0,
) -> None:
    from runner import json_text
    from runner.views.doctor import need_json, need_lines, source_lines

    if form == "json":
        told: dict[str, Any] = {"needs": list(map(need_json, needed))}
        if sources is not None:
            told |= {"runs": runs, "same": not sources}
            told["sources"] = [source.as_json() for source in sources]
        streams.line(json_text.line(told))
        return
    lines = [*need_lines(needed), *source_lines(sources or ())]
    if sources is None:
        lines = lines or ["ok: it needs no key, program or server"]
    elif not sources:
        lines.append(f"ok: {runs} runs, all the same")
    streams.result("\n".join(lines))
