"""A worker: takes up runs from the database, as many at a time as it was told, and does them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from runner.error import PiRunError
from runner.fleet.database.appends import Appends
from runner.fleet.database.connect import Database, DatabaseError
from runner.fleet.database.engine import Engine, tell_troubles
from runner.fleet.database.lease import lease_of
from runner.fleet.database.listed import is_idle
from runner.fleet.database.one import Doing, Specs
from runner.fleet.database.reaper import Reaper, leave
from runner.fleet.database.runs import claim
from runner.thread import call_in_thread

_LOOK_SECONDS = 0.1
_TOLD_SECONDS = 10.0
"""The same trouble is not told more often."""
_AGAIN_SECONDS = 0.2
_BEGIN_SECONDS = 1.0

End = Literal["lost", "done", "stopped"]


@dataclass(slots=True)
class WorkerOptions:
    """How a worker works."""

    at_once: int = 8
    """How many runs are under way at a time; ≥ 1."""
    workspace: str | None = None
    """Where tools work, whatever the runs say."""
    grace: float = 30.0
    """Seconds that runs under way have to end, once the worker is told to."""
    until_idle: bool = False
    """Whether it ends when no run waits or is under way."""


class Worker:
    """Does runs until it is told to end.

    Args:
        database: Where the runs are.
        options: How it works.
        say: Tells a person what happens, from any thread.
    """

    def __init__(
        self, database: Database, options: WorkerOptions, say: Callable[[str], object]
    ) -> None:
        self._database = database
        self._options = options
        self._say = Quiet(say)
        self._specs = Specs(database, options.workspace)
        self._stopping: asyncio.Event | None = None
        self._stopped = False

    async def run(self) -> None:
        """Do runs.

        Raises:
            DatabaseError: where the database can't be used at the start.
            UsageError: where its tables are those of another version.
        """
        self._stopping = asyncio.Event()
        if self._stopped:
            return
        tell_troubles(self._say, self._database)
        has_begun = False
        while True:
            name = f"{platform.node() or 'host'}-{os.getpid()}-{secrets.token_hex(3)}"
            shift = Shift(self._database, name, self._options, self._specs, self._say)
            try:
                if await shift.run(self._stopping) != "lost":
                    return
                # It was stopped for too long, or could not reach the database.
                self._say(f"{name} was taken for gone; others do its runs, and it begins anew")
                has_begun = True
            except DatabaseError as error:
                if not (has_begun and error.passing) or self._stopping.is_set():
                    raise
                self._say(str(error))
                await asyncio.sleep(_BEGIN_SECONDS)

    def abort(self, signal: int | None = None) -> None:
        """Take up no more runs; those under way have a while to end."""
        self._stopped = True
        if self._stopping is not None:
            self._stopping.set()


class Shift:
    """A worker under one name: from when it takes its lease until it ends it, or loses it."""

    def __init__(
        self,
        database: Database,
        name: str,
        options: WorkerOptions,
        specs: Specs,
        say: Callable[[str], object],
    ) -> None:
        self._database = database
        self._name = name
        self._options = options
        self._specs = specs
        self._say = say
        self._appends = Appends(database, name, say)
        self._doing: dict[str, Doing] = {}
        self._lost = asyncio.Event()
        self._idle = asyncio.Event()
        """Whether no run is under way."""
        self._idle.set()
        self._is_ending = False

    async def run(self, stopping: asyncio.Event) -> End:
        """Do runs; says why it ended."""
        loop = asyncio.get_running_loop()

        def soon(call: Callable[..., object], *words: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: all has ended
                loop.call_soon_threadsafe(call, *words)

        lease = lease_of(
            self._database,
            self._name,
            self._options.at_once,
            lambda runs: soon(self._cancel, runs),
            lambda: soon(self._lost.set),
        )
        await call_in_thread(lease.begin, "pi-run-begin")
        engine = Engine(self._database, self._name, self._options.at_once, self._do, self._stop_one)
        reaper = Reaper(self._database, self._name, lease, engine, self._say)
        try:
            with self._database.told():
                await call_in_thread(engine.launch, "pi-run-launch")
            reaper.begin()
            self._say(
                f"{self._name}: {self._options.at_once} runs at a time, of {self._database.shown}"
            )
            end = await self._wait(stopping)
            if end == "stopped":
                self._end(engine)
                await self._finish_some()
        finally:
            self._end(engine)
            await self._drop()
            await call_in_thread(reaper.end, "pi-run-end")
            await call_in_thread(lambda: self._leave(engine), "pi-run-leave")
            await call_in_thread(engine.end, "pi-run-end")
            await call_in_thread(lease.end, "pi-run-end")
        return end

    async def _wait(self, stopping: asyncio.Event) -> End:
        """Wait for a reason to end."""
        looked = time.monotonic()
        while True:
            if self._lost.is_set():
                return "lost"
            if stopping.is_set():
                return "stopped"
            await asyncio.sleep(_LOOK_SECONDS)
            if self._options.until_idle and not self._doing and time.monotonic() - looked > 0.5:
                looked = time.monotonic()
                with contextlib.suppress(PiRunError):
                    if await call_in_thread(partial(is_idle, self._database), "pi-run-idle"):
                        return "done"

    def _end(self, engine: Engine) -> None:
        """Take up nothing any more; what was on its way here by now is left to others."""
        engine.at_once, self._is_ending = 0, True

    async def _finish_some(self) -> None:
        """Let runs that are under way end, for a while."""
        if self._doing and self._options.grace:
            self._say(
                f"ends when its {len(self._doing)} runs have, or in {self._options.grace:g} s"
            )
        lost = asyncio.ensure_future(self._lost.wait())
        ended = asyncio.ensure_future(self._idle.wait())
        await asyncio.wait(
            (lost, ended), timeout=self._options.grace, return_when=asyncio.FIRST_COMPLETED
        )
        lost.cancel()
        ended.cancel()

    async def _drop(self) -> None:
        """Stop what is still under way, as if this worker had died; others go on with it."""
        for doing in list(self._doing.values()):
            doing.log.fence()
        await self._idle.wait()
        await self._appends.settle()

    def _leave(self, engine: Engine) -> None:
        try:
            leave(self._database, self._name, engine)
        except PiRunError as error:
            self._say(f"{error}; other workers take over what it had")

    # --- runs -------------------------------------------------------------------------------------

    async def _do(self, run_id: str) -> None:
        """Do one run that was given to this worker."""
        if self._is_ending:
            raise asyncio.CancelledError
        claimed = await self._patiently(lambda: claim(self._database, run_id, self._name))
        if claimed.kind == "lost":
            raise asyncio.CancelledError
        if claimed.run is None:
            return
        if self._lost.is_set() or self._is_ending:
            raise asyncio.CancelledError
        doing = Doing(claimed.run, self._specs, self._appends, self._patiently)
        self._doing[run_id] = doing
        self._idle.clear()
        try:
            await doing.run(self._database, self._name)
        finally:
            if self._doing.get(run_id) is doing:
                del self._doing[run_id]
            if not self._doing:
                self._idle.set()

    def _stop_one(self, run_id: str) -> None:
        self._cancel({run_id})

    def _cancel(self, runs: set[str]) -> None:
        for run_id in runs & self._doing.keys():
            self._doing[run_id].cancel()

    async def _patiently(self, call: Callable[[], Any]) -> Any:
        """Ask something of the database, however long it can't be reached."""
        while True:
            try:
                return await call_in_thread(call, "pi-run-database")
            except DatabaseError as error:
                self._say(str(error))
                if not error.passing:
                    raise
            await asyncio.sleep(_AGAIN_SECONDS)


class Quiet:
    """Says nothing again that was just said."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._told: dict[str, float] = {}

    def __call__(self, text: str) -> None:
        """Say a sentence, from any thread."""
        now = time.monotonic()
        if now - self._told.get(text, -_TOLD_SECONDS) >= _TOLD_SECONDS:
            self._told = {k: v for k, v in self._told.items() if now - v < _TOLD_SECONDS}
            self._told[text] = now
            self._say(text)
