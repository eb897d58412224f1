"""Logs by name: their folder, listed by what their first and last lines say."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.error import LogError, UsageError
from runner.log.ends import ends
from runner.log.place import FOLDER

_SOME = 5
"""Candidates that an error names."""


@dataclass(slots=True, frozen=True)
class LogEntry:
    """What a log's two ends say of its run."""

    path: Path
    run_id: str
    """The run's id; the file's name without suffix, where the log has none (``--frozen``)."""
    name: str
    """The spec's name."""
    started_at: datetime.datetime
    """UTC; when the file was last changed, where the log doesn't say."""
    status: str | None
    """How the run ended; None where it did not, or has not yet."""
    turns: int | None
    cost_usd: float | None
    seconds: float | None

    @property
    def incomplete(self) -> bool:
        """Whether the run has not ended."""
        return self.status is None


def logs(folder: str | os.PathLike[str] = FOLDER) -> list[LogEntry]:
    """The logs of a folder, the oldest first. A file that is no log is left out.

    Raises:
        LogError: when the folder can't be read. One that isn't there has no logs.
    """
    try:
        paths = sorted(Path(folder).glob("*.jsonl"))
    except OSError as error:
        raise LogError(f"{folder}: can't be read: {error.strerror or error}") from None
    entries = [entry for path in paths if (entry := _entry(path)) is not None]
    return sorted(entries, key=lambda entry: entry.started_at)


def find(name: str, folder: str | os.PathLike[str] = FOLDER) -> Path:
    """A log by its path, its run's id or the beginning of that, or ``last``.

    Raises:
        UsageError: where there is none, or more than one; it names those that could be meant.
    """
    path = Path(name)
    if _is_there(path):
        return path
    if os.sep in name or path.suffix == ".jsonl":
        what = "it is a folder; name a log in it" if _is_folder(path) else "there is no such log"
        raise UsageError(f"{path}: {what}")
    known = logs(folder)
    if not known:
        raise UsageError(f"{name}: there is no such log, and there are none in {folder}")
    if name == "last":
        return known[-1].path
    found = [entry for entry in known if name in (entry.run_id, entry.path.stem)]
    found = found or [entry for entry in known if entry.run_id.startswith(name)]
    if not found:
        raise UsageError(f"{name}: there is no such log in {folder}; the last are {_some(known)}")
    if len(found) > 1:
        raise UsageError(f"{name}: more than one log is called like that: {_some(found)}")
    return found[0].path


def _is_there(path: Path) -> bool:
    try:
        return path.exists() and not path.is_dir()
    except OSError:  # such as a name that is too long
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _some(entries: list[LogEntry]) -> str:
    names = [entry.run_id for entry in reversed(entries)]
    return ", ".join(names[:_SOME]) + (" …" if len(names) > _SOME else "")


def _entry(path: Path) -> LogEntry | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = ends(fd)
        changed = os.fstat(fd).st_mtime
    except OSError:
        return None
    finally:
        os.close(fd)
    if found.first is None:
        return None
    first, last = found.first, found.last if found.finished and found.last else {}
    spec = first.get("spec")
    return LogEntry(
        path=path,
        run_id=_text(first.get("run_id"), path.stem),
        name=_text(spec.get("name") if isinstance(spec, dict) else None, path.stem),
        started_at=_time(first.get("started_at"), changed),
        status=_text(last.get("status"), "") or None,
        turns=last.get("turns") if isinstance(last.get("turns"), int) else None,
        cost_usd=_number(last.get("cost_usd")),
        seconds=_number(last.get("seconds")),
    )


def _text(value: Any, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None


def _time(value: Any, changed: float) -> datetime.datetime:
    try:
        time = datetime.datetime.fromisoformat(value)
        return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
    except (TypeError, ValueError):
        return datetime.datetime.fromtimestamp(changed, datetime.UTC)
