"""What a batch came to, as text, CSV or JUnit: a report's objects in, text out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from runner import json_text
from runner.views.ci import CaseResult
from runner.views.escape import one_line
from runner.views.text import dollars, duration, plural, tokens

Object = Mapping[str, Any]

MAX_TOLD = 20
"""How many things that got worse are told one by one."""
_COLUMNS = (
    *("spec", "line", "number", "status", "exit_code", "turns", "tool_calls", "cost_usd"),
    *("seconds", "text", "output", "error", "log", "key"),
)


def summary(head: Object) -> Iterator[str]:
    """The totals of a report, a line each."""
    for spec in head["specs"]:
        yield f"{spec['path']}: {_passed(spec)}"
    totals = head["totals"]
    if len(head["specs"]) > 1:
        yield f"all: {_passed(totals)}"
    yield ", ".join(_took(totals))
    if left := totals["runs"] - totals["done"]:
        why = f": {head['stopped']}" if head["stopped"] else ""
        yield f"{plural(left, 'run')} not done{why}; the same command goes on with what is left"
    if "baseline" in head:
        yield from _compared(head["baseline"])


def _passed(tally: Object) -> str:
    passed = f"{tally['passed']:,} of {plural(tally['done'], 'run')} passed"
    if tally["done"]:
        low, high = tally["pass_rate_95"]
        passed += f" ({tally['pass_rate']:.1%}, 95% interval {low:.1%} to {high:.1%})"
    others = {k: n for k, n in tally["statuses"].items() if k != "ok"}
    return ", ".join([passed, *(f"{count:,} {status}" for status, count in others.items())])


def _took(totals: Object) -> Iterator[str]:
    yield plural(totals["turns"], "turn")
    yield plural(totals["tool_calls"], "tool call")
    if used := tokens(totals["usage"]):
        yield plural(used, "token")
    if totals["cost_usd"]:
        yield dollars(totals["cost_usd"])
    yield duration(totals["seconds"])


def _compared(baseline: Object) -> Iterator[str]:
    worse = baseline["worse"]
    yield (
        f"{plural(len(worse), 'thing')} got worse than in the baseline"
        if worse
        else ("nothing got worse than in the baseline")
    )
    for one in worse[:MAX_TOLD]:
        line = f":{one['line']}" if one["line"] else ""
        yield f"  {one['spec']}{line}: {one['what']} {one['before']:g} → {one['now']:g}"
    if len(worse) > MAX_TOLD:
        yield f"  and {len(worse) - MAX_TOLD:,} more"
    for name, words in (("new_rows", "not in the baseline"), ("gone_rows", "only in the baseline")):
        if baseline[name]:
            yield f"  {plural(baseline[name], 'row')} {words}"


def failure(rows: str | None, run: Object) -> str:
    """One run that did not end as it should, on one line."""
    place = f"{rows}:{run['line']}" if rows else run["spec"]
    again = f" #{run['number']}" if run["number"] > 1 else ""
    why = run["error"] or "; ".join(run["failed"]) or run["status"]
    return f"{place}{again}: {run['status']}: {one_line(why, 300)}"


def csv_table(runs: Iterable[Object], names: Sequence[str]) -> Iterator[str]:
    """The runs as CSV, a line at a time; a column for each input, called ``inputs.NAME``."""
    yield _csv_line([*_COLUMNS, *(f"inputs.{name}" for name in names)])
    for run in runs:
        cells = [run[column] for column in _COLUMNS]
        yield _csv_line([*cells, *(run["inputs"].get(name) for name in names)])


def _csv_line(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        c if isinstance(c, str) else "" if c is None else json_text.line(c) for c in cells
    )
    return text.getvalue()


def cases(runs: Iterable[Object], path: str | None, paths: Mapping[str, str]) -> list[CaseResult]:
    """The runs as a CI sees them.

    Args:
        runs: The runs.
        path: The file of their rows.
        paths: The file of each spec, by its name.
    """
    return [
        CaseResult(
            paths.get(run["spec"], run["spec"]),
            _name(run, path),
            run["status"],
            run["seconds"],
            why=[run["error"]] if run["error"] else list(run["failed"]),
        )
        for run in runs
    ]


def _name(run: Object, path: str | None) -> str:
    place = f" {path}:{run['line']}" if path else ""
    return f"{run['spec']}{place} #{run['number']}"
