"""Specs, checked one by one, and what is wrong with them, told in one of three forms."""

from __future__ import annotations

from collections.abc import Sequence

from runner import api, json_text
from runner.cli.failure import annotation_lines, fault_line, tell
from runner.cli.streams import Streams
from runner.error import Fault, PiRunError, SpecError


def check_all(streams: Streams, specs: Sequence[str], form: str, options: api.RunOptions) -> int:
    """Check specs and print their faults to stdout.

    Returns:
        2 if one of them is wrong, else 0. Warnings don't count.
    """
    code = 0
    found: list[Fault] = []
    for path in specs:
        try:
            faults = api.check(path, options)
        except SpecError as error:
            faults = error.faults
        except PiRunError as error:
            code = max(code, tell(error, streams))
            continue
        if form == "text":
            _print_lines(streams, path, faults)
        found += faults
    if form == "github":
        for line in annotation_lines(found):
            streams.line(line)
    elif streams.in_actions:
        for line in annotation_lines(found):
            streams.annotate(line)
    if form == "json":
        streams.line(json_text.line([_object(fault) for fault in found]))
    return max(code, 2 if any(not fault.warning for fault in found) else 0)


def explain_all(streams: Streams, specs: Sequence[str], options: api.RunOptions) -> None:
    """Tell in words what specs do."""
    from runner.views.explain import explanation

    for path in specs:
        streams.result("\n".join(explanation(*api.explain(path, options))))


def _print_lines(streams: Streams, path: str, faults: Sequence[Fault]) -> None:
    for fault in faults:
        streams.result(fault_line(fault))
    if all(fault.warning for fault in faults):
        streams.result(f"{path}: ok")


def _object(fault: Fault) -> dict[str, str | int]:
    return {
        "file": fault.file,
        "line": fault.line,
        "column": fault.column,
        "path": fault.path,
        "severity": "warning" if fault.warning else "error",
        "message": fault.message,
    }
