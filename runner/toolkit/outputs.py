"""Outputs that are too long for a model, kept while their run lasts.

They lie in a folder of the system's temporary one that only this user may enter. It is made for the
first of them and removed when the run ends, or by `runner.guardian` where this process is killed.
Where that one was killed too, the next process that makes such a folder removes those that nobody
holds a lock in any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import weakref
from pathlib import Path

from runner.engine.contract import ToolResult
from runner.engine.message import Block, text_block
from runner.guardian import GUARDIAN

NAME = "PI_RUN_OUTPUTS"
"""The variable that tells programs where the folder is; tools know paths that begin with it."""
PREFIX = f"${NAME}/"
MAX_CHARS = 50_000
"""Characters of a result that a model reads."""
MAX_KEPT = 256_000_000
"""Bytes of all outputs of a run that are kept."""
_FOLDER = "pi-run-outputs-"
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Outputs:
    """The kept outputs of a run."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._kept = 0
        self._remove: weakref.finalize[[Path, int], Outputs] | None = None

    @property
    def folder(self) -> Path | None:
        """Where they are; None where there is none yet."""
        return self._folder

    def keep(self, call: str, text: str) -> str | None:
        """Keep an output; gives its path as tools and the shell know it, None where it is too much.

        Args:
            call: What tells the call apart from all others of the run.
            text: All that it said.
        """
        data = text.encode(errors="replace")
        if self._kept + len(data) > MAX_KEPT:
            return None
        self._kept += len(data)
        import hashlib

        name = call
        if not _PLAIN.fullmatch(call):
            name = hashlib.sha256(call.encode(errors="replace")).hexdigest()[:16]
        try:
            (self._place() / f"{name}.txt").write_bytes(data)
        except OSError:  # a full disk is no reason to lose the part that a model would read
            return None
        return f"{PREFIX}{name}.txt"

    def close(self) -> None:
        """Remove them all."""
        if self._remove is not None:
            self._remove()
        self._folder = None

    def _place(self) -> Path:
        if self._folder is None:
            _sweep()
            self._folder, lock = _made()
            GUARDIAN.watch_folder(self._folder)
            self._remove = weakref.finalize(self, _remove, self._folder, lock)
        return self._folder


def _made() -> tuple[Path, int]:
    """A new folder, and the lock that is held in it."""
    import tempfile

    while True:
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
        lock = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)  # another process swept it away before there was a lock


def _remove(folder: Path, lock: int) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
    GUARDIAN.release_folder(folder)


def _sweep() -> None:
    """Remove what processes left that were killed."""
    import shutil
    import tempfile

    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):  # another user's, or one that is just being made
            lock = os.open(folder / ".lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def shortened(result: ToolResult, outputs: Outputs | None, call: str) -> ToolResult:
    """A result of which a model can read all: a longer one is cut in its middle.

    Args:
        result: What a tool gave.
        outputs: Keeps the whole.
        call: What tells the call apart from all others of the run.
    """
    if result.terminate:
        # It may be the answer, which a cut would spoil; no model reads it any more.
        return result
    blocks = result.blocks()
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    if sum(map(len, texts)) <= MAX_CHARS:
        return result
    whole = "\n".join(texts)
    where = outputs.keep(call, whole) if outputs is not None else None
    others: list[Block] = [block for block in blocks if block["type"] != "text"]
    result.content = [text_block(cut(whole, where)), *others]
    return result


def cut(text: str, where: str | None) -> str:
    """A text with its middle left out, and a note on where all of it is."""
    head, tail = text[: MAX_CHARS // 2], text[-MAX_CHARS // 2 :]
    left = len(text) - len(head) - len(tail)
    hint = f"; {where} has all of it, for read_file and the shell" if where else ""
    return f"{head}\n[… {left} characters are left out here{hint} …]\n{tail}"
