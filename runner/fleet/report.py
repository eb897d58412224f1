"""What a batch came to: its totals, and each of its runs in the order of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runner.fleet.contract import Outcome, Store
from runner.fleet.tally import Tally
from runner.fleet.work import Work

FORMAT = "pi-run-batch-report/1"


class Report:
    """Tells what is kept of a batch. Its runs are read anew each time they are asked for.

    Args:
        work: What the batch is to do.
        store: Keeps what was done.
        folder: Where it does.
        stopped: Why it ended before all was done.
    """

    def __init__(self, work: Work, store: Store, folder: str, stopped: str | None = None) -> None:
        self._work = work
        self._store = store
        self._folder = folder
        self._stopped = stopped
        self.specs = [Tally() for _ in work.specs]
        """What the runs of each spec came to."""
        self.all = Tally()
        """What all of them came to."""
        # In the order of the rows, so that sums are the same however the runs ended.
        for job in work.jobs():
            outcome = store.outcome(job.key)
            for tally in (self.specs[job.spec], self.all):
                tally.runs += 1
                if outcome is not None:
                    tally.add(outcome)

    def outcomes(self) -> Iterator[Outcome]:
        """The runs that were done, in the order of the rows.

        Raises:
            LogError: where they can't be read any more.
        """
        for job in self._work.jobs():
            if (outcome := self._store.outcome(job.key)) is not None:
                yield outcome

    def runs(self) -> Iterator[dict[str, Any]]:
        """The same as JSON objects."""
        for outcome in self.outcomes():
            told = outcome.as_json()
            del told["done"], told["log_bytes"]
            yield told

    def head(self) -> dict[str, Any]:
        """All but the runs, as a JSON object."""
        specs = zip(self._work.specs, self.specs, strict=True)
        return {
            "format": FORMAT,
            "folder": self._folder,
            "stopped": self._stopped,
            "totals": self.all.as_json(),
            "specs": [
                {"name": spec.loaded.name, "path": spec.loaded.file, **tally.as_json()}
                for spec, tally in specs
            ],
        }

    def passes(self, min_pass: float) -> bool:
        """Whether all runs were done, and enough of each spec's ended as they should."""
        return self.all.done == self.all.runs and all(
            tally.passed >= min_pass * tally.runs - 1e-9 for tally in self.specs
        )
