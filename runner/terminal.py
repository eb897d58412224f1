"""Who sits at the terminal: what is typed, line by line, each line for one reader only.

A question gets the next line that is typed after it; lines that answer no question are for who
listens. No thread waits for them, so nothing is left behind when nobody waits any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import termios
from collections.abc import Callable

_LINE = 4096
"""Bytes that a terminal gives of a line at most."""
# What a terminal obeys, or shows in another order than it is written.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Terminal:
    """The terminal of this process, in one event loop at a time."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()
        self._asked: asyncio.Future[str] | None = None
        self._take: Callable[[str], None] | None = None
        self._gone: Callable[[], None] | None = None
        self._fd: int | None = None

    async def ask(self, question: str) -> str:
        """Write a question, and give the line that is typed in answer; empty if nobody is there.

        One question is asked at a time. An abort takes it back.
        """
        self._enter()
        async with self._turn:
            self._open()
            with contextlib.suppress(termios.error):
                # What was typed before the question is no answer to it.
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            # Whole lines: a live view keeps what has no end of line yet to itself.
            sys.stderr.write(f"{question.rstrip()}\n")
            sys.stderr.flush()
            self._asked = asyncio.get_running_loop().create_future()
            try:
                return (await self._asked).strip()
            finally:
                self._asked = None
                self._close_if_idle()

    def listen(self, take: Callable[[str], None], gone: Callable[[], None]) -> None:
        """Have each line that answers no question; in the loop's thread.

        Args:
            take: Gets the line, with its end.
            gone: Is called once, when there is no more to come.
        """
        self._enter()
        self._take, self._gone = take, gone
        self._open()

    def stop(self) -> None:
        """Listen no more."""
        self._take = self._gone = None
        self._close_if_idle()

    # --- reading ----------------------------------------------------------------------------------

    def _enter(self) -> None:
        """Belong to the loop that runs here: what another one left is of no use in it."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._turn = loop, asyncio.Lock()
            self._asked = self._take = self._gone = self._fd = None

    def _open(self) -> None:
        if self._fd is None and self._loop is not None:
            self._fd = sys.stdin.fileno()
            self._loop.add_reader(self._fd, self._read)

    def _close_if_idle(self) -> None:
        if self._asked is None and self._take is None:
            self._close()

    def _close(self) -> None:
        if self._fd is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._fd = None

    def _read(self) -> None:
        assert self._fd is not None
        try:
            data = os.read(self._fd, _LINE)
        except BlockingIOError:
            return
        except OSError:  # the terminal is gone
            data = b""
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(data.decode(errors="replace"))
        elif data and self._take is not None:
            self._take(data.decode(errors="replace"))
        if not data:
            gone, self._gone, self._take = self._gone, None, None
            self._close()
            if gone is not None:
                gone()


TERMINAL = Terminal()
"""The one terminal that a process has: two readers would take each other's lines."""


def visible(text: str, *, lines: bool = False) -> str:
    """A text with each control code as its number, so that it can't hide what is asked for.

    Args:
        text: The text.
        lines: Whether line ends and tabs stay what they are.
    """

    def shown(found: re.Match[str]) -> str:
        return found[0] if lines and found[0] in "\n\t" else f"\\u{ord(found[0]):04x}"

    return _CONTROLS.sub(shown, text)
