"""``pi-run batch``."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli.command import (
    Command,
    FiniteRange,
    at_once_option,
    change_options,
    format_option,
    min_pass_option,
    repeat_option,
    specs_argument,
)
from runner.cli.database import database_option, opened
from runner.cli.interrupts import Interrupts
from runner.cli.streams import Streams
from runner.error import UsageError

if TYPE_CHECKING:
    from runner.fleet import Baseline, Batch, Outcome, Report, Work
    from runner.views.batch_progress import PlainProgress


def _shard(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int]:
    """One of a number of parts, such as ``2/5``: which one, and of how many."""
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise click.BadParameter(f"{value!r} is no part such as 2/5, counted from 1", ctx, param)
    return int(found[1]), int(found[2])


_ROWS = click.option(
    "--inputs",
    "rows",
    metavar="FILE",
    help="The rows: a .jsonl, .csv, .tsv or .yaml file with the inputs of a run each.",
)


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run batch triage.yaml --inputs issues.csv -j 16
  pi-run batch triage.yaml --inputs issues.jsonl --repeat 5 --min-pass 0.9 --max-cost 2
  pi-run batch evals/*.yaml --format json --baseline last.json > now.json
  pi-run batch triage.yaml --inputs issues.csv --database sqlite:///fleet.db --detach

\b
The same command goes on with a batch that was stopped or killed: what was done is kept.
Exit codes: 0 all was done and enough passed, else the highest of
  1 an expectation failed, or something got worse than in the baseline
  2 wrong usage, spec or rows; or the folder has another batch
  3 a run ended in an error        5 stopped by a permission or a hook
  4 a limit or a budget was reached  6 a log or file could not be used
  130, 143 interrupted, terminated""",
)
@specs_argument
@change_options(_ROWS)
@click.option("--prompt", metavar="TEXT", help="The prompt of all runs; - reads it from stdin.")
@at_once_option
@click.option(
    "--out",
    metavar="DIR",
    help="The batch's folder, with a log for each run. By default .pi-run/batches/NAME.",
)
@repeat_option("row")
@min_pass_option
@database_option(required=False)
@click.option(
    "--detach",
    is_flag=True,
    help="Only put the runs into the --database, for its workers to do.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first run that fails.")
@click.option("--retry-failed", is_flag=True, help="Do runs again that were done and failed.")
@click.option("--shard", metavar="I/N", callback=_shard, default="1/1", help="Do one of N parts.")
@click.option(
    "--max-cost",
    metavar="USD",
    type=FiniteRange(0, min_open=True),
    help="Stop when the whole batch has cost so much.",
)
@click.option(
    "--max-tokens",
    metavar="N",
    type=click.IntRange(1),
    help="Stop when the whole batch has used so many tokens.",
)
@format_option(
    "jsonl",
    "csv",
    help="What stdout gets: a summary, one object with it and all runs, or a line for each run.",
)
@click.option("--junit", metavar="FILE", help="Write JUnit XML, for any CI.")
@click.option("--html", metavar="FILE", help="Write a page with a table of all runs.")
@click.option("--baseline", metavar="FILE", help="Tell what got worse since this JSON report.")
@click.option(
    "--tolerance",
    metavar="PART",
    type=FiniteRange(0),
    default=0.1,
    show_default=True,
    help="How much a row's pass rate, cost and turns may get worse.",
)
@click.option("--require-expect", is_flag=True, help="Refuse a spec that expects nothing.")
@click.option("--workspace", metavar="DIR", help="The folder that the tools work in.")
@click.option("--yes", is_flag=True, help="Answer every question of a permission with yes.")
@click.option("--read-only", is_flag=True, help="Refuse tools that may change something.")
@click.option("--durable", is_flag=True, help="Have the disk confirm what the logs say (fsync).")
@click.option("--no-color", is_flag=True, help="Use no colour. NO_COLOR does the same.")
@click.option("-q", "--quiet", is_flag=True, help="Tell nothing but errors.")
@click.pass_obj
def command(streams: Streams, /, specs: tuple[str, ...], **flags: Any) -> int:
    """Run specs over rows of inputs, many at a time.

    Each row is the inputs of one run, with a log of its own in the batch's folder. stdout gets the
    report, stderr the progress. All specs and rows are checked before the first run.
    """
    from runner.cli.inputs import find_specs
    from runner.cli.options import run_options
    from runner.fleet import Baseline, Folder, Report, Work, default_name, read_baseline
    from runner.fleet.folder import FOLDER

    _hold_together(flags)
    options = run_options(**{k: v for k, v in flags.items() if k not in _OWN})
    options.interactive = False
    work = Work.of(
        find_specs(specs),
        options,
        rows=flags["rows"],
        repeat=flags["repeat"],
        shard=flags["shard"],
    )
    if flags["max_cost"] is not None and work.unpriced:
        raise UsageError(
            f"{work.unpriced[0]}: the price of its model is not known, so --max-cost can't be kept;"
            " set model.price, or use --max-tokens"
        )
    baseline = None
    if flags["baseline"] is not None:
        baseline = Baseline(read_baseline(flags["baseline"]), flags["tolerance"])
    _hold_places(flags)
    if flags["database"] is not None:
        return _in_database(streams, work, baseline, flags)
    folder = Folder(
        Path(flags["out"] or FOLDER / default_name(work)),
        work,
        retry_failed=flags["retry_failed"],
    )
    try:
        codes, stopped = _do(streams, work, folder, flags)
        report = Report(work, folder, str(folder.path), stopped)
        return _end(streams, work, report, codes, baseline, flags)
    finally:
        folder.close()


_OWN = frozenset(
    (
        *("rows", "at_once", "out", "repeat", "min_pass", "fail_fast", "retry_failed", "shard"),
        *("max_cost", "max_tokens", "form", "junit", "html", "baseline", "tolerance"),
        *("no_color", "quiet", "database", "detach"),
    )
)
"""The options that are the batch's, and not its runs'."""


def _hold_places(flags: dict[str, Any]) -> None:
    """Make sure, before a token is spent, that the reports can be written."""
    from runner.views.ci import hold_junit

    for path in (flags["junit"], flags["html"]):
        if path is not None:
            hold_junit(path)


def _hold_together(flags: dict[str, Any]) -> None:
    """Refuse options that mean nothing together.

    Raises:
        UsageError: where there are some.
    """
    if flags["database"] is None:
        if flags["detach"]:
            raise UsageError("--detach leaves runs to the workers of a --database; name one")
        return
    alone = ["out", *(_WATCHING if flags["detach"] else ())]
    given = ["--" + name.replace("_", "-") for name in alone if flags[name]]
    if given:
        why = "with --detach nobody waits for the runs" if flags["detach"] else "logs go there"
        raise UsageError(f"{', '.join(given)} can't be given with --database: {why}; leave it out")


_WATCHING = ("fail_fast", "max_cost", "max_tokens", "junit", "html", "baseline")
"""The options for who waits until all runs have ended."""


# --- runs -----------------------------------------------------------------------------------------


def _in_database(
    streams: Streams, work: Work, baseline: Baseline | None, flags: dict[str, Any]
) -> int:
    """Have the workers of a database do a batch; without ``--detach`` this process is one."""
    with opened(flags["database"]) as database:
        from runner.fleet import BatchOptions, Report, default_name
        from runner.fleet.database.store import DatabaseBatch, Stored
        from runner.fleet.database.worker import Worker, WorkerOptions

        # A bar on the terminal is not to be written into.
        say = (lambda _: None) if flags["quiet"] or streams.can_draw else streams.say
        worker = Worker(database, WorkerOptions(flags["at_once"], grace=0.0), say)

        def make(options: BatchOptions, told: Any) -> DatabaseBatch:
            retry = flags["retry_failed"]
            return DatabaseBatch(work, database, options, worker, retry_failed=retry, told=told)

        if flags["detach"]:
            new = make(BatchOptions(), None).put()
            name, known = default_name(work), work.count - new
            streams.result(f"{name}: {new:,} of {work.count:,} runs put in, {known:,} were there")
            return 0
        store = Stored(database, work)
        codes, stopped = _do(streams, work, store, flags, make)
        report = Report(work, store, database.shown, stopped)
        return _end(streams, work, report, codes, baseline, flags)


def _do(
    streams: Streams,
    work: Work,
    folder: Any,
    flags: dict[str, Any],
    make: Callable[..., Any] | None = None,
) -> tuple[set[int], str | None]:
    """Do what is left; gives the exit codes of what went wrong, and why it stopped before its end.

    ``make`` makes what does it of the options and who is told; by default that is a `Batch`.
    """
    from runner.fleet import Batch, BatchOptions, Runs
    from runner.thread import run_in_loop
    from runner.views.text import plural

    allow_open_files(flags["at_once"])
    codes: set[int] = set()
    views: list[PlainProgress] = []

    def told(outcome: Outcome, kept: bool) -> None:
        if not outcome.passed:
            codes.add(outcome.exit_code)
        for view in views:
            if not outcome.passed and not kept:
                view.failure(_failure(work, outcome))
            view.step()

    options = BatchOptions(
        at_once=flags["at_once"],
        fail_fast=flags["fail_fast"],
        max_cost=flags["max_cost"],
        max_tokens=flags["max_tokens"],
    )
    batch = make(options, told) if make else Batch(work, folder, Runs(work), options, told)
    if not flags["quiet"]:
        if work.doubles:
            streams.say(f"{plural(work.doubles, 'row')} not run again: others say the same")
        views.append(_view(streams, batch, flags))

    async def drive(interrupts: Interrupts) -> int:
        interrupts.attach(asyncio.get_running_loop(), batch)
        try:
            return await batch.run()
        finally:
            interrupts.detach()

    with Interrupts() as interrupts:
        if views:
            with views[0]:
                stopped = run_in_loop(drive(interrupts))
        else:
            stopped = run_in_loop(drive(interrupts))
    return {*codes, stopped}, batch.stopped


def allow_open_files(at_once: int) -> None:
    """Let the process have a log and some connections open for each run."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 256 + 4 * at_once
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _view(streams: Streams, batch: Batch, flags: dict[str, Any]) -> PlainProgress:
    from runner.views.batch_progress import LiveProgress, PlainProgress

    if streams.can_draw:
        color = not flags["no_color"] and not os.environ.get("NO_COLOR")
        return LiveProgress(sys.stderr, batch.progress, color=color)
    return PlainProgress(streams.say, batch.progress)


def _failure(work: Work, outcome: Outcome) -> str:
    from runner.views.batch import failure

    return failure(work.rows, asdict(outcome))


# --- reports --------------------------------------------------------------------------------------


def _end(
    streams: Streams,
    work: Work,
    report: Report,
    codes: set[int],
    baseline: Baseline | None,
    flags: dict[str, Any],
) -> int:
    """Tell what came of a batch; gives the exit code."""
    code = 0 if report.passes(flags["min_pass"]) else max(codes) or 1
    if baseline is not None:
        baseline.hold(report.outcomes())
        code = max(code, 1 if baseline.worse else 0)
    _tell(streams, work, report, baseline, flags)
    return code


def _tell(
    streams: Streams,
    work: Work,
    report: Report,
    baseline: Baseline | None,
    flags: dict[str, Any],
) -> None:
    from runner import json_text
    from runner.views.batch import csv_table, summary

    head = report.head()
    if baseline is not None:
        head["baseline"] = baseline.as_json()
    _write_files(streams, work, report, head, flags)
    if flags["form"] == "json":
        streams.line(json_text.line(head)[:-1] + ',"runs":[')
        comma = ""
        for run in report.runs():
            streams.line(comma + json_text.line(run))
            comma = ","
        streams.line("]}")
    elif flags["form"] == "jsonl":
        for run in report.runs():
            streams.line(json_text.line(run))
    elif flags["form"] == "csv":
        names = dict.fromkeys(name for each in work.specs for name in each.loaded.inputs)
        for line in csv_table(report.runs(), list(names)):
            streams.line(line)
    else:
        streams.result("\n".join(summary(head)))
    if not flags["quiet"]:
        for line in summary(head) if flags["form"] != "text" else ():
            streams.say(line)
        streams.say(f"logs: {head['folder']}")


def _write_files(
    streams: Streams, work: Work, report: Report, head: dict[str, Any], flags: dict[str, Any]
) -> None:
    from runner.cli.failure import tell
    from runner.error import LogError
    from runner.views.batch import cases
    from runner.views.ci import append_summary, write_junit

    paths = {each.loaded.name: each.loaded.file for each in work.specs}
    if flags["junit"]:
        write_junit(flags["junit"], cases(report.runs(), work.rows, paths))
    if flags["html"]:
        _write_page(flags["html"], head, report)
    if streams.in_actions and (summary := os.environ.get("GITHUB_STEP_SUMMARY")):
        try:
            append_summary(summary, cases(report.runs(), work.rows, paths))
        except LogError as error:
            # It is Actions' file and not one that was asked for: no reason to fail.
            tell(error, streams)


def _write_page(path: str, head: dict[str, Any], report: Report) -> None:
    from runner.error import LogError
    from runner.views.batch_html import page

    part = Path(f"{path}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.writelines(page(head, report.runs(), path))
        part.replace(path)
    except OSError as error:
        raise LogError(f"{path}: {error.strerror}; the page could not be written") from None
