"""Files that a spec names: where they are, and what is in them."""

from __future__ import annotations

import os
import stat

from runner.spec.node import Source
from runner.spec.yaml import MAX_BYTES


class Unreadable(Exception):  # noqa: N818 - it is told as a fault at a place that the caller knows
    """A file can't be read; the message says which, by its full path, and why."""


def locate(folder: str, name: str) -> str:
    """The full path of a file that is named relative to a folder; ``~`` is the user's own."""
    return os.path.abspath(os.path.join(folder, os.path.expanduser(name)))


def source_of(name: str, named_in: Source | None = None) -> Source:
    """A file as the source of text, shown by the path by which a person would open it.

    Args:
        name: As it is written.
        named_in: Where it is written, None for the command line.
    """
    if named_in is None:
        return Source(name, os.path.dirname(os.path.abspath(name)))
    shown = os.path.join(os.path.dirname(named_in.name), os.path.expanduser(name))
    return Source(os.path.normpath(shown), os.path.dirname(locate(named_in.folder, name)))


def must_exist(path: str) -> None:
    """Hold that there is a regular file.

    Raises:
        Unreadable: where there is none.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        raise Unreadable(_why(path, error)) from None
    if stat.S_ISDIR(mode):
        raise Unreadable(f"{path} is a folder; name a file")
    if not stat.S_ISREG(mode):
        raise Unreadable(f"{path} is not a regular file")


def read(path: str) -> bytes:
    """A file's bytes, up to one more than may be read, so that it shows where there are too many.

    Raises:
        Unreadable: where it can't be had.
    """
    must_exist(path)
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(_why(path, error)) from None


def _why(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no file {path}"
    reason = error.strerror if isinstance(error, OSError) else None
    return f"{path} can't be read: {reason or error}"
