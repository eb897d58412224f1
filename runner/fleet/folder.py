"""A batch in a folder: what it is, a log for each run, and a line for each run that was done.

::

    batch.json       what the batch is: its specs, its rows, how often each is run
    runs/KEY.jsonl   the log of a run
    results.jsonl    what came of each run, in the order in which they ended

The logs are the truth. ``results.jsonl`` only spares reading them: a line that is missing is made
of its log, and one whose log is gone, or has grown since, does not count.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner import json_text
from runner.error import LogError, UsageError
from runner.fleet.contract import Job, Outcome, Start
from runner.fleet.outcome import parsed, said_by_log
from runner.fleet.table import Table
from runner.fleet.work import KEY_BYTES, Work
from runner.log.ends import ends
from runner.log.read import read

FORMAT = "pi-run-batch/1"
FOLDER = Path(".pi-run/batches")
"""Where batches lie when nothing else is said."""
_LINE = 1 << 26
"""The longest line of results that is read."""


class Folder:
    """The `Store` of one batch, held by an advisory lock until it is closed.

    Args:
        path: The folder, which is made where there is none.
        work: What the batch is to do.
        retry_failed: Whether runs that did not end as they should are done again.

    Raises:
        UsageError: where the folder has another batch.
        LogError: where it can't be used, or another process works in it.
    """

    def __init__(self, path: Path, work: Work, *, retry_failed: bool = False) -> None:
        self.path = path
        self._work = work
        self._retry_failed = retry_failed
        self._places = Table(KEY_BYTES)
        """Where in the results the line of each run begins, by its key."""
        self._is_new = False
        """Whether there was no log in it."""
        self._retried: set[str] = set()
        """Runs that failed, and are done again by this process."""
        self._lock = self._results = -1
        try:
            (path / "runs").mkdir(parents=True, exist_ok=True)
            self._keep_out_of_git()
            self._lock = _locked(path)
            self._hold_same()
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._results = os.open(path / "results.jsonl", flags, 0o600)
            self._load()
        except OSError as error:
            self.close()
            raise self._failed(error) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the folder."""
        for descriptor in (self._results, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._results = self._lock = -1

    # --- what there is ----------------------------------------------------------------------------

    def find(self, job: Job) -> Outcome | Start:
        """See `Store.find`."""
        log = self._log(job.key)
        kept = self.outcome(job.key)
        if kept is None:
            found = self._rebuilt(job, log)
            if isinstance(found, Start):
                return found
            self.finish(kept := found)
        if kept.passed or not self._retry_failed or job.key in self._retried:
            return kept
        self._retried.add(job.key)
        # What broke off by an error goes on; what was done, and done wrong, is done anew.
        return Start(log, "resume" if kept.status == "error" and kept.log else "new")

    def outcome(self, key: str) -> Outcome | None:
        """See `Store.outcome`."""
        place = self._places.get(bytes.fromhex(key))
        return None if place is None else _outcome(self._line_at(place))

    def outcomes(self) -> Iterator[Outcome]:
        """See `Store.outcomes`."""
        for place in self._places.numbers():
            if (outcome := _outcome(self._line_at(place))) is not None:
                yield outcome

    def finish(self, outcome: Outcome) -> None:
        """See `Store.finish`."""
        data = json_text.line(outcome.as_json()).encode() + b"\n"
        try:
            place = os.lseek(self._results, 0, os.SEEK_END)
            written = 0
            while written < len(data):
                written += os.write(self._results, data[written:])
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._results, place)
            raise self._failed(error) from None
        self._places.put(bytes.fromhex(outcome.key), place)

    def _log(self, key: str) -> Path:
        return self.path / "runs" / f"{key}.jsonl"

    def _line_at(self, place: int) -> bytes:
        size, line = 4096, b""
        try:
            while b"\n" not in line and len(line) < _LINE:
                piece = os.pread(self._results, size, place + len(line))
                if not piece:
                    break
                line += piece
                size *= 2
        except OSError as error:
            raise self._failed(error) from None
        return line.partition(b"\n")[0]

    # --- logs -------------------------------------------------------------------------------------

    def _rebuilt(self, job: Job, log: Path) -> Outcome | Start:
        """What the log of a run says that the results do not: what came of it, or how to begin."""
        if self._is_new:
            return Start(log)
        try:
            descriptor = os.open(log, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return Start(log)
        except OSError as error:
            raise self._failed(error) from None
        try:
            found = ends(descriptor)
        finally:
            os.close(descriptor)
        if found.first is None:
            # It was killed before its first line was whole: nothing was run.
            log.unlink()
            return Start(log)
        last = found.last or {}
        if not found.finished or last.get("status") == "aborted":
            return Start(log, "resume")
        said = said_by_log((event for _, event in read(log)), last)
        return self._work.outcome(job, **said, log=str(log), log_bytes=log.stat().st_size)

    # --- the folder -------------------------------------------------------------------------------

    def _keep_out_of_git(self) -> None:
        for place in (self.path, *self.path.parents):
            if place.name == ".pi-run":
                with contextlib.suppress(OSError), (place / ".gitignore").open("x") as file:
                    file.write("*\n")

    def _hold_same(self) -> None:
        """Write down what the batch is, or hold it against what was written down."""
        said = self._said()
        place = self.path / "batch.json"
        try:
            known = json_text.parse(place.read_text(encoding="utf-8"))
        except FileNotFoundError:
            part = place.with_suffix(".part")
            part.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
            part.replace(place)
            return
        except ValueError:
            known = None
        if not isinstance(known, dict) or known.get("format") != FORMAT:
            raise UsageError(f"{place}: is no batch that this pi-run knows; name another --out")
        changed = [what for what in ("specs", "rows", "repeat") if known.get(what) != said[what]]
        if changed:
            words = {"specs": "its specs have", "rows": "its rows have", "repeat": "--repeat has"}
            which = ", and ".join(words[what] for what in changed)
            raise UsageError(
                f"{self.path}: {which} changed since this batch was begun; go on with what it was, "
                f"name another folder with --out, or remove {self.path} and begin anew"
            )

    def _said(self) -> dict[str, Any]:
        work, options = self._work, self._work.specs[0].options
        return {
            "format": FORMAT,
            "specs": [
                {"name": each.loaded.name, "path": each.loaded.file, "digest": digest}
                for each, digest in zip(work.specs, work.digests, strict=True)
            ],
            "rows": {"path": work.rows, "sha256": work.rows_digest(), "inputs": _given(options)},
            "repeat": work.repeat,
        }

    def _load(self) -> None:
        """Find the line of each run in the results; a torn one at the end is cut off."""
        logs = {entry.name: entry.stat().st_size for entry in os.scandir(self.path / "runs")}
        self._is_new = not logs
        place = 0
        with open(self._results, "rb", closefd=False) as file:
            for line in file:
                outcome = _outcome(line) if line.endswith(b"\n") else None
                if outcome is None and not line.endswith(b"\n"):
                    os.ftruncate(self._results, place)
                    break
                if outcome is not None and self._stands(outcome, logs):
                    self._places.put(bytes.fromhex(outcome.key), place)
                elif outcome is not None:
                    self._places.take_out(bytes.fromhex(outcome.key))
                place += len(line)

    def _stands(self, outcome: Outcome, logs: dict[str, int]) -> bool:
        """Whether the log of an outcome is still the one that it was made of."""
        return outcome.log is None or logs.get(f"{outcome.key}.jsonl") == outcome.log_bytes

    def _failed(self, error: OSError) -> LogError:
        return LogError(f"{error.filename or self.path}: {error.strerror or error}")


def _given(options: Any) -> str:
    """A hash of the inputs that all runs of a batch have."""
    import hashlib

    return hashlib.sha256(json_text.canonical([options.values, options.texts])).hexdigest()


def _outcome(line: bytes) -> Outcome | None:
    """What a line of results says; None where it says nothing."""
    try:
        value = json_text.parse(line.decode())
        if len(bytes.fromhex(value["key"])) != KEY_BYTES:
            return None
        return parsed(value)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _locked(path: Path) -> int:
    """The folder's lock.

    Raises:
        LogError: where another process has it.
    """
    descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LogError(
            f"{path}: another batch runs in this folder; let it end, or name another with --out"
        ) from None
    return descriptor
