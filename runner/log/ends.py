"""The two ends of a log's file: what it begins with, and where its last whole line is.

Neither needs the lines between, so a folder of large logs is listed in no time.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runner.json_text import parse

_BLOCK = 64 * 1024


@dataclass(slots=True, frozen=True)
class Ends:
    """What the two ends of a file say of it."""

    first: dict[str, Any] | None
    """The ``run_start`` that it begins with; None where it is no log."""
    last: dict[str, Any] | None
    """The last whole line; None where there is none."""
    whole_size: int
    """Bytes up to the end of the last whole line: what follows is a torn tail."""

    @property
    def finished(self) -> bool:
        """Whether the run has ended, and its end is on disk."""
        return self.last is not None and self.last.get("type") == "run_end"


def ends(fd: int) -> Ends:
    """Look at both ends of an open file, wherever its position is.

    Raises:
        OSError: when it can't be read.
    """
    size = os.fstat(fd).st_size
    first = event_of(_first_line(fd, size))
    if first is None or first.get("type") != "run_start" or not is_format(first.get("format")):
        return Ends(None, None, 0)
    # A crash breaks one line at most: what is broken before that is no torn tail.
    for offset, line in itertools.islice(_lines_backwards(fd, size), 2):
        if line.endswith(b"\n") and (last := event_of(line)) is not None:
            return Ends(first, last, offset + len(line))
    return Ends(first, None, 0)


def event_of(line: bytes) -> dict[str, Any] | None:
    """A line's event; None where the line holds none."""
    try:
        value = parse(line.decode())
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


def is_format(value: Any) -> bool:
    """Whether a ``format`` is one of pi-run's logs, of whatever version."""
    return isinstance(value, str) and value.startswith("pi-run-log/")


def _first_line(fd: int, size: int) -> bytes:
    """The first line with its line break; empty where the file can't be a log."""
    parts: list[bytes] = []
    offset = 0
    while offset < size:
        block = os.pread(fd, _BLOCK, offset)
        if not block or (offset == 0 and not block.startswith(b"{")):
            break
        end = block.find(b"\n")
        if end >= 0:
            parts.append(block[: end + 1])
            return b"".join(parts)
        parts.append(block)
        offset += len(block)
    return b""


def _lines_backwards(fd: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Each line with its offset, from the last to the first; the last may lack its line break."""
    after: list[bytes] = []
    offset = size
    while offset > 0:
        start = max(0, offset - _BLOCK)
        block = os.pread(fd, offset - start, start)
        offset = start
        end = len(block)
        while (cut := block.rfind(b"\n", 0, end)) >= 0:
            rest = block[cut + 1 : end] + b"".join(reversed(after))
            after.clear()
            if rest:
                yield start + cut + 1, rest
            after.append(b"\n")
            end = cut
        after.append(block[:end])
    if line := b"".join(reversed(after)):
        yield 0, line
