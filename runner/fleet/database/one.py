"""One run that a worker has: begun, or gone on with by its log, with its log in the database."""

from __future__ import annotations

import asyncio
import platform
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

from runner import json_text
from runner.api import Compiled, Control, RunResult
from runner.api.runs import run
from runner.fleet.contract import Outcome
from runner.fleet.database import runs
from runner.fleet.database.appends import Appends, RunLog
from runner.fleet.database.bundle import Bundle, unpack, with_inputs
from runner.fleet.database.connect import Database
from runner.fleet.database.lines import read_lines
from runner.fleet.database.stored import Stored
from runner.fleet.outcome import said_by_error, said_by_log, said_by_result

Patiently = Callable[[Callable[[], Any]], Coroutine[Any, Any, Any]]
"""Asks something of the database, however long it can't be reached."""


class Specs:
    """The specs of a worker's runs, each laid out and loaded once.

    Args:
        database: Where their bundles are.
        workspace: Where tools work, whatever the bundles say.
    """

    def __init__(self, database: Database, workspace: str | None) -> None:
        self._database = database
        self._workspace = workspace
        self._compiled: dict[str, Compiled] = {}

    async def get(self, digest: str, patiently: Patiently) -> Compiled:
        """The spec of a bundle.

        Raises:
            UsageError: with all that is missing on this machine.
            LogError: where it can't be laid out.
        """
        if digest not in self._compiled:
            content = await patiently(lambda: runs.bundle(self._database, digest))
            self._compiled[digest] = unpack(Bundle(digest, content), self._workspace)
        return self._compiled[digest]


class Doing:
    """A run under way.

    Args:
        stored: The run, which is the worker's.
        specs: Where its spec is.
        appends: Writes its log.
        patiently: Asks the database.
    """

    def __init__(
        self, stored: Stored, specs: Specs, appends: Appends, patiently: Patiently
    ) -> None:
        self._stored = stored
        self._specs = specs
        self._patiently = patiently
        self._control = Control()
        self._cancelled = False
        self.log = RunLog(appends, stored.run_id, self._control.abort)
        """Its log, which stops it where it is not the worker's any more."""

    def cancel(self) -> None:
        """End it in order, as its user asked for."""
        if not self._cancelled:
            self._cancelled = True
            self._control.abort()

    async def run(self, database: Database, worker: str) -> None:
        """Do it, and keep what came of it.

        Raises:
            asyncio.CancelledError: where it is another worker's now.
        """
        try:
            outcome = await self._outcome(database)
        except Exception as error:  # one run's end by it is not to end the others
            outcome = self._stored.outcome_as(**said_by_error(error, f"on {platform.node()}: "))
        await self.log.flush()
        kept = not self.log.is_fenced and await self._patiently(
            lambda: runs.finish(database, worker, outcome)
        )
        if not kept or self._cancelled:
            # Nothing is to be told of it: it is another's, or its user took it out of the queue.
            raise asyncio.CancelledError

    async def _outcome(self, database: Database) -> Outcome:
        """What came of it."""
        with tempfile.TemporaryDirectory(prefix="pi-run-") as folder:
            path = Path(folder) / f"{self._stored.run_id}.jsonl"
            last = await self._patiently(lambda: _copy(database, self._stored.run_id, path))
            if last is None:
                return self._told(await self._begin())
            if last["type"] == "run_end" and not self._stored.goes_on:
                # Its worker died before it could say so.
                return self._of_log(path, last)
            return self._told(await self._go_on(path))

    async def _begin(self) -> RunResult:
        compiled = await self._specs.get(self._stored.bundle, self._patiently)
        prepared = compiled.prepare(with_inputs(compiled, self._stored.job.inputs))
        return await run(prepared, on_event=cast("Any", self.log.event), control=self._control)

    async def _go_on(self, path: Path) -> RunResult:
        from runner.api.resume import ResumeOptions, Resumption

        compiled = await self._specs.get(self._stored.bundle, self._patiently)
        options = ResumeOptions(workspace=str(compiled.workspace), environ=compiled.options.environ)
        resumption = Resumption(path, options)
        return await resumption.run(on_event=cast("Any", self.log.event), control=self._control)

    # --- outcomes ---------------------------------------------------------------------------------

    def _told(self, result: RunResult) -> Outcome:
        outcome = self._stored.outcome_as(**said_by_result(result))
        if self._cancelled:
            outcome.error = runs.CANCELLED
        return outcome

    def _of_log(self, path: Path, end: dict[str, Any]) -> Outcome:
        with path.open(encoding="utf-8", newline="\n") as file:
            return self._stored.outcome_as(**said_by_log(map(json_text.parse, file), end))


def _copy(database: Database, run_id: str, path: Path) -> dict[str, Any] | None:
    """Write a stored log into a file; gives its last line, None where there is none."""
    last = ""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for text in read_lines(database, run_id):
            file.write(text + "\n")
            last = text
    return cast("dict[str, Any]", json_text.parse(last)) if last else None
