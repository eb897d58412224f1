"""A log as a tape that a run is driven with: each agent's lines in order, taken one by one.

Agents that run at the same time race one another, and their lines interleave differently each
time; so every agent has its lines to itself, and only their own order counts.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from runner.log.shape import is_known

Line = dict[str, Any]

PATIENCE = 0.5
"""Seconds without any progress after which those who wait for their turn are let go: their line
will not come, and what they do instead shows where the run parts from its log."""


class Tape:
    """The lines of a log, for each agent by itself (None: the main one).

    Args:
        lines: The log's lines. They are read no further than is asked for.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = iter(lines)
        self._waiting: dict[str | None, deque[Line]] = defaultdict(deque)
        self._turns: list[asyncio.Future[None]] = []
        self.taken = 0
        """How many lines were taken."""
        self._last: dict[str | None, str] = {}
        self.ended = False
        """Whether all lines were read."""
        self.released = False
        """Whether no one waits for a turn any more."""
        self.busy = 0
        """How many things are under way that take their own time."""
        self.t = 0.0
        """Of the line that was taken last."""

    def next(self, agent: str | None) -> Line | None:
        """The next line of an agent; None where it has no more."""
        lines = self._waiting[agent]
        while not lines and not self.ended:
            self._read()
        return lines[0] if lines else None

    def coming(self, agent: str | None) -> Line | None:
        """The next line of an agent that tells what it did.

        What joined a queue by then is told before it, whatever it is.
        """
        return next((one for one in self.ahead(agent) if one["type"] != "message_queued"), None)

    def ahead(self, agent: str | None) -> Iterator[Line]:
        """The lines of an agent that were not taken, in order, but for where resumes were."""
        place = 0
        lines = self._waiting[agent]
        while True:
            while place >= len(lines) and not self.ended:
                self._read()
            if place >= len(lines):
                return
            if lines[place]["type"] != "run_resume":
                yield lines[place]
            place += 1

    def rest(self) -> Iterator[Line]:
        """The lines of all agents that were not taken."""
        self.read_all()
        for lines in list(self._waiting.values()):
            yield from lines

    def take(self, agent: str | None) -> Line:
        """Take the next line of an agent."""
        line = self._waiting[agent].popleft()
        self._last[agent] = line["type"]
        self.taken += 1
        self.t = max(self.t, line.get("t", 0.0))
        self._wake()
        return line

    def breaks_off_after(self, agent: str | None, kind: str) -> bool:
        """Whether the last line of an agent is of this type. It is said once."""
        return next(self.ahead(agent), None) is None and self._last.pop(agent, None) == kind

    def cut(self) -> None:
        """Forget all lines that were not taken: the tape ends here."""
        self._lines = iter(())
        self._waiting.clear()
        self.ended = True
        self._wake()

    def release(self) -> None:
        """Let all go who wait for their turn, now and later."""
        self.released = True
        self._wake()

    async def until(self, agent: str | None, mine: Callable[[Line], bool]) -> Line | None:
        """Wait until an agent's next line is one's own. None: there is none, or it won't come."""
        while not self.released:
            line = self.coming(agent)
            if line is None or mine(line):
                return line
            taken = self.taken
            turn = asyncio.get_running_loop().create_future()
            self._turns.append(turn)
            await asyncio.wait({turn}, timeout=PATIENCE)
            if taken == self.taken and not self.busy and not self.released:
                return None
        return None

    def read_all(self) -> None:
        """Read on to the end of the log, whether someone wants it or not."""
        while not self.ended:
            self._read()

    def _read(self) -> None:
        for line in self._lines:
            # What a newer version tells besides is no part of this one's run.
            if is_known(line):
                self._waiting[line.get("agent")].append(line)
                return
        self.ended = True

    def _wake(self) -> None:
        turns, self._turns = self._turns, []
        for turn in turns:
            if not turn.done():
                turn.set_result(None)
