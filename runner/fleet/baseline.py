"""A batch held against an earlier one: what got worse, row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runner import json_text
from runner.error import UsageError
from runner.fleet.contract import Outcome
from runner.fleet.report import FORMAT


@dataclass(slots=True)
class RowSums:
    """The runs of one row, added up."""

    spec: str
    line: int
    runs: int = 0
    passed: int = 0
    turns: int = 0
    cost_usd: float = 0.0


@dataclass(slots=True)
class Worse:
    """One thing that got worse."""

    row_key: str
    spec: str
    line: int
    """Of the row as it is now."""
    what: str
    """``pass_rate``, ``turns`` or ``cost_usd``."""
    before: float
    now: float


def read_baseline(path: str) -> dict[str, RowSums]:
    """The rows of a report by their keys.

    Args:
        path: A file that `pi-run batch --format json` printed.

    Raises:
        UsageError: where it can't be read, or is none.
    """
    try:
        with open(path, encoding="utf-8") as file:
            report = json_text.parse(file.read())
        if report["format"] != FORMAT:
            raise ValueError(f"its format is {report['format']!r:.60}")
        return _sums(report["runs"])
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a report that can be read") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"{path}: is no report of a batch ({error}); name one that --format json printed"
        ) from None


def _sums(runs: Iterable[dict[str, Any]]) -> dict[str, RowSums]:
    rows: dict[str, RowSums] = {}
    for run in runs:
        _add(rows, run["row_key"], run["spec"], run["line"], run)
    return rows


def _add(rows: dict[str, RowSums], key: str, spec: str, line: int, run: dict[str, Any]) -> None:
    row = rows.setdefault(str(key), RowSums(str(spec), int(line)))
    row.runs += 1
    row.passed += run["exit_code"] == 0
    row.turns += int(run["turns"])
    row.cost_usd += float(run["cost_usd"] or 0.0)


class Baseline:
    """Holds a batch against what an earlier one came to.

    Args:
        before: Its rows, as of `read_baseline`.
        tolerance: The part by which a row may get worse: of its pass rate as it is, of its cost
            and turns of what they were.
    """

    def __init__(self, before: dict[str, RowSums], tolerance: float) -> None:
        self._before = before
        self._tolerance = tolerance
        self.worse: list[Worse] = []
        """What got worse, in the order of the rows."""
        self.new = 0
        """Rows that the earlier batch did not have."""
        self.gone = 0
        """Rows that only the earlier batch had."""

    def hold(self, outcomes: Iterable[Outcome]) -> None:
        """Compare all runs of a batch."""
        now: dict[str, RowSums] = {}
        for each in outcomes:
            run = {"exit_code": each.exit_code, "turns": each.turns, "cost_usd": each.cost_usd}
            _add(now, each.row_key, each.spec, each.line, run)
        self.new = len(now.keys() - self._before.keys())
        self.gone = len(self._before.keys() - now.keys())
        for key in now.keys() & self._before.keys():
            self._hold_row(key, self._before[key], now[key])
        self.worse.sort(key=lambda one: (one.line, one.spec, one.what))

    def _hold_row(self, key: str, old: RowSums, new: RowSums) -> None:
        before, now = old.passed / old.runs, new.passed / new.runs
        if before - now > self._tolerance + 1e-9:
            self._add(key, new, "pass_rate", before, now)
        for what in ("turns", "cost_usd"):
            before, now = getattr(old, what) / old.runs, getattr(new, what) / new.runs
            if now > before * (1 + self._tolerance) + 1e-9:
                self._add(key, new, what, before, now)

    def _add(self, key: str, row: RowSums, what: str, before: float, now: float) -> None:
        self.worse.append(Worse(key, row.spec, row.line, what, round(before, 9), round(now, 9)))

    def as_json(self) -> dict[str, Any]:
        """All of it, for a report."""
        from dataclasses import asdict

        worse = [asdict(one) for one in self.worse]
        return {"worse": worse, "new_rows": self.new, "gone_rows": self.gone}
