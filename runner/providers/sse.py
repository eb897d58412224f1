"""A reader of server-sent events over bytes.

Source: the WHATWG HTML standard, "Server-sent events", section 9.2.6. Two things are more lenient
than it says, because servers need it: an event that the end of the stream cuts off after its last
data line is given out, and bytes that are not UTF-8 become U+FFFD, as everywhere on the web.
"""

from __future__ import annotations

from runner.error import ProviderError

Event = tuple[str, str]
"""The event's name (``""`` where it has none) and its data lines, joined by line feeds."""

MOST_BYTES = 64 * 1024 * 1024
"""An event longer than this is a fault of the server."""

_BOM = b"\xef\xbb\xbf"


class SseReader:
    """Takes the bytes of one stream, cut anywhere, and gives its events.

    Lines end at LF, CR and CRLF, and at nothing else: U+2028 and U+0085 are text.
    """

    __slots__ = ("_after_cr", "_data", "_name", "_partial", "_size", "_start")

    def __init__(self) -> None:
        self._partial: list[bytes] = []  # the pieces of a line whose end has not come
        self._data: list[bytes] = []
        self._name = b""
        self._size = 0  # bytes since the last empty line
        self._start: bytes | None = b""  # the first bytes, while they may be part of a BOM
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that end within this chunk.

        Raises:
            ProviderError: where one is too long.
        """
        if self._start is not None:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == 10:  # the LF of a CRLF that was cut in two
                chunk = chunk[1:]
        # bytes.splitlines knows CR, LF and CRLF only, unlike that of str.
        lines = chunk.splitlines()
        if not lines:
            return []
        last = chunk[-1]
        if last == 10:
            rest = b""
        elif last == 13:
            self._after_cr = True
            rest = b""
        else:
            rest = lines.pop()
        if lines and self._partial:
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self._partial.clear()
        if rest:
            self._partial.append(rest)
        self._size += len(chunk)
        events = self._read(lines) if lines else []
        if self._size > MOST_BYTES:
            raise ProviderError(
                f"one event of the stream is longer than {MOST_BYTES >> 20} MiB", "protocol"
            )
        return events

    def end(self) -> list[Event]:
        """What the end of the stream completes: an event without its empty line."""
        lines = [b"".join((self._start or b"", *self._partial)), b""]
        self._partial.clear()
        self._start = None
        return self._read(lines)

    def _read(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        data = self._data
        for line in lines:
            if not line:
                if data:
                    whole = data[0] if len(data) == 1 else b"\n".join(data)
                    events.append(
                        (self._name.decode("utf-8", "replace"), whole.decode("utf-8", "replace"))
                    )
                    data.clear()
                self._name = b""
                self._size = 0
            elif line.startswith(b"data: "):
                data.append(line[6:])
            else:
                self._field(line)
        return events

    def _field(self, line: bytes) -> None:
        """A line other than the usual one. Comments, ids and retry times mean nothing here."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value

    def _without_bom(self, chunk: bytes) -> bytes:
        """The chunk without a byte order mark at the stream's start, which may come in pieces."""
        start = (self._start or b"") + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)
