"""A run as it is in the database."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from runner import json_text
from runner.fleet.contract import Job, Outcome
from runner.fleet.outcome import outcome_of, parsed


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

    def outcome_as(self, **said: Any) -> Outcome:
        """What came of it, of which `said` is known: no input of it is secret."""
        return outcome_of(self.job, self.spec, self.job.inputs, **said)

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
    return parsed(json_text.parse(text))
