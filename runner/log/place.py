"""Where logs lie when nothing else is said, and the ids that name them."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(".pi-run/logs")
"""The folder of logs, below the current folder."""

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def new_run_id(time_ns: int) -> str:
    """An id for a run that starts now: 12 lower-case letters and digits that sort by time.

    Args:
        time_ns: Nanoseconds since 1970, as of `time.time_ns`.
    """
    # Nine digits count tenths of milliseconds up to the year 2286.
    chance = int.from_bytes(os.urandom(8))
    return _base36(time_ns // 100_000, 9) + _base36(chance, 3)


def default_path(name: str, run_id: str, folder: Path = FOLDER) -> Path:
    """The path of a run's log when nothing else is said.

    Args:
        name: The spec's name.
        run_id: The run's id.
        folder: The folder of logs.
    """
    return folder / f"{name}-{run_id}.jsonl"


def _base36(number: int, digits: int) -> str:
    text = ""
    for _ in range(digits):
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text
