"""Files that a command line names: read whole, within bounds of size and of time.

A regular file is read as it is. A pipe or a device may never say anything, or never end: one that
nobody writes to is refused after a moment, and all that is too large is. A pipe with a writer is
waited for as long as that takes, so ``-i note=@<(slow)`` works.
"""

from __future__ import annotations

import os
import re
import select
import stat
import time

from runner.error import UsageError

MAX_BYTES = 64 << 20
"""The largest file that is taken: no template renders to more."""
WAIT = 5.0
"""Seconds that a pipe without a writer, or a silent device, is waited for."""
_CHUNK = 1 << 20
_DESCRIPTOR = re.compile(r"/dev/fd/(\d{1,9})|/proc/self/fd/(\d{1,9})|/dev/stdin")


def read_whole(path: str, *, limit: int = MAX_BYTES, wait: float = WAIT) -> bytes:
    """All bytes of a file.

    Args:
        path: The file, pipe or device.
        limit: How many bytes it may have.
        wait: Seconds that something which is no file may take to say anything.

    Raises:
        UsageError: where it can't be read, has more bytes, or says nothing in time.
    """
    try:
        descriptor = _open(path)
        try:
            if os.get_blocking(descriptor):
                return _read_patiently(descriptor, path, limit)
            return _read_in_time(descriptor, path, limit, wait)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{path}: {reason}; name a file that can be read") from None


def read_stdin(descriptor: int) -> bytes:
    """All bytes of stdin, for as long as it takes.

    Raises:
        UsageError: where it can't be read, or has more than `MAX_BYTES`.
    """
    try:
        return _read_patiently(descriptor, "stdin", MAX_BYTES)
    except OSError as error:
        raise UsageError(f"stdin: {error.strerror}; give it a file or a pipe") from None


def _open(path: str) -> int:
    """A descriptor of a file; the same one where the path stands for one that is open already."""
    inherited = _DESCRIPTOR.fullmatch(path)
    if inherited is not None:
        return os.dup(int(inherited[1] or inherited[2] or 0))
    # Without waiting for someone to open the other end.
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)


def _read_patiently(descriptor: int, path: str, limit: int) -> bytes:
    """Read to the end: whoever has the other end was there before us."""
    data = bytearray()
    while piece := os.read(descriptor, _CHUNK):
        data += piece
        _hold_size(data, path, limit)
    return bytes(data)


def _read_in_time(descriptor: int, path: str, limit: int, wait: float) -> bytes:
    """Read to the end, if anyone is there who can bring it about."""
    data = bytearray()
    deadline = time.monotonic() + wait
    is_fifo = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    met = not is_fifo
    """Whether an end of the file is one: in a pipe there is none before the first writer."""
    while True:
        try:
            piece = os.read(descriptor, _CHUNK)
        except BlockingIOError:  # there is a writer, or a device that has nothing yet
            met = True
            _await(descriptor, path, None if is_fifo else deadline)
            continue
        if piece:
            met = True
            data += piece
            _hold_size(data, path, limit)
        elif met:
            return bytes(data)
        else:
            _await(descriptor, path, deadline)


def _await(descriptor: int, path: str, deadline: float | None) -> None:
    """Wait until there is something to read, or an end."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    left = None if deadline is None else max(deadline - time.monotonic(), 0) * 1000
    if not poll.poll(left):
        raise UsageError(f"{path}: nobody writes to it; name a file, or start the writer first")


def _hold_size(data: bytearray, path: str, limit: int) -> None:
    if len(data) > limit:
        most = f"{limit >> 20} MiB"
        raise UsageError(f"{path}: it has more than {most}; {most} are taken at most")
