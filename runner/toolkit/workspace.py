"""Files of a workspace, reached so that no path leads out of it: not by ``..``, not by a link.

A path is resolved first, links and all, and must then be inside. It is opened folder by folder from
the workspace down, following no link, so that a link that is put there in between leads nowhere.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runner.toolkit.ignored import IgnoreRule, is_ignored, read_rules
from runner.toolkit.outputs import PREFIX

# A FIFO that nobody writes to would hold an open up for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_DEPTH = 100
"""Folders within folders that are looked at; each holds a file descriptor."""
_MAX_PATH = 4096
_MAX_IGNORE = 100_000
"""Bytes of a ``.gitignore`` that are read."""
_PATIENCE = 10.0
"""Seconds that another process may keep a folder locked."""
_STEP = 0.002
"""Seconds between two looks at whether it still does."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class _Held:
    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


_held: dict[str, _Held] = {}
_guard = threading.Lock()


class WorkspaceError(ValueError):
    """A path leads out of the workspace, or its file can't be had; says what would be right."""


class Workspace:
    """The files in a folder.

    Args:
        folder: The workspace.
        outputs: A folder of outputs that may be read, as ``$PI_RUN_OUTPUTS/NAME``.
    """

    def __init__(self, folder: Path, outputs: Path | None = None) -> None:
        self._root = os.path.realpath(folder)
        self._outputs = outputs

    def relative(self, path: str) -> str:
        """A path from the workspace on, with no link and no ``..`` in it; ``.`` for itself.

        Raises:
            WorkspaceError: if it leads out of the workspace, or is no path.
        """
        if "\0" in path or not path:
            raise WorkspaceError("a path is needed, such as src/main.py")
        if len(path) > _MAX_PATH:
            raise WorkspaceError(f"a path has at most {_MAX_PATH} characters, not {len(path)}")
        try:
            real = os.path.realpath(os.path.join(self._root, path))
            real.encode(errors="surrogateescape")
        except (OSError, UnicodeEncodeError) as error:
            raise WorkspaceError(f"{path!r:.200} is no path") from error
        if os.path.commonpath([real, self._root]) != self._root:
            raise WorkspaceError(
                f"{path} is outside of the workspace; give a path inside, relative to it"
            )
        relative = os.path.relpath(real, self._root)
        if relative.count(os.sep) > _MAX_DEPTH:
            raise WorkspaceError(f"a path goes through at most {_MAX_DEPTH} folders")
        return relative

    def read(self, path: str, limit: int) -> bytes:
        """What a file holds, of at most ``limit`` bytes.

        Raises:
            WorkspaceError: if it can't be read, is no plain file or is larger.
        """
        if path.startswith(PREFIX):
            if self._outputs is None:
                raise WorkspaceError(f"there is no {path}: an output is kept while its run lasts")
            return Workspace(self._outputs).read(path.removeprefix(PREFIX), limit)
        with (
            self._parent(path) as (parent, name),
            _told(path),
            _opened(name, parent) as opened,
        ):
            found = os.fstat(opened)
            if stat.S_ISDIR(found.st_mode):
                raise WorkspaceError(f"{path} is a folder; list_files shows what is in it")
            if not stat.S_ISREG(found.st_mode):
                raise WorkspaceError(f"{path} is no plain file")
            with open(opened, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        if len(data) > limit:
            raise WorkspaceError(f"{path} has more than {limit} bytes, which is too much")
        return data

    def write(self, path: str, data: bytes) -> bool:
        """Write a file whole or not at all, with the folders that it needs; whether it is new.

        Raises:
            WorkspaceError: if it can't be written, or is no plain file.
        """
        with self._parent(path, make=True) as (parent, name), _told(path):
            mode = self._mode(parent, name, path)
            part = f".{name[:200]}.{secrets.token_hex(6)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with open(os.open(part, flags, 0o666, dir_fd=parent), "wb") as file:
                    file.write(data)
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                os.replace(part, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(part, dir_fd=parent)
                raise
        return mode is None

    def unignored(self, path: str) -> Iterator[tuple[str, bool]]:
        """All below a folder, sorted, each by its path from the workspace and whether a folder.

        A folder comes before what is in it. Links are told and not followed; what ``.gitignore``
        files leave out is left out, and so is ``.git``.

        Raises:
            WorkspaceError: if it is no folder, or can't be read.
        """
        start = self.relative(path)
        prefix, rules = "", list[IgnoreRule]()
        if start != ".":
            # What stands above speaks of what is below too.
            for name in start.split(os.sep):
                with self._folder(prefix or ".", path) as above:
                    rules = [*rules, *_rules_in(above, prefix)]
                prefix += f"{name}/"
        with self._folder(start, path) as folder, _told(path):
            yield from self._below(folder, prefix, rules)

    def _below(
        self, folder: int, prefix: str, rules: list[IgnoreRule]
    ) -> Iterator[tuple[str, bool]]:
        if prefix.count("/") > _MAX_DEPTH:
            return
        rules = [*rules, *_rules_in(folder, prefix)]
        with os.scandir(folder) as found:
            entries = sorted((each.name, each.is_dir(follow_symlinks=False)) for each in found)
        for name, is_folder in entries:
            if name == ".git" or is_ignored(f"{prefix}{name}", is_folder, rules):
                continue
            yield f"{prefix}{name}", is_folder
            if not is_folder:
                continue
            try:
                inner = os.open(name, _FOLDER, dir_fd=folder)
            except OSError:  # gone since, or not to be read
                continue
            try:
                yield from self._below(inner, f"{prefix}{name}/", rules)
            finally:
                os.close(inner)

    @contextlib.contextmanager
    def lock(self, path: str) -> Iterator[None]:
        """Keep all others that lock a file from it, by whatever path they do, in any process.

        They are kept from all files of its folder: a lock in the file itself would be lost with it,
        since what writes puts a new one in its place.

        Raises:
            WorkspaceError: if it leads out of the workspace, or another keeps it for too long.
        """
        above = os.path.dirname(self.relative(path)) or "."
        key = os.path.join(self._root, above)
        with _guard:
            held = _held.setdefault(key, _Held())
            held.users += 1
        try:
            with held.lock, contextlib.ExitStack() as stack:
                # Where there is no folder there is no file of which anything could be lost.
                folder = None
                with contextlib.suppress(WorkspaceError):
                    folder = stack.enter_context(self._folder(above, path))
                if folder is not None:
                    _lock(folder, path)
                yield
        finally:
            with _guard:
                held.users -= 1
                if not held.users:
                    del _held[key]

    # --- folder by folder -------------------------------------------------------------------------

    @contextlib.contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder that a file is in, and its name there."""
        relative = self.relative(path)
        if relative == ".":
            raise WorkspaceError(f"{path} is the workspace, a folder; a file is needed")
        above, name = os.path.split(relative)
        with self._folder(above or ".", path, make=make) as folder:
            yield folder, name

    @contextlib.contextmanager
    def _folder(self, relative: str, path: str, *, make: bool = False) -> Iterator[int]:
        with _told(path):
            folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _told(path):
                for name in [] if relative == "." else relative.split(os.sep):
                    if make:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(name, dir_fd=folder)
                    inner = os.open(name, _FOLDER, dir_fd=folder)
                    os.close(folder)
                    folder = inner
            yield folder
        finally:
            os.close(folder)

    @staticmethod
    def _mode(parent: int, name: str, path: str) -> int | None:
        """The mode of a plain file, None where there is none."""
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            kind = "a folder" if stat.S_ISDIR(found.st_mode) else "no plain file"
            raise WorkspaceError(f"{path} is {kind}; a file is needed")
        return stat.S_IMODE(found.st_mode)


def _lock(folder: int, path: str) -> None:
    """Keep other processes from an open folder, until it is closed.

    Raises:
        WorkspaceError: where another keeps it for too long.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise WorkspaceError(
                    f"another process keeps the folder of {path} locked; try again later"
                ) from None
            time.sleep(_STEP)
        except OSError:  # its file system has no locks
            return
        else:
            return


@contextlib.contextmanager
def _opened(name: str, folder: int) -> Iterator[int]:
    # `open` takes no descriptor of a folder, so it comes after a look at what this is.
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _rules_in(folder: int, prefix: str) -> list[IgnoreRule]:
    """The rules of an open folder's ``.gitignore``; none where there is none."""
    try:
        with _opened(".gitignore", folder) as opened:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                return []
            with open(opened, "rb", closefd=False) as file:
                return read_rules(file.read(_MAX_IGNORE).decode(errors="replace"), prefix)
    except OSError:
        return []


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Tell what the system says in words for who gave the path."""
    try:
        yield
    except FileNotFoundError as error:
        raise WorkspaceError(f"there is no {path}; list_files shows what is there") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise WorkspaceError(f"{path} can't be had: {reason}") from error
