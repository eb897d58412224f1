"""Words for a run in progress: from a file or a FIFO, or from who sits at the terminal."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import Callable

from runner.api import Control
from runner.error import UsageError
from runner.terminal import TERMINAL

POLL = 0.1
"""Seconds between two looks at whether a file has grown."""


def hold_steerable(path: str) -> None:
    """Hold that a file or FIFO can be read for steering.

    Raises:
        UsageError: where it can't.
    """
    if not os.path.exists(path):
        raise UsageError(f"--steer {path}: it is not there; make it, with mkfifo or touch")
    if not os.access(path, os.R_OK) or os.path.isdir(path):
        raise UsageError(f"--steer {path}: it can't be read")


class FileSteering:
    """Steers with each line of a file, as it grows, or of a FIFO, whoever writes to it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stopped = threading.Event()

    def attach(self, control: Control) -> None:
        """Steer this run from here on."""
        name = f"steering from {self._path}"
        threading.Thread(target=self._read, args=(control,), name=name, daemon=True).start()

    def stop(self) -> None:
        """Steer no more."""
        self._stopped.set()

    def _read(self, control: Control) -> None:
        is_fifo = stat.S_ISFIFO(os.stat(self._path).st_mode)
        # A FIFO that is open for writing too never ends, and opening it waits for no one.
        mode = os.O_RDWR if is_fifo else os.O_RDONLY
        with open(os.open(self._path, mode), encoding="utf-8", errors="replace") as file:
            begun = ""
            while not self._stopped.is_set():
                begun += file.readline()
                if begun.endswith("\n"):
                    if text := begun.strip():
                        control.steer(text)
                    begun = ""
                else:
                    self._stopped.wait(POLL)


class TerminalSteering:
    """Steers with each line that is typed and answers no question; at rest, asks for more to do."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._asked: asyncio.Future[str] | None = None
        self._control: Control | None = None

    def attach(self, control: Control) -> None:
        """Steer this run from here on; in its loop's thread."""
        self._control = control
        TERMINAL.listen(self._take, self._end_rest)

    async def at_rest(self) -> None:
        """Ask for a follow-up; nothing ends the run."""
        self._say("follow up, or press Enter to end:")
        self._asked = asyncio.get_running_loop().create_future()
        try:
            text = (await self._asked).strip()
        finally:
            self._asked = None
        if text and self._control is not None:
            self._control.follow_up_now(text)

    def stop(self) -> None:
        """Nothing is waited for any more."""
        TERMINAL.stop()
        self._end_rest()

    def _end_rest(self) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_result("")

    def _take(self, text: str) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(text)
        elif text.strip() and self._control is not None:
            self._control.steer(text.strip())
