"""A log's events, read line by line: what a crash left is dropped, what is broken is told."""

from __future__ import annotations

import errno
import json
import os
import re
import select
import stat
from collections.abc import Callable, Iterator
from typing import IO, Any

from runner.engine.event import FORMAT
from runner.error import LogError
from runner.json_text import parse
from runner.log.shape import problem

Event = dict[str, Any]
Warn = Callable[[str], None]
"""Takes a sentence for the user."""

_FORMAT = re.compile(r"pi-run-log/(\d{1,9})(?:\.\d+)*")
_WAIT = 5.0
"""Seconds that the writer of a pipe has to write something."""
_MAJOR = int(FORMAT.rpartition("/")[2])


class _BrokenError(ValueError):
    """What is wrong with a line."""


def read(path: str | os.PathLike[str], warn: Warn | None = None) -> Iterator[tuple[int, Event]]:
    """Each event of a log, with its line's number, in constant memory.

    Types and fields that are not known are given like the others.

    Args:
        path: The file.
        warn: Is told of a torn tail, which is left out.

    Raises:
        LogError: when the file can't be read, is no log or one of a newer format, or is broken
            anywhere but at its end; with the line's number.
    """
    try:
        with open(_descriptor(path), "rb") as file:
            yield from read_file(file, path, warn)
    except OSError as error:
        raise LogError(f"{path}: can't be read: {error.strerror or error}") from None


def _descriptor(path: str | os.PathLike[str]) -> int:
    """Open a log. A pipe that nobody writes to is not waited for without end.

    Raises:
        LogError: where nobody does.
        OSError: where it can't be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except ValueError as error:  # a NUL in the path
        raise OSError(errno.EINVAL, str(error)) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if stat.S_ISFIFO(mode):
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(_WAIT * 1000):
                raise LogError(f"{path}: nobody writes to this pipe; start the writer first")
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_file(
    file: IO[bytes], path: str | os.PathLike[str], warn: Warn | None = None
) -> Iterator[tuple[int, Event]]:
    """As `read`, from an open file; ``path`` is what it is called.

    Raises:
        LogError: as for `read`.
        OSError: when it can't be read.
    """
    number = 0
    while line := file.readline() if number else _first_line(file):
        number += 1
        try:
            event = _event(line, number)
        except _BrokenError as error:
            raise LogError(f"{path}: line {number}: {error}") from None
        if event is None:
            _torn(path, line, number, file, warn)
            return
        yield number, event
    if number == 0:
        raise LogError(f"{path}: line 1: is no log of pi-run: the file is empty")


def _first_line(file: IO[bytes]) -> bytes:
    """The first line; of what is no log, no more than its first letter."""
    start = file.read(1)
    return start + file.readline() if start == b"{" else start


def _event(line: bytes, number: int) -> Event | None:
    """A line's event; None where the line is cut off or no JSON, which may be a crash's work."""
    if not line.endswith(b"\n"):
        return None
    try:
        event = parse(line.decode())
    except ValueError:
        return None
    if not isinstance(event, dict):
        raise _BrokenError("is no JSON object")
    if not isinstance(event.get("type"), str):
        raise _BrokenError("has no type")
    if number == 1:
        _check_start(event)
    seq = event.get("seq")
    if seq != number - 1 or isinstance(seq, bool):
        raise _BrokenError(f"its seq is {seq}, where {number - 1} is next; was a line lost?")
    if wrong := problem(event):
        raise _BrokenError(wrong)
    return event


def _check_start(event: Event) -> None:
    found = _FORMAT.fullmatch(str(event.get("format")))
    if event["type"] != "run_start" or found is None:
        raise _BrokenError("is no log of pi-run: it does not begin with a run_start")
    if int(found[1]) > _MAJOR:
        raise _BrokenError(
            f"the format is {event['format']}, and this pi-run reads up to {FORMAT}; "
            "a newer pi-run is needed"
        )


def _torn(
    path: str | os.PathLike[str], line: bytes, number: int, file: IO[bytes], warn: Warn | None
) -> None:
    """Warn of a last line that a crash broke; a broken line anywhere else is an error."""
    if number == 1 or file.read(1):
        raise LogError(f"{path}: line {number}: {_why(line, number)}")
    if warn is not None:
        warn(f"{path}: line {number}, the last, was cut off by a crash; it is dropped")


def _why(line: bytes, number: int) -> str:
    """Why a line is no JSON."""
    if number == 1 and not line.startswith(b"{"):
        return "is no log of pi-run: it does not begin with a run_start"
    if not line.endswith(b"\n"):
        return "is cut off, and there is nothing before it"
    try:
        parse(line.decode())
    except UnicodeDecodeError as error:
        return f"is not UTF-8, at its byte {error.start + 1}"
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg}, at its column {error.colno}"
    except ValueError as error:
        return f"is not JSON: {error}"
    return "is not JSON"
