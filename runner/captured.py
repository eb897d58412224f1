"""What a program says, kept in constant memory however much it is."""

from __future__ import annotations

import codecs

_SLACK = 1 << 16
"""Bytes more than are kept that may gather before they are cut: each cut moves all that is kept."""


class Captured:
    """The beginning and the end of what a child says, in constant memory."""

    __slots__ = ("_half", "_head", "_tail", "total")

    def __init__(self, max_bytes: int) -> None:
        self._half = max(max_bytes // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        """Bytes that were said."""

    def add(self, data: bytes) -> None:
        """Take what was said next."""
        self.total += len(data)
        if room := self._half - len(self._head):
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._half + _SLACK:
            del self._tail[: -self._half]

    @property
    def left_out(self) -> int:
        """Bytes between the beginning and the end that are kept."""
        return max(self.total - 2 * self._half, 0)

    @property
    def text(self) -> str:
        """What was kept, with a line that tells how much was not."""
        if not self.left_out:
            return (self._head + self._tail).decode(errors="replace")
        # A character that a cut went through is left out whole: it was never wrong.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        tail = self._tail[-self._half :]
        for _ in range(3):
            if tail and tail[0] & 0xC0 == 0x80:
                del tail[0]
        return (
            f"{head}\n[… {self.left_out} bytes are left out here …]\n"
            f"{tail.decode(errors='replace')}"
        )
