"""What came of a run: from its result, from its log, from the error that kept it from either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from runner.api import RunResult
from runner.error import BUG, PiRunError, UsageError, named
from runner.fleet.contract import Job, Outcome

_FIELDS = frozenset(field.name for field in fields(Outcome))
_OF_AN_END = ("status", "exit_code", "text", "output", "turns", "tool_calls", "usage", "cost_usd")


def outcome_of(job: Job, spec: str, inputs: Mapping[str, Any], **said: Any) -> Outcome:
    """What came of a run.

    Args:
        job: The run.
        spec: Its spec's name.
        inputs: Those of the run, without the values of secret ones.
        said: All else, such as what one of the next functions gives.
    """
    return Outcome(
        key=job.key,
        row_key=job.row_key,
        spec=spec,
        line=job.line,
        number=job.number,
        inputs=dict(inputs),
        **said,
    )


def said_by_result(result: RunResult) -> dict[str, Any]:
    """What a run's result says of its outcome."""
    return {
        **{name: getattr(result, name) for name in _OF_AN_END},
        "error": result.error,
        "seconds": result.seconds,
        "failed": [one["detail"] for one in result.expectations if not one["passed"]],
    }


def said_by_log(events: Iterable[Mapping[str, Any]], end: Mapping[str, Any]) -> dict[str, Any]:
    """What a log says of its run's outcome.

    Args:
        events: All of them.
        end: Its last one, a ``run_end``.
    """
    failed: list[str] = []
    for event in events:
        if event["type"] == "run_resume":
            failed.clear()
        elif event["type"] == "expectation" and not event["passed"]:
            failed.append(event["detail"])
    return {
        **{name: end[name] for name in _OF_AN_END},
        "error": end.get("error"),
        "seconds": end.get("seconds", 0.0),
        "failed": failed,
    }


def said_by_error(error: Exception, where: str = "") -> dict[str, Any]:
    """What is to be said of a run that could not begin, or not go on.

    Args:
        error: Why. One that pi-run does not know is a bug, which ends no other run.
        where: Stands before the reason.
    """
    if isinstance(error, PiRunError):
        # With these inputs, or on this machine, it can't be run; that is no wrong usage.
        code = 3 if error.exit_code == UsageError.exit_code else error.exit_code
        why = " ".join(str(error).split())
    else:
        code, why = BUG, f"this is a bug of pi-run: {named(error)}"
    return {"status": "error", "exit_code": code, "error": where + why}


def parsed(told: Mapping[str, Any]) -> Outcome:
    """An outcome from its JSON. What another version says besides is left out.

    Raises:
        TypeError: where something is missing.
    """
    return Outcome(**{name: told[name] for name in told.keys() & _FIELDS})
