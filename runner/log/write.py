"""The log's writer: the sink of a run's events, and the one place where they become text."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from runner.error import LogError
from runner.json_text import line
from runner.log.canonical import Canonical
from runner.log.file import LogFile

WRITE_POINTS = frozenset(
    (
        "run_start",
        "run_resume",
        "run_end",
        "agent_end",
        "turn_end",
        "tool_execution_start",
        "tool_execution_end",
        # The run may now wait for long, and who follows the log is to see for what.
        "model_request",
        "model_retry",
    )
)
"""Events that are on disk, with all before them, when `LogWriter.write` returns."""

Output = Callable[[str], None]
"""Takes one or more whole lines, each with its line break. Must not raise."""

_FILE_DELAY = 0.25
_OUTPUT_DELAY = 0.05
_BOUND = 64 * 1024


class LogWriter:
    """Writes each event as one line, to a file and to any other readers of the same text.

    Lines are buffered until the next of `WRITE_POINTS`, but no more than 64 KiB of them and, while
    an event loop runs, no longer than a quarter of a second (a twentieth where there are outputs).
    All calls are to come from one thread.
    """

    def __init__(
        self,
        file: LogFile | None = None,
        outputs: Iterable[Output] = (),
        *,
        frozen: bool = False,
    ) -> None:
        self._file = file
        self._outputs = tuple(outputs)
        self._canonical = Canonical() if frozen else None
        self._lines: list[str] = []
        self._size = 0
        self._delay = _OUTPUT_DELAY if self._outputs else _FILE_DELAY
        self._timer: asyncio.TimerHandle | None = None
        self._error: str | None = None
        self._told = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        *,
        outputs: Iterable[Output] = (),
        durable: bool = False,
        frozen: bool = False,
        replace_finished: bool = True,
    ) -> Self:
        """Begin the log of a new run.

        Args:
            path: The file; its folders are made. None: only the outputs are written to.
            outputs: Who else gets the same lines.
            durable: Whether lines are synced to the disk at each write point.
            frozen: Whether the log is written in its canonical form. The end of a parallel call
                is then on disk only when all calls of its batch have ended.
            replace_finished: Whether a log of a finished run may be replaced. It stays as it is
                until the first event is written.

        Raises:
            LogError: when the file can't be written, is written by someone else, or must not be
                replaced.
        """
        file = None
        if path is not None:
            file = LogFile.new(Path(path), durable=durable, replace_finished=replace_finished)
        return cls(file, outputs, frozen=frozen)

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        outputs: Iterable[Output] = (),
        durable: bool = False,
    ) -> Self:
        """Go on in a log. From here on no one else can write it; nothing in it is changed yet.

        A torn tail is cut off when the first event is written.

        Raises:
            LogError: as for `open`, and when the file is no log.
        """
        return cls(LogFile.existing(Path(path), durable=durable), outputs)

    @property
    def path(self) -> Path | None:
        """The log's file, where there is one."""
        return self._file.path if self._file else None

    def write(self, event: dict[str, Any]) -> None:
        """Take one event, which begins with ``seq``, ``t``, (``agent``,) ``type``.

        Raises:
            LogError: when it, or something before it, could not be written; then also for every
                later event. The file is left with whole lines, and the outputs still get theirs.
        """
        if self._canonical is None:
            self._add(event)
        else:
            for each in self._canonical.feed(event):
                self._add(each)
        if event["type"] in WRITE_POINTS or self._size > _BOUND:
            self._drain()
        elif self._timer is None and self._lines:
            self._drain_soon()
        if self._error is not None:
            self._tell()

    def flush(self) -> None:
        """Write all that is buffered.

        Raises:
            LogError: when that fails, or failed before.
        """
        self._drain()
        if self._error is not None:
            self._tell()

    def close(self) -> None:
        """Write what is left and let go of the file. A second call does nothing.

        Raises:
            LogError: when something could not be written and no one was told yet.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._canonical is not None:
            for event in self._canonical.finish():
                self._add(event)
        self._drain()
        if self._file:
            self._file.close()
        if self._error is not None and not self._told:
            self._tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, event: dict[str, Any]) -> None:
        try:
            text = line(event) + "\n"
        except (TypeError, ValueError, RecursionError) as error:
            place = self.path or "the log"
            self._error = f"{place}: a {event['type']} event can't be written as JSON: {error}"
        else:
            self._lines.append(text)
            self._size += len(text)

    def _drain(self) -> None:
        if not self._lines:
            return
        text = "".join(self._lines)
        self._lines.clear()
        self._size = 0
        if self._file and self._error is None:
            try:
                self._file.append(text.encode())
            except LogError as error:
                self._error = str(error)
        for output in self._outputs:
            output(text)

    def _drain_soon(self) -> None:
        """Have what is buffered written in a while, if there is an event loop that can do it."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(self._delay, self._drain_late)

    def _drain_late(self) -> None:
        self._timer = None
        self._drain()

    def _tell(self) -> None:
        self._told = True
        raise LogError(self._error)
