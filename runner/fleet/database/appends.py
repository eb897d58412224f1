"""The logs of a worker's runs on their way into the database.

Each run's lines are kept until the next of the log's write points, at which the run waits until
they are there. What all runs of a worker have by then goes in one transaction, so that the database
sees few, however many runs there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from runner.fleet.database.connect import Database, DatabaseError
from runner.fleet.database.lines import Line, append
from runner.json_text import line
from runner.log.write import WRITE_POINTS
from runner.thread import call_in_thread

_BOUND = 64 * 1024
"""Characters of a run that are kept at most before they are on their way."""
_DELAY = 0.25
"""Seconds that a line is kept at most before it is on its way."""
_MOST = 20_000
"""Lines of one transaction."""
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 1.0


class RunLog:
    """The log of one run, as a listener of its events.

    Args:
        appends: Takes its lines.
        run_id: Whose.
        fenced: Is called once when the run is another's, or nobody's.
    """

    def __init__(self, appends: Appends, run_id: str, fenced: Callable[[], object]) -> None:
        self.run_id = run_id
        self.is_fenced = False
        """Whether nothing of it is written any more."""
        self.lines: list[Line] = []
        """What is not on its way yet."""
        self._appends = appends
        self._fenced = fenced
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def event(self, event: dict[str, Any]) -> Awaitable[None] | None:
        """Take an event; gives what the run waits for before it goes on."""
        if self.is_fenced:
            return None
        text = line(event)
        self.lines.append((self.run_id, event["seq"], text))
        self._size += len(text)
        if event["type"] in WRITE_POINTS:
            return self.flush()
        if self._size > _BOUND:
            self._appends.wants(self)
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_DELAY, self._appends.wants, self)
        return None

    def flush(self) -> Awaitable[None]:
        """What ends when all lines so far are in the database, or the run is fenced off."""
        return self._appends.wants(self)

    def fence(self) -> None:
        """Write nothing of it any more, and stop it."""
        if not self.is_fenced:
            self.is_fenced = True
            self.taken()
            self._fenced()

    def taken(self) -> list[Line]:
        """Its lines, which are on their way now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self.lines, self._size = self.lines, [], 0
        return lines


class Appends:
    """Writes the lines of all runs of a worker, as long as it has lines.

    Args:
        database: Where to.
        owner: The worker.
        trouble: Is told, in a sentence, why lines can't be written at the moment, or at all.
    """

    def __init__(
        self, database: Database, owner: str, trouble: Callable[[str], object] = lambda _: None
    ) -> None:
        self._database = database
        self._owner = owner
        self._trouble = trouble
        self._waiting: dict[RunLog, asyncio.Future[None]] = {}
        self._work: asyncio.Task[None] | None = None

    def wants(self, log: RunLog) -> asyncio.Future[None]:
        """A log has lines that are to be written."""
        done = self._waiting.get(log)
        if done is None:
            done = self._waiting[log] = asyncio.get_running_loop().create_future()
        if self._work is None or self._work.done():
            self._work = asyncio.ensure_future(self._write_all())
        return done

    async def settle(self) -> None:
        """Wait until nothing is on its way."""
        while self._work is not None and not self._work.done():
            await asyncio.wait([self._work])

    async def _write_all(self) -> None:
        # All that is told in this turn of the loop goes together.
        await asyncio.sleep(0)
        while self._waiting:
            waiting, lines = self._next()
            for run_id in await self._write(lines):
                for log in waiting:
                    if log.run_id == run_id:
                        log.fence()
            for done in waiting.values():
                if not done.done():
                    done.set_result(None)

    def _next(self) -> tuple[dict[RunLog, asyncio.Future[None]], list[Line]]:
        """What goes in one transaction."""
        waiting: dict[RunLog, asyncio.Future[None]] = {}
        lines: list[Line] = []
        while self._waiting and len(lines) < _MOST:
            log = next(iter(self._waiting))
            waiting[log] = self._waiting.pop(log)
            lines += log.taken()
        return waiting, lines

    async def _write(self, lines: list[Line]) -> set[str]:
        """Write lines, however long the database can't be reached; gives whose can't be."""
        if not lines:
            return set()
        wait = _FIRST_WAIT
        while True:
            try:
                return await call_in_thread(
                    lambda: append(self._database, self._owner, lines), "pi-run-append"
                )
            except DatabaseError as error:
                self._trouble(str(error))
                if not error.passing:
                    # What is not in its log must not be done.
                    return {run_id for run_id, _, _ in lines}
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
