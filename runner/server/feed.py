"""The lines of a log while it grows, for any number of readers of any pace.

The file is the truth. Beside it the newest lines are held in memory, as the frames of
``text/event-stream`` that all readers send, so that those who keep up cost neither a read nor a
conversion; who falls behind reads the file. Nothing is held for a reader, and nobody waits for one.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path

TAIL = 64 << 10
"""Bytes of the newest frames that are held of one run."""
BLOCK = 64 << 10
"""Bytes of a file that are read at once, if no line is longer."""


@dataclass(slots=True, frozen=True)
class _Piece:
    """Lines that were written together."""

    first: int
    """The number of the first one."""
    after: int
    """The number of the line after the last one."""
    end: int
    """Where in the file they end."""
    frames: bytes


class Feed:
    """A log's lines, from the first to the last that is written; all in one event loop.

    A line's number is its event's ``seq``.

    Args:
        path: The log.
        ended: Whether no more will come.
    """

    def __init__(self, path: Path, *, ended: bool = False) -> None:
        self.path = path
        self.ended = ended
        self.count = 0
        """Lines so far, where this is a run's own feed."""
        self.size = 0
        """Bytes of them."""
        self._tail: deque[_Piece] = deque()
        self._tail_size = 0
        self.changed = asyncio.Event()
        """Set, and replaced by another, at each change."""

    def append(self, text: str) -> None:
        """Take whole lines that stand in the file."""
        lines = text.encode().split(b"\n")[:-1]
        first = self.count
        self.count += len(lines)
        self.size += sum(map(len, lines)) + len(lines)
        piece = _Piece(first, self.count, self.size, frames_of(lines, first))
        self._tail.append(piece)
        self._tail_size += len(piece.frames)
        while self._tail_size > TAIL and self._tail:
            self._tail_size -= len(self._tail.popleft().frames)
        self.wake()

    def end(self) -> None:
        """No more will come: what is held in memory can be read from the file."""
        self.ended = True
        self._tail.clear()
        self.wake()

    def wake(self) -> None:
        """Let all readers look again."""
        self.changed.set()
        self.changed = asyncio.Event()

    def held(self, number: int) -> tuple[bytes, int, int] | None:
        """Frames from a line on that are in memory: them, the next line's number, and its place.

        None where that line is not, or not any more; no bytes where it is still to come.
        """
        if number == self.count and not self.ended:
            return b"", number, self.size
        pieces = [piece for piece in self._tail if piece.after > number]
        if not pieces or pieces[0].first > number:
            return None
        frames = b"".join(piece.frames for piece in pieces)
        for _ in range(number - pieces[0].first):
            frames = frames[frames.index(b"\n\n") + 2 :]
        return frames, pieces[-1].after, pieces[-1].end


class Reader:
    """Reads a feed, from a line on.

    Args:
        feed: What is read.
        number: The first line that is wanted.
    """

    def __init__(self, feed: Feed, number: int = 0) -> None:
        self._feed = feed
        self.number = number
        """The number of the next line."""
        self._place: int | None = 0 if number == 0 else None

    async def read(self) -> bytes:
        """The frames of the next lines, as many as there are at once; empty where there are none.

        Raises:
            OSError: where the file can't be read.
        """
        held = self._feed.held(self.number)
        if held is None:
            return await asyncio.to_thread(self._read_file)
        frames, self.number, self._place = held
        return frames

    def _read_file(self) -> bytes:
        try:
            descriptor = os.open(self._feed.path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return b""  # a run that could not begin has no log
        try:
            if self._place is None:
                self._place = place_of(descriptor, self.number)
            if self._place is None:
                return b""
            data = read_lines(descriptor, self._place)
        finally:
            os.close(descriptor)
        lines = data.split(b"\n")[:-1]
        frames = frames_of(lines, self.number)
        self._place += len(data)
        self.number += len(lines)
        return frames


def frames_of(lines: list[bytes], first: int) -> bytes:
    """Lines as the frames of a stream of events, each with its number as the id."""
    return b"".join(
        b"id: %d\ndata: %s\n\n" % (number, line) for number, line in enumerate(lines, first)
    )


def read_lines(descriptor: int, place: int) -> bytes:
    """Whole lines of a file from a place on: some, or one long one. Empty where there is none."""
    size = BLOCK
    while True:
        data = os.pread(descriptor, size, place)
        end = data.rfind(b"\n") + 1
        if end or len(data) < size:
            return data[:end]
        size *= 4


def place_of(descriptor: int, number: int) -> int | None:
    """Where in a file a line begins, by its number; None where there are fewer before it."""
    place = 0
    while number:
        data = os.pread(descriptor, 16 * BLOCK, place)
        if not data:
            return None
        count = data.count(b"\n")
        if count >= number:
            end = -1
            for _ in range(number):
                end = data.index(b"\n", end + 1)
            return place + end + 1
        number -= count
        place += len(data)
    return place
