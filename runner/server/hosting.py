"""The runs of a server: so many at once, and each known for as long as its log is there."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.log.ends import ends
from runner.log.place import FOLDER, default_path
from runner.server import past
from runner.server.feed import Feed
from runner.server.hosted import HostedRun
from runner.server.refusal import Refusal
from runner.server.spec import ServedSpec

_RETRY = 5
"""Seconds after which a client that was refused may try again."""


@dataclass(slots=True, frozen=True)
class Bounds:
    """How much a server does at once."""

    runs: int = 16
    """Runs at once."""
    kept: int = 100
    """Ended runs that are kept in memory. All others are known by their logs."""
    readers: int = 1000
    """Streams of events at once."""
    answer_within: float = 600.0
    """Seconds that a run waits for the answer to a question; 0: nobody is asked."""


class Hosting:
    """Starts runs, and finds them again.

    Args:
        specs: What can be run, by name.
        bounds: How much at once.
        folder: Where logs are written, and found.
        verbose: Whether bugs are told on stderr.
    """

    def __init__(
        self,
        specs: Mapping[str, ServedSpec],
        bounds: Bounds | None = None,
        folder: Path = FOLDER,
        *,
        verbose: bool = False,
    ) -> None:
        self.specs = specs
        self.bounds = bounds or Bounds()
        self.readers = 0
        """Streams of events that are open."""
        self._folder = folder
        self._verbose = verbose
        self._live: dict[str, HostedRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended: OrderedDict[str, HostedRun] = OrderedDict()
        self._stopping = False

    @property
    def running(self) -> int:
        """How many runs go on."""
        return len(self._live)

    def start(self, spec: str, inputs: dict[str, Any], prompt: str | None) -> HostedRun:
        """Start a run.

        Raises:
            Refusal: where it can't be run, or not now.
        """
        if self._stopping:
            raise Refusal(
                503, "stopping", "the server is stopping", {"Retry-After": str(2 * _RETRY)}
            )
        if spec not in self.specs:
            known = ", ".join(self.specs) or "none"
            raise Refusal(422, "no_such_spec", f'no spec is called "{spec:.80}"; known: {known}')
        if self.running >= self.bounds.runs:
            raise Refusal(
                429,
                "too_many_runs",
                f"{self.running} runs go on, and no more are allowed; try again when one has ended",
                {"Retry-After": str(_RETRY)},
            )
        run = HostedRun(self.specs[spec], inputs, prompt, self.bounds.answer_within)
        run.log_to(Feed(default_path(run.spec, run.id, self._folder)))
        self._live[run.id] = run
        task = asyncio.create_task(run.run(verbose=self._verbose), name=f"run {run.id}")
        self._tasks[run.id] = task
        task.add_done_callback(lambda _: self._keep(run))
        return run

    def _keep(self, run: HostedRun) -> None:
        del self._live[run.id], self._tasks[run.id]
        run.forget()
        self._ended[run.id] = run
        while len(self._ended) > self.bounds.kept:
            self._ended.popitem(last=False)

    # --- finding ----------------------------------------------------------------------------------

    def live(self, run_id: str) -> HostedRun:
        """A run that goes on.

        Raises:
            Refusal: where there is no such run, or it has ended.
        """
        if (run := self._live.get(run_id)) is not None:
            return run
        if run_id in self._ended or self._log_of(run_id) is not None:
            raise Refusal(409, "run_ended", f"run {run_id} has ended")
        raise _no_such_run()

    async def describe(self, run_id: str) -> dict[str, Any]:
        """What is known of a run.

        Raises:
            Refusal: where there is no such run.
        """
        if (run := self._live.get(run_id)) is not None:
            return run.as_json(whole=True)
        path = await asyncio.to_thread(self._log_of, run_id)
        told = None
        if path is not None:
            told = await asyncio.to_thread(past.summary, run_id, path, whole=True)
        if told is None and run_id in self._ended:
            told = self._ended[run_id].as_json()
        if told is None:
            raise _no_such_run()
        return told

    async def list(self, *, before: str, limit: int) -> list[dict[str, Any]]:
        """Runs, the newest first: those that go on, and those that ended.

        Args:
            before: Only those that are older than the run of this id; empty for all.
            limit: How many at most.
        """
        known = {**self._live, **self._ended}
        own = [run.as_json() for name, run in known.items() if not before or name < before]
        logged = await asyncio.to_thread(
            past.runs, self._folder, before=before, limit=limit, without=set(known)
        )
        return sorted(own + logged, key=lambda run: str(run["id"]), reverse=True)[:limit]

    async def feed(self, run_id: str) -> tuple[Feed, HostedRun | None]:
        """The lines of a run's log, and the run where it goes on.

        Raises:
            Refusal: where there is no such run.
        """
        if (run := self._live.get(run_id)) is not None:
            return run.feed, run
        path = await asyncio.to_thread(self._log_of, run_id)
        if path is not None:
            return Feed(path, ended=True), None
        if run_id in self._ended:
            return self._ended[run_id].feed, None
        raise _no_such_run()

    async def log(self, run_id: str) -> tuple[Path, int]:
        """A run's log, and how many bytes of it are whole lines.

        Raises:
            Refusal: where there is none.
        """
        feed, run = await self.feed(run_id)
        size = feed.size if run is not None else await asyncio.to_thread(_whole_size, feed.path)
        if not size:
            raise Refusal(404, "no_log", f"run {run_id} has written nothing yet")
        return feed.path, size

    def _log_of(self, run_id: str) -> Path | None:
        if not past.RUN_ID.fullmatch(run_id):
            return None
        return past.ids(self._folder).get(run_id)

    # --- the end ----------------------------------------------------------------------------------

    async def stop(self, signal: int, grace: float) -> None:
        """Start nothing more, and wait for what runs; what takes longer is aborted.

        Args:
            signal: What ends the server.
            grace: Seconds that runs have to end by themselves.
        """
        self._stopping = True
        if self._tasks and grace:
            await asyncio.wait(set(self._tasks.values()), timeout=grace)
        for run in list(self._live.values()):
            run.end_by(signal)
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()))


def _whole_size(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return ends(file.fileno()).whole_size
    except OSError:
        return 0


def _no_such_run() -> Refusal:
    return Refusal(404, "no_such_run", "there is no such run")
