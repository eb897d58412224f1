"""The last rows of a terminal, drawn anew in place; what is finished scrolls by above them."""

from __future__ import annotations

import os
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO, cast

BOLD, DIM, RED, GREEN, CYAN = "1", "2", "31", "32", "36"
"""Codes of SGR, by which a terminal is told how text looks."""

Span = tuple[str, str]
"""A text, and the code of its look; an empty one for plain text."""

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
# Lines that are drawn never wrap, so that it is known how many rows they take.
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_CLEAR_BELOW = "\x1b[J"


def _cell(char: str) -> int:
    """How many columns a character takes, rather one too many: an emoji's variant is counted."""
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    if char == "\ufe0f":
        return 1
    return 0 if unicodedata.category(char) in ("Mn", "Me", "Cf") else 1


def cells(text: str) -> int:
    """How many columns a text takes."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def cut(text: str, width: int) -> str:
    """A text in at most ``width`` columns; what is cut ends with an ellipsis."""
    if len(text) * 2 <= width or cells(text) <= width:
        return text
    used = 1
    for index, char in enumerate(text):
        used += _cell(char)
        if used > width:
            return text[:index] + "…"[:width]
    return text


def wrap(text: str, width: int) -> list[str]:
    """The rows that a text takes in ``width`` columns, broken between words where there are any."""
    return [row for line in text.expandtabs(4).split("\n") for row in _wrap_line(line, width)]


def _wrap_line(line: str, width: int) -> list[str]:
    rows: list[str] = []
    start, used, space = 0, 0, -1
    for index, char in enumerate(line):
        if char == " ":
            space = index
        used += _cell(char)
        if used > width and index > start:
            end = space if space > start else index
            rows.append(line[start:end])
            # The space that a row is broken at stands in neither.
            start = end + 1 if space > start else index
            used, space = cells(line[start : index + 1]), -1
    return [*rows, line[start:]]


class Screen:
    """A terminal with a part at its bottom that is drawn ten times a second.

    Args:
        file: The terminal.
        color: Whether looks are wanted.
        lines: Gives what is to be drawn, for a width and at most a height.
    """

    def __init__(
        self, file: TextIO, color: bool, lines: Callable[[int, int], Sequence[Sequence[Span]]]
    ) -> None:
        self.lock = threading.RLock()
        """Held while anything is written. Hold it while what is drawn changes."""
        self._file = file
        self._color = color
        self._lines = lines
        self._rows = 0
        self._stopped: threading.Event | None = None
        self._kept: tuple[TextIO, TextIO] | None = None
        self._above: list[_Above] = []

    def start(self) -> None:
        """Begin to draw. What Python code prints from now on scrolls by above."""
        self._kept = (sys.stdout, sys.stderr)
        self._above = [_Above(self, stream) for stream in self._kept]
        sys.stdout, sys.stderr = cast("list[TextIO]", self._above)
        self._stopped = threading.Event()
        self._write(_HIDE)
        threading.Thread(target=self._refresh, args=[self._stopped], daemon=True).start()

    def stop(self) -> None:
        """Take away what is drawn, and leave the terminal as it was."""
        if self._stopped is None or self._kept is None:
            return
        self._stopped.set()
        with self.lock:
            for above in self._above:
                above.finish()
            sys.stdout, sys.stderr = self._kept
            self._stopped = None
            self._write(self._up() + _SHOW)

    def print(self, *spans: Span) -> None:
        """Print a line, or several, that scroll by."""
        text = "".join(self._painted(span) for span in spans)
        with self.lock:
            self._write(f"{self._up()}{text}\n{self._drawn()}")

    def draw(self) -> None:
        """Draw what is going on."""
        with self.lock:
            self._write(self._up() + self._drawn())

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            size = os.get_terminal_size(self._file.fileno())
        except (OSError, ValueError):
            size = os.terminal_size((0, 0))
        return size.columns or 80, size.lines or 24

    def _refresh(self, stopped: threading.Event) -> None:
        while not stopped.wait(0.1):
            with self.lock:
                if not stopped.is_set():
                    self.draw()

    def _up(self) -> str:
        """Back to where the drawing began, and all of it away."""
        up = f"\x1b[{self._rows}A" if self._rows else ""
        self._rows = 0
        return f"\r{up}{_CLEAR_BELOW}"

    def _drawn(self) -> str:
        if self._stopped is None:
            return ""
        width, height = self.size
        # Room is left for the row that the cursor stands on.
        lines = self._lines(width, max(1, height - 1))
        self._rows = len(lines)
        rows = "".join("".join(map(self._painted, line)) + "\n" for line in lines)
        return f"{_NO_WRAP}{rows}{_WRAP}"

    def _painted(self, span: Span) -> str:
        text, code = span
        return f"\x1b[{code}m{text}\x1b[0m" if code and text and self._color else text

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()


class _Above:
    """Stands for stdout or stderr meanwhile: whole lines are printed above the drawing."""

    def __init__(self, screen: Screen, under: TextIO) -> None:
        self._screen = screen
        self._under = under
        self._begun = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)

    def write(self, text: str) -> int:
        with self._screen.lock:
            whole, newline, self._begun = (self._begun + text).rpartition("\n")
            if newline:
                self._screen.print((whole, ""))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def finish(self) -> None:
        """Print what is left of a line that was begun."""
        if self._begun:
            self.write("\n")
