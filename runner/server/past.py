"""Runs that ended, known by their logs in a folder: those of this server and of those before it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.log.ends import Ends, ends

RUN_ID = re.compile(r"[0-9a-z]{12}")
"""What a run's id looks like."""
_FILE = re.compile(rf".+-({RUN_ID.pattern})\.jsonl")
_TOLD = ("exit_code", "turns", "tool_calls", "cost_usd", "seconds", "error")
"""What the list tells of a run's end."""


def ids(folder: Path) -> dict[str, Path]:
    """The logs of a folder by their runs' ids, the newest first."""
    try:
        names = os.listdir(folder)
    except OSError:
        return {}  # nothing was run yet
    found = {match[1]: folder / name for name in names if (match := _FILE.fullmatch(name))}
    return dict(sorted(found.items(), reverse=True))


def runs(folder: Path, *, before: str, limit: int, without: set[str]) -> list[dict[str, Any]]:
    """Runs that are known by their logs, the newest first.

    Args:
        folder: The folder of logs.
        before: Only runs that are older than the one of this id; empty for all.
        limit: How many at most.
        without: Ids of runs that are left out.
    """

    def wanted() -> Iterator[dict[str, Any]]:
        for name, path in ids(folder).items():
            if name in without or (before and name >= before):
                continue
            if (told := summary(name, path)) is not None:
                yield told

    return [told for told, _ in zip(wanted(), range(limit), strict=False)]


def summary(name: str, path: Path, *, whole: bool = False) -> dict[str, Any] | None:
    """What a log tells of its run; None where it is no log.

    Args:
        name: The run's id.
        path: The log.
        whole: Whether to tell what the run came to as well.
    """
    found = _ends(path)
    if found is None or found.first is None:
        return None
    spec = found.first.get("spec")
    end = (found.last or {}) if found.finished else {}
    return {
        "id": name,
        "spec": str(spec.get("name", "")) if isinstance(spec, dict) else "",
        "status": str(end.get("status", "interrupted")),
        "live": False,
        "started_at": str(found.first.get("started_at", "")),
        "questions": [],
        **ending(end, whole=whole),
    }


def ending(end: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    """What a ``run_end`` says, as clients are told it."""
    names = (*_TOLD, *(("text", "output", "usage") if whole else ()))
    return {name: end[name] for name in names if name in end}


def _ends(path: Path) -> Ends | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return ends(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
