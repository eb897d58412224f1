"""What the runs of a batch came to, added up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from runner.engine.message import Usage, add_usage, no_usage, tokens_of
from runner.fleet.contract import Outcome

_Z = 1.959963984540054
"""Standard deviations to either side that hold 95 of 100 cases."""


def interval(passed: int, runs: int) -> tuple[float, float]:
    """Wilson's score interval at 95 %: where the true pass rate lies, of which this is a sample.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    1927.
    """
    if not runs:
        return 0.0, 1.0
    rate, square = passed / runs, _Z * _Z
    middle = rate + square / (2 * runs)
    around = _Z * math.sqrt(rate * (1 - rate) / runs + square / (4 * runs * runs))
    low, high = ((middle + sign * around) / (1 + square / runs) for sign in (-1, 1))
    return max(0.0, round(low, 6)), min(1.0, round(high, 6))


@dataclass(slots=True)
class Tally:
    """Runs of one spec, or of all."""

    runs: int = 0
    """How many there are to be."""
    done: int = 0
    passed: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=no_usage)
    cost_usd: float = 0.0
    unpriced: bool = False
    """Whether a part of the cost is not known."""
    seconds: float = 0.0
    """Of all runs, one after the other."""

    def add(self, outcome: Outcome) -> None:
        """One more run was done."""
        self.done += 1
        self.passed += outcome.passed
        self.statuses[outcome.status] = self.statuses.get(outcome.status, 0) + 1
        self.turns += outcome.turns
        self.tool_calls += outcome.tool_calls
        add_usage(self.usage, outcome.usage)
        if outcome.cost_usd is None:
            self.unpriced = self.unpriced or bool(tokens_of(outcome.usage))
        else:
            self.cost_usd += outcome.cost_usd
        self.seconds += outcome.seconds

    @property
    def tokens(self) -> int:
        """All that were paid for."""
        return tokens_of(self.usage)

    def as_json(self) -> dict[str, Any]:
        """All of it, for a report."""
        return {
            "runs": self.runs,
            "done": self.done,
            "passed": self.passed,
            "pass_rate": round(self.passed / self.done, 6) if self.done else None,
            "pass_rate_95": list(interval(self.passed, self.done)),
            "statuses": dict(sorted(self.statuses.items())),
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "usage": self.usage,
            "cost_usd": None if self.unpriced else round(self.cost_usd, 9),
            "seconds": round(self.seconds, 3),
        }
