"""Whether the lines of a log fit together, where the run that is driven by them can't tell.

A run that is driven by a log takes much as the log says it: how it was resumed, in what pieces an
answer came. Of that, what stands in the log twice is held against itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runner.log.invariants import Invariants
from runner.log.survey import Survey

Line = dict[str, Any]


@dataclass(slots=True)
class Misfit:
    """A line that does not fit those before it."""

    line: Line
    path: str
    """Of the value in the line; empty for the line itself."""
    recorded: Any
    fitting: Any
    """What would fit; None where that can't be told."""
    why: str


class Wholeness:
    """Looks at each line of a log as it is read, and keeps the first that doesn't fit."""

    def __init__(self) -> None:
        self._invariants = Invariants(are_read=True)
        self._survey = Survey()
        self._turns: dict[str | None, int] = {}
        self._last: Line = {}
        self.misfit: Misfit | None = None

    @property
    def turn(self) -> int:
        """The turn of the agent of the line that was last looked at."""
        return self._turns.get(self._last.get("agent"), 0)

    def see(self, line: Line) -> Line:
        """Look at the next line; gives it back."""
        if self.misfit is None:
            self._last = line
            if line["type"] == "turn_start":
                self._turns[line.get("agent")] = line["turn"]
            self.misfit = next(self._misfits(line), None)
        return line

    def _misfits(self, line: Line) -> Iterator[Misfit]:
        if line["type"] == "run_resume":
            yield from self._of_resume(line)
        for text in self._invariants.see(line):
            # It begins with the line's place, which is told anyhow.
            yield Misfit(line, "", line["type"], None, text.partition(": ")[2])
        self._survey.see(line)

    def _of_resume(self, line: Line) -> Iterator[Misfit]:
        why = "the log was changed: it does not tell of the lines before it"
        for key, fitting in self._survey.going_on().items():
            if line[key] != fitting:
                yield Misfit(line, key, line[key], fitting, why)
        opened = [call for _, call in self._survey.open_calls]
        told = [*line["rerun"], *line["unknown"]]
        if sorted(told) != sorted(opened):
            yield Misfit(line, "rerun", line["rerun"], opened, why)
