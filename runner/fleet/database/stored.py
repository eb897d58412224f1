"""A run as it is in the database."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from runner import json_text
from runner.engine.message import no_usage
from runner.fleet.contract import Job, Outcome

_OUTCOME = frozenset(field.name for field in fields(Outcome))


@dataclass(slots=True)
class Stored:
    """A run as it is in the database."""

    run_id: str
    batch: str
    spec: str
    """The spec's name."""
    bundle: str
    """The digest of what the spec travels in."""
    job: Job
    state: str
    """``waiting``, ``running`` or ``cancelling``; of one that ended its status."""
    worker: str | None
    """The last that had it."""
    claims: int
    """How often a worker took it up."""
    created_at: float
    """Seconds since 1970, as all times here."""
    claimed_at: float | None
    ended_at: float | None
    outcome: Outcome | None
    """What came of it; None of one that did not end."""
    goes_on: bool = False
    """Whether it goes on from the end that its log has."""

    def as_json(self) -> dict[str, Any]:
        """All of it, for people and programs."""
        told: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("run_id", "batch", "spec", "state", "worker", "claims")
        }
        told |= {"created_at": self.created_at, "claimed_at": self.claimed_at}
        told |= {"ended_at": self.ended_at, "inputs": self.job.inputs, "number": self.job.number}
        outcome = None
        if self.outcome is not None:
            left_out = ("key", "row_key", "spec", "line", "number", "inputs", "log", "log_bytes")
            kept = {k: v for k, v in asdict(self.outcome).items() if k not in left_out}
            outcome = {k: v for k, v in kept.items() if k != "done"}
        return told | {"outcome": outcome}


def outcome_of(run: Stored, status: str, exit_code: int, **more: Any) -> Outcome:
    """An outcome of a run, which has no secret input.

    Args:
        run: Which.
        status: As of a run.
        exit_code: The same.
        more: What else is known.
    """
    job = run.job
    known: dict[str, Any] = {"usage": no_usage()} | more
    return Outcome(
        key=job.key,
        row_key=job.row_key,
        spec=run.spec,
        line=job.line,
        number=job.number,
        inputs=job.inputs,
        status=status,
        exit_code=exit_code,
        **known,
    )


def stored(row: Any) -> Stored:
    """A row of the runs as what it says."""
    job = Job(**json_text.parse(row.job))
    what = None if row.outcome is None else outcome(row.outcome)
    state = "waiting" if row.owner is None else "running"
    if row.cancelled:
        state = "cancelling"
    return Stored(
        run_id=row.run_id,
        batch=row.batch,
        spec=row.spec,
        bundle=row.bundle,
        job=job,
        state=state if what is None else what.status,
        worker=row.owner,
        claims=row.claims,
        created_at=row.created_at,
        claimed_at=row.claimed_at,
        ended_at=row.ended_at,
        outcome=what,
        goes_on=row.again == "on",
    )


def outcome(text: str) -> Outcome:
    """What came of a run, from its JSON."""
    told = json_text.parse(text)
    return Outcome(**{name: told[name] for name in told.keys() & _OUTCOME})
