"""Runs in a database as words for people."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from runner import json_text
from runner.fleet.database.stored import Stored
from runner.views.escape import one_line

_WIDTH = 60


def table(runs: Iterable[Stored]) -> Iterator[str]:
    """A line for each run."""
    yield f"{'RUN':<20}  {'STATE':<10}  {'SINCE':<19}  {'BATCH':<16}  WHAT"
    for run in runs:
        since = run.ended_at or run.claimed_at or run.created_at
        batch = one_line(run.batch, 16)
        yield (
            f"{run.run_id:<20}  {run.state:<10}  {_time(since):<19}  {batch:<16}  "
            f"{one_line(_what(run), _WIDTH)}"
        ).rstrip()


def account(run: Stored) -> Iterator[str]:
    """All that is known of a run, in lines."""
    yield f"run       {run.run_id}"
    yield f"state     {run.state}"
    yield f"batch     {run.batch}"
    yield f"spec      {run.spec}"
    yield f"inputs    {json_text.line(run.job.inputs)}"
    yield f"put in    {_time(run.created_at)}"
    if run.claimed_at is not None:
        tries = f", taken up {run.claims} times" if run.claims > 1 else ""
        yield f"taken up  {_time(run.claimed_at)} by {run.worker or 'a worker'}{tries}"
    outcome = run.outcome
    if outcome is None:
        return
    if run.ended_at is not None:
        yield f"ended     {_time(run.ended_at)}, after {outcome.turns} turns"
    if outcome.error:
        yield f"error     {outcome.error}"
    for why in outcome.failed:
        yield f"failed    {why}"
    if outcome.text:
        yield f"text      {outcome.text}"


def _what(run: Stored) -> str:
    if run.outcome is None:
        return json_text.line(run.job.inputs) if run.job.inputs else ""
    outcome = run.outcome
    return outcome.error or "; ".join(outcome.failed) or outcome.text


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
