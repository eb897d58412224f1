"""A page that a command writes: into a file, whole or not at all, or to stdout."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress

from runner.cli.streams import Streams
from runner.error import LogError, UsageError


def hold_writable(path: str, *logs: str, option: str = "--html") -> None:
    """Hold that a page would overwrite no log that it is made of.

    Args:
        path: Where it is to go.
        logs: What it is made of.
        option: What names the path.

    Raises:
        UsageError: where it would, or where it names a folder.
    """
    if path == "-":
        return
    if os.path.isdir(path):
        raise UsageError(f"{option} {path}: it is a folder; name a file in it")
    for log in logs:
        with suppress(OSError):
            if os.path.samefile(path, log):
                raise UsageError(f"{option} {path}: it is the log; name another file")


def write_page(streams: Streams, path: str, pieces: Iterable[str], *, quiet: bool = False) -> None:
    """Write a page, and tell where it is.

    Args:
        streams: Where it goes for ``-``, and where its place is told.
        path: The file. What stands there is replaced once the page is whole; a pipe or a device
            gets it as it is made.
        pieces: The page.
        quiet: Whether its place is not told.

    Raises:
        LogError: when it can't be written.
    """
    if path == "-":
        for piece in pieces:
            streams.line(piece)
            if streams.closed:
                return
        return
    try:
        _write(os.path.realpath(path), pieces)
    except OSError as error:
        raise LogError(f"{path}: can't be written: {error.strerror or error}") from None
    if not quiet:
        streams.say(f"{path}: written")


def _write(path: str, pieces: Iterable[str]) -> None:
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(pieces)
        return
    folder, name = os.path.split(path)
    descriptor, part = tempfile.mkstemp(prefix=f".{name[:60]}.", dir=folder)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(pieces)
        os.chmod(part, _mode(path))
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def _mode(path: str) -> int:
    """The rights of a file that is replaced, or those of a new one."""
    with suppress(OSError):
        return stat.S_IMODE(os.stat(path).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
