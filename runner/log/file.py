"""The file of a log while it is written: one writer, whole lines only, nothing lost by mistake."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from pathlib import Path

from runner.error import LogError
from runner.log.ends import Ends, ends

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY
_ATTEMPTS = 10
"""Openings of a path that someone else makes and removes at the same moment."""


class LogFile:
    """A log's open file, held by an advisory lock (``flock``) until it is closed.

    What stood in it before is cut off only when the first new line is written: a log that is
    replaced is there until the new run has begun, and a torn tail until the run goes on.

    A path that is no regular file (a pipe, ``/dev/null``) is written to as it is.
    """

    def __init__(self, path: Path, fd: int, *, size: int, created: bool, durable: bool) -> None:
        self.path = path
        self._fd = fd
        self._size = size  # of what stays in the file
        self._created = created
        self._durable = durable
        self._begun = False
        self._regular = stat.S_ISREG(os.fstat(fd).st_mode)

    @classmethod
    def new(cls, path: Path, *, durable: bool, replace_finished: bool) -> LogFile:
        """Open a file for a new run: made where there is none, replacing a finished log.

        Raises:
            LogError: when it can't be opened, someone else writes it, or what it holds is no
                finished log.
        """
        try:
            _make_folder(path.parent)
            fd, created = _open(path, os.O_CREAT)
        except OSError as error:
            raise _failed(path, "can't be opened for writing", error) from None
        try:
            if not created and stat.S_ISREG(os.fstat(fd).st_mode):
                _may_replace(path, fd, replace_finished)
            return cls(path, fd, size=0, created=created, durable=durable)
        except BaseException:
            os.close(fd)
            raise

    @classmethod
    def existing(cls, path: Path, *, durable: bool) -> LogFile:
        """Open a log to go on in it, after its last whole line.

        Raises:
            LogError: when it can't be opened, someone else writes it, or it is no log.
        """
        try:
            fd, _ = _open(path, 0)
        except OSError as error:
            raise _failed(path, "can't be opened for writing", error) from None
        try:
            found = _look(path, fd)
            if found.last is None:
                raise LogError(f"{path}: is no log of pi-run that a run could go on in")
            return cls(path, fd, size=found.whole_size, created=False, durable=durable)
        except BaseException:
            os.close(fd)
            raise

    def append(self, data: bytes) -> None:
        """Write whole lines, so that they are on disk (and synced, when durable) on return.

        Raises:
            LogError: when that fails. As many whole lines as could be written stay, no part of one.
        """
        written = 0
        try:
            if not self._begun:
                self._begin()
            if self._regular and os.fstat(self._fd).st_nlink == 0:
                raise OSError(errno.ENOENT, "it was deleted while the run wrote it")
            while written < len(data):
                written += os.write(self._fd, data[written:] if written else data)
            if self._durable:
                os.fsync(self._fd)
        except OSError as error:
            whole = data.rfind(b"\n", 0, written) + 1
            if self._regular and written != whole:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._fd, self._size + whole)
            raise _failed(self.path, "can't be written", error) from None
        self._size += len(data)

    def close(self) -> None:
        """Let go of the file. One that was made and never written to is removed again."""
        if self._fd < 0:
            return
        if self._created and not self._begun:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        os.close(self._fd)
        self._fd = -1

    def _begin(self) -> None:
        self._begun = True
        if not self._regular:
            return
        if not self._created:
            os.ftruncate(self._fd, self._size)
        elif self._durable:
            # A new file is only there after a crash if its folder's entry is.
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _make_folder(folder: Path) -> None:
    """Make a log's folder. ``.pi-run`` keeps itself, and all in it, out of git."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise OSError(errno.ENOTDIR, f"{folder} is a file, not a folder") from None
    for place in (folder, *folder.parents):
        if place.name == ".pi-run":
            with contextlib.suppress(OSError), (place / ".gitignore").open("x") as file:
                file.write("*\n")


def _open(path: Path, create: int) -> tuple[int, bool]:
    """Open and lock a file; tells whether it was made for this.

    Raises:
        LogError: when someone else has the lock.
        OSError: when it can't be opened.
    """
    for _ in range(_ATTEMPTS):
        fd, created = _open_once(path, create)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return fd, False
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, fd):
                return fd, created
        except BlockingIOError:
            os.close(fd)
            raise LogError(
                f"{path}: another run is writing this log; let it end, or choose another path"
            ) from None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # the file was removed before it could be locked
    raise OSError(errno.EAGAIN, "it comes and goes; something else makes and removes it")


def _open_once(path: Path, create: int) -> tuple[int, bool]:
    if create:
        with contextlib.suppress(FileExistsError):
            return os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600), True
    return os.open(path, _FLAGS), False


def _is_at(path: Path, fd: int) -> bool:
    """Whether the path still leads to the open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _look(path: Path, fd: int) -> Ends:
    try:
        return ends(fd)
    except OSError as error:
        raise _failed(path, "can't be read", error) from None


def _may_replace(path: Path, fd: int, replace_finished: bool) -> None:
    """Hold an existing file against what a new run may overwrite."""
    if os.fstat(fd).st_size == 0:
        return
    found = _look(path, fd)
    if found.first is None:
        raise LogError(
            f"{path}: is no log of pi-run, so it is left as it is; choose another path "
            "(a new run replaces only a finished log, and `pi-run resume` goes on in one)"
        )
    if not found.finished:
        raise LogError(
            f"{path}: holds a run that has not ended; go on with it by `pi-run resume {path}`, "
            "or choose another path"
        )
    if not replace_finished:
        raise LogError(f"{path}: holds a finished run; choose another path")


def _failed(path: Path, what: str, error: OSError) -> LogError:
    return LogError(f"{path}: {what}: {error.strerror or error}")
