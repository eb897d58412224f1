"""Reads HTTP/1.1 answers from bytes that come in pieces of any size.

Source: RFC 9112. httpx, with the h11 below it, hands out each chunk of a chunked body by itself and
through eight generators. That takes 8 microseconds for one delta of a stream, more than all else
that is done with it, and a millisecond for one request. What an answer to a POST needs of the
protocol is small, so it stands here; `proxied` leaves the rest to httpx.
"""

from __future__ import annotations

import re

from runner.error import ProviderError

MOST_HEAD_BYTES = 64 * 1024
"""A longer head is a fault of the server."""
MOST_LINE_BYTES = 4096
"""So is a longer line before a chunk."""

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/1\.(\d) +(\d{3})(?: [^\r\n]*)?\r?")
_HEX = b"0123456789abcdefABCDEF"


class ResponseReader:
    """One answer: its head, then its body as it comes."""

    __slots__ = ("_buffer", "_left", "_mode", "done", "headers", "keep", "status")

    def __init__(self) -> None:
        self.status = 0
        """The HTTP status; 0 until the head is whole."""
        self.headers: dict[str, str] = {}
        """By lower-case name; several of a name are joined by commas."""
        self.done = False
        """Whether the body is whole."""
        self.keep = False
        """Whether the server lets the connection be used again after this answer."""
        self._buffer = b""
        self._left = 0  # bytes of the body, or of the chunk, that are still to come
        self._mode = "head"

    def feed(self, data: bytes) -> bytes:
        """The part of the body that is in these bytes.

        Raises:
            ProviderError: where they are not HTTP.
        """
        if self._mode == "chunked":
            return self._chunks(data)
        if self._mode == "length":
            return self._length(data)
        if self._mode == "close":
            return data
        return self._head(data)

    def end(self) -> None:
        """The connection was closed.

        Raises:
            ProviderError: where the answer is not whole.
        """
        if self._mode == "close":
            self.done = True
        if not self.done:
            what = "before the answer was whole" if self.status else "without an answer"
            raise ProviderError(f"the server closed the connection {what}", "network")

    def _head(self, data: bytes) -> bytes:
        data = self._buffer + data
        end = _HEAD_END.search(data)
        if not end:
            if len(data) > MOST_HEAD_BYTES:
                raise ProviderError("the head of the server's answer has no end", "protocol")
            self._buffer = data
            return b""
        self._buffer = b""
        first, *lines = data[: end.start()].split(b"\n")
        if not (status := _STATUS.fullmatch(first)):
            raise ProviderError("the server does not answer in HTTP/1.1", "protocol")
        rest = data[end.end() :]
        if status[2][0] == ord("1"):  # an interim answer; the real one follows
            return self._head(rest)
        self.status = int(status[2])
        self._read_headers(lines)
        self.keep = status[1] != b"0" and "close" not in self.headers.get("connection", "").lower()
        self._begin_body()
        return self.feed(rest)

    def _read_headers(self, lines: list[bytes]) -> None:
        for line in lines:
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon:
                continue
            name, value = name.strip().lower(), value.strip()
            known = self.headers.get(name)
            self.headers[name] = value if known is None else f"{known}, {value}"

    def _begin_body(self) -> None:
        """Find out how the body's end will be known (RFC 9112, section 6.3)."""
        coding = self.headers.get("transfer-encoding")
        length = self.headers.get("content-length")
        self._mode = "length"
        if self.status in (204, 304):
            self.done = True
        elif coding is not None:
            if coding.lower() != "chunked":
                raise ProviderError(f"the transfer coding {coding} is not known", "protocol")
            self._mode = "chunked"
        elif length is not None:
            if not re.fullmatch(r"\d{1,18}", length):
                raise ProviderError("the server's content-length is no number", "protocol")
            self._left = int(length)
            self.done = not self._left
        else:
            self._mode = "close"
            self.keep = False

    def _length(self, data: bytes) -> bytes:
        if len(data) > self._left:
            self.keep = False  # bytes that nobody asked for
            data = data[: self._left]
        self._left -= len(data)
        self.done = not self._left
        return data

    def _chunks(self, data: bytes) -> bytes:
        """All that the chunks in these bytes hold, also that of one whose end has not come.

        ``_left`` counts the line break after a chunk as well.
        """
        if self.done:
            self.keep = self.keep and not data
            return b""
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        body: list[bytes] = []
        position, size = 0, len(data)
        if self._left:
            position = min(self._left, size)
            body.append(data[: max(0, min(position, self._left - 2))])
            self._left -= position
        while position < size:
            line_end = data.find(b"\r\n", position)
            if line_end < 0:
                if size - position > MOST_LINE_BYTES:
                    raise ProviderError("a chunk of the answer has no length", "protocol")
                self._buffer = data[position:]
                break
            start = line_end + 2
            length = _chunk_length(data[position:line_end])
            if not length:
                self._trailer(data[line_end:])
                break
            position = start + length + 2
            body.append(data[start : start + length])
            if position > size:
                self._left = position - size
        return b"".join(body)

    def _trailer(self, data: bytes) -> None:
        """What follows the last chunk, from its line break on: an empty line, at the latest."""
        end = data.find(b"\r\n\r\n")
        if end >= 0:
            self.done = True
            self.keep = self.keep and end + 4 == len(data)
        elif len(data) > MOST_HEAD_BYTES:
            raise ProviderError("the end of the server's answer has no end", "protocol")
        else:
            self._buffer = b"0" + data


def _chunk_length(line: bytes) -> int:
    if line.translate(None, _HEX):
        line = line.partition(b";")[0].strip()  # an extension, which means nothing here
    if not line or len(line) > 15 or line.translate(None, _HEX):
        raise ProviderError("a chunk of the answer has a length that is no number", "protocol")
    return int(line, 16)
