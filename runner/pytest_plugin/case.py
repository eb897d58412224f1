"""A spec's test: it is run and held against what it expects, or replayed from its log."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.api import RunOptions, RunResult, run_spec
from runner.error import LogError, UsageError
from runner.log.read import read
from runner.pytest_plugin.failure import Cause, SpecFailure, failure_of, hold, hold_expectations
from runner.pytest_plugin.run import shown
from runner.spec.load import load

if TYPE_CHECKING:
    from runner.api.replay import Recording, Replayed
    from runner.spec.loaded import Loaded

RENEW = (
    "where this is meant, renew the log: pytest --snapshot-update (an option of syrupy), "
    "or delete it and run pytest --record"
)
_FREE = ("scripted", "local")
"""Models that cost nothing, whatever they are asked."""


class Scratch:
    """A folder for the logs of runs, of which those of failed tests stay."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._count = 0

    def log(self, name: str) -> Path:
        """A path for a new log."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="pi-run-"))
        self._count += 1
        return self._folder / f"{name}-{self._count}.jsonl"

    def close(self) -> None:
        """Remove the folder, if nothing is in it."""
        if self._folder is not None:
            with suppress(OSError):
                self._folder.rmdir()


class Case:
    """One spec under test.

    Args:
        path: The spec's file.
        scratch: Where logs go.

    All methods raise `SpecFailure` where the test fails.
    """

    def __init__(self, path: Path, scratch: Scratch) -> None:
        self._path = path
        self._spec = shown(path)
        self._scratch = scratch

    def run(self) -> None:
        """Run it; all that it expects has to hold."""
        log = self._scratch.log(self._path.stem)
        hold(self._spec, self._run(RunOptions(log=str(log))))
        log.unlink()

    def record(self, target: Path) -> None:
        """Run it, and keep its log where there is none yet."""
        if target.exists():
            raise self._failure(f"{shown(target)} is no log of pi-run, so it is left as it is")
        self._record(target, RunOptions(), allowed="ok")

    def replay(self, log: Path) -> None:
        """Replay its log: the spec as it is now has to do what is recorded."""
        self._hold_replay(log, self._replayed(log))
        hold_expectations(shown(log), list(self._expectations(log)))

    def renew(self, log: Path) -> None:
        """Record its log anew, if that is no longer what the spec does.

        A run that asks a real model costs something, so it is only done where the replay differs.
        """
        replayed = self._replayed(log)
        if replayed.status is not None and replayed.difference is None and not self._is_free():
            return self.replay(log)
        recording = self._recording(log)
        options = self._options_of(recording)
        self._record(log, options, allowed=replayed.status or "ok")

    # --- runs -------------------------------------------------------------------------------------

    def _run(self, options: RunOptions) -> RunResult:
        try:
            return run_spec(self._spec, options=options)
        except (UsageError, LogError) as error:
            raise failure_of(self._spec, error) from error

    def _record(self, target: Path, options: RunOptions, *, allowed: str) -> None:
        log = self._scratch.log(self._path.stem)
        hold(self._spec, self._run(replace(options, log=str(log), frozen=True)), allowed=allowed)
        replayed = self._replayed(log)
        if replayed.difference is not None:
            told = _parting_lines(replayed)
            text = f"it is not the same each time; see pi-run doctor {self._spec}"
            raise self._failure(text, [text, *told], [f"log: {log}"])
        try:
            write_whole(target, log.read_bytes())
        except OSError as error:
            raise self._failure(
                f"{shown(target)} can't be written: {error.strerror or error}"
            ) from error
        log.unlink()

    def _is_free(self) -> bool:
        """Whether no model that it asks costs something."""
        models = [each.spec.model for each in self._loaded().everything()]
        asked = [choice for model in models for choice in (model, *model.fallback)]
        return all(choice.provider in _FREE for choice in asked)

    def _options_of(self, recording: Recording) -> RunOptions:
        """How a recorded run was asked for, but for what is secret."""
        flags: dict[str, Any] = recording.plan.get("resolved", {}).get("flags", {})
        known = {name: given for name, given in self._loaded().inputs.items() if not given.secret}
        return RunOptions(
            values={name: value for name, value in recording.inputs.items() if name in known},
            sets=[(path, text) for path, text in flags.get("set", ())],
            prompt=flags.get("prompt"),
            model=flags.get("model"),
            yes=bool(flags.get("yes")),
        )

    def _loaded(self) -> Loaded:
        try:
            return load(self._spec)
        except UsageError as error:
            raise failure_of(self._spec, error) from error

    # --- replays ----------------------------------------------------------------------------------

    def _recording(self, log: Path) -> Recording:
        from runner.api.replay import Recording

        try:
            return Recording(shown(log))
        except LogError as error:
            raise failure_of(shown(log), error) from error

    def _replayed(self, log: Path) -> Replayed:
        from runner.api.replay import replay

        try:
            return replay(shown(log), spec=self._spec)
        except (UsageError, LogError) as error:
            raise failure_of(self._spec, error) from error

    def _hold_replay(self, log: Path, replayed: Replayed) -> None:
        name = shown(log)
        if parting := replayed.difference:
            told = _parting_lines(replayed)
            line = replayed.lines if parting.seq is None else parting.seq + 1
            cause = Cause(name, line, "not as recorded", told, quotes=False)
            raise SpecFailure(f"not as recorded: {told[0]}", [cause], [RENEW])
        if replayed.status is None:
            text = "the log breaks off before its run ended"
            cause = Cause(name, replayed.lines, "the log's end", [text], quotes=False)
            raise SpecFailure(text, [cause], [RENEW])

    def _expectations(self, log: Path) -> Iterator[dict[str, Any]]:
        """What became of each expectation of a run that was replayed, with its place."""
        loaded = self._loaded()
        lists = {"main": ("expect", loaded.spec.expect)}
        for number, task in enumerate(loaded.spec.follow_ups.tasks):
            lists[task.id] = (f"follow_ups.tasks[{number}].expect", task.expect)
        seen = dict.fromkeys(lists, 0)
        for _, event in read(shown(log)):
            if event["type"] == "expectation" and "agent" not in event:
                # A task's are all held, in their order, each time that it is done.
                path, expected = lists[event["task_id"]]
                at = seen[event["task_id"]] % len(expected)
                seen[event["task_id"]] += 1
                place = loaded.place(f"{path}[{at}].{event['kind']}")
                yield {**event, "file": place.source.name, "line": place.line}

    def _failure(
        self, text: str, told: list[str] | None = None, notes: list[str] | None = None
    ) -> SpecFailure:
        cause = Cause(self._spec, 1, "not recorded", told or [text], quotes=False)
        return SpecFailure(text, [cause], notes or [])


def _parting_lines(replayed: Replayed) -> list[str]:
    from runner.views.replay import parting_lines

    return parting_lines(replayed.difference, replayed.prompts) if replayed.difference else []


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, unless it has these bytes: it is there as a whole, or as it was before."""
    with suppress(OSError):
        if path.read_bytes() == data:
            return
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
