"""What logs exercised of a spec, as a table with all that is missing, and as faults with places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.error import Fault
from runner.views.escape import one_line, visible

Row = Mapping[str, Any]

_MISSING = {
    ("tool", "ran"): "it never ran",
    ("fallback", "asked"): "it was never asked",
    ("hook", "asked"): "it was never asked",
    ("hook", "true"): "its condition never held",
    ("hook", "false"): "its condition always held",
    ("hook", "gave"): "it never gave a message",
    ("permission", "applied"): "no call was decided by it",
    ("limit", "reached"): "it was never reached",
    ("task", "ran"): "it never ran",
    ("task", "true"): "its `when` never held, so it never ran",
    ("task", "false"): "its `when` always held, so it was never skipped",
    ("task", "none"): "it was never without an item",
    ("task", "one"): "it never had just one item",
    ("task", "several"): "it never had several items",
    ("task", "met"): "its `until` never held",
    ("task", "full"): "its `max` was never reached",
    ("task", "failed"): "it never failed, so the run never went on after that",
    ("message", "taken"): "it was never taken",
    ("output", "fitted"): "no answer was ever one of its form",
    ("expectation", "held"): "it was never held against a run",
}
_NEVER_TRUE = "its condition was never asked"


def coverage_lines(covered: Mapping[str, Any]) -> Iterator[str]:
    """A table by file, and below it each part that is missing, with its place.

    Args:
        covered: As of `runner.api.spec_coverage.Coverage.as_json`.
    """
    files: dict[str, list[Row]] = {}
    for row in covered["items"]:
        files.setdefault(row["file"], []).append(row)
    rows = [(visible(file), *_counts(of_file), _lines(of_file)) for file, of_file in files.items()]
    width = max([len("Spec"), *(len(row[0]) for row in rows)])
    head = f"{'Spec':<{width}}  Parts   Miss  Cover   Missing"
    rule = "-" * max(len(head), *(len(_line(width, *row)) for row in rows), 0)
    yield from (head, rule)
    for row in rows:
        yield _line(width, *row)
    if len(rows) > 1:
        yield rule
        yield _line(width, "TOTAL", *_counts(covered["items"]), "")
    faults = missing(covered)
    if faults:
        yield ""
    for fault in faults:
        yield f"{visible(fault.file)}:{fault.line}: {one_line(f'{fault.path}: {fault.message}')}"


def missing(covered: Mapping[str, Any]) -> list[Fault]:
    """A warning for each item of which a part is missing, in the order of its file."""
    found = []
    for row in covered["items"]:
        if why := _why(row):
            name = f"{row['kind']} {row['name']}".strip()
            message = f"{one_line(name, 80)}: {why}"
            fault = Fault(
                row["file"], row["line"], row["column"], row["path"], message, warning=True
            )
            found.append(fault)
    order = {file: n for n, file in enumerate(dict.fromkeys(fault.file for fault in found))}
    return sorted(found, key=lambda fault: (order[fault.file], fault.line, fault.column))


def percent_of(percent: float) -> str:
    """A percentage without a fraction; 0 and 100 only where it is just that."""
    whole = round(percent)
    if 0 < percent < 100:
        whole = min(99, max(1, whole))
    return f"{whole}%"


def _why(row: Row) -> str:
    parts = [part for part, seen in row["parts"].items() if not seen]
    if row["kind"] == "hook" and parts == ["true", "false"]:
        return _NEVER_TRUE
    if row["kind"] == "task" and parts == list(row["parts"]):
        return "it never came to it"
    return ", ".join(_MISSING[row["kind"], part] for part in parts)


def _counts(rows: Sequence[Row]) -> tuple[int, int]:
    parts = sum(len(row["parts"]) for row in rows)
    return parts, parts - sum(sum(row["parts"].values()) for row in rows)


def _line(width: int, name: str, parts: int, miss: int, lines: str) -> str:
    cover = percent_of(100 * (parts - miss) / parts if parts else 100.0)
    return f"{name:<{width}}  {parts:>5}  {miss:>5}  {cover:>5}   {lines}".rstrip()


def _lines(rows: Sequence[Row]) -> str:
    """The lines of what is missing."""
    lines = sorted({row["line"] for row in rows if not all(row["parts"].values())})
    return ", ".join(map(str, lines))
