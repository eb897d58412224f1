"""How a run's result is told: as text, as a JSON object, as one line, and why it is not good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from runner import json_text
from runner.api import RunResult
from runner.error import Fault
from runner.views.ci import CaseResult
from runner.views.text import totals

NO_TEXT = frozenset((2, 3, 6, 70))
"""Exit codes with which stdout stays empty in the text format."""


def faults_of(path: str, result: RunResult) -> list[Fault]:
    """Why a run is not good, each with its place in the spec.

    Args:
        path: The spec's path as it was given.
        result: What came of it.
    """
    missed = [
        Fault(
            expected["file"] or path,
            expected["line"] or 1,
            expected["column"] or 1,
            "expect",
            f"{expected['kind']}: {expected['detail']}",
        )
        for expected in result.expectations
        if not expected["passed"]
    ]
    if missed or result.status == "ok":
        return missed
    return [Fault(path, 1, 1, "", result.error or f"the run ended as {result.status}")]


def sentence(fault: Fault) -> str:
    """A fault of a run in words, with its place where it has one of its own."""
    if not fault.path:
        return fault.message
    return f"expectation not met: {fault.message}; see {fault.file}:{fault.line}:{fault.column}"


def final_text(result: RunResult) -> str:
    """What stdout gets of one run in the text format."""
    return "" if result.exit_code in NO_TEXT else result.text


def result_line(title: str, result: RunResult) -> str:
    """What stdout gets of one of several runs in the text format."""
    return f"{title}: {result.status}, {totals(asdict(result))}"


def result_object(title: str, result: RunResult) -> str:
    """What stdout gets of a run in the JSON format."""
    fields: dict[str, Any] = asdict(result)
    first = ("status", "exit_code", "text", "output", "usage", "cost_usd", "turns", "tool_calls")
    known = {name: fields[name] for name in (*first, "seconds", "log", "expectations", "error")}
    return json_text.line({"name": result.name, "spec": title, **known})


def case_result(path: str, suffix: str, result: RunResult, faults: list[Fault]) -> CaseResult:
    """A run as a CI sees it."""
    return CaseResult(
        file=path,
        name=result.name + suffix,
        status=result.status,
        seconds=result.seconds,
        text=result.text,
        why=list(map(_reason, faults)),
        totals=totals(asdict(result)),
    )


def _reason(fault: Fault) -> str:
    return fault.message


def count_by_status(results: list[CaseResult]) -> Iterator[str]:
    """How many of each status: ``2 ok``, ``1 failed``."""
    statuses = [result.status for result in results]
    for status in sorted(set(statuses), key=statuses.index):
        yield f"{statuses.count(status)} {status}"
