"""Reads one HTTP/1.1 answer at a time from bytes that come in pieces of any size.

The parser is llhttp, by httptools. Source of what ends a body: RFC 9112, section 6.3.
"""

from __future__ import annotations

from functools import partial

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserUpgrade,
    HttpResponseParser,
)
from httpx import RemoteProtocolError

MOST_HEAD_BYTES = 64 * 1024
"""A longer head is a fault of the server. A chunk's frame has no bound that it could break."""


class AnswerReader:
    """The answer to one request: its head, then the pieces of its body."""

    __slots__ = (
        "_feed",
        "_head_bytes",
        "_parser",
        "done",
        "headers",
        "keep",
        "on_body",
        "pieces",
        "status",
    )

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        """What came of the body since somebody took it."""
        self.headers: list[tuple[bytes, bytes]] = []
        """In their order, as they came."""
        self.status = 0
        """The HTTP status; 0 until the head is whole."""
        self.done = False
        """Whether the body is whole."""
        self.keep = False
        """Whether the connection may be used again after this answer."""
        self.on_body = self.pieces.append
        self._head_bytes = 0
        # httptools looks for the methods on_… of what it is given.
        self._parser = HttpResponseParser(self)
        # h11 and curl take lines that end at LF, so servers send them.
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        self._feed = partial(HttpResponseParser.feed_data, self._parser)

    def feed(self, data: bytes) -> None:
        """Take the bytes that came.

        Raises:
            RemoteProtocolError: where they are not HTTP/1, or have a head without an end.
        """
        if self.done:
            self.keep = self.keep and not data  # nobody asked for more
            return
        try:
            self._feed(data)
        except HttpParserUpgrade:
            raise RemoteProtocolError("the server changes to a protocol other than HTTP") from None
        except (HttpParserCallbackError, HttpParserError) as error:
            if not self.done:
                text = f"the server's answer is not HTTP/1.1: {error}"
                raise RemoteProtocolError(text) from None
            self.keep = False
        if not self.status:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                raise RemoteProtocolError("the head of the server's answer has no end")

    def end(self) -> None:
        """The connection was closed.

        Raises:
            RemoteProtocolError: where the answer is not whole.
        """
        self.keep = False
        if self.done:
            return
        if not self.status:
            raise RemoteProtocolError("the server closed the connection without an answer")
        framed = {name.lower() for name, _ in self.headers}
        if framed & {b"content-length", b"transfer-encoding"}:
            raise RemoteProtocolError("the server closed it before the answer was whole")
        self.done = True

    def on_message_begin(self) -> None:
        """Part of what httptools calls."""
        if self.done:
            raise RemoteProtocolError("there is another answer, which nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Part of what httptools calls."""
        if not self.status:  # else it is a trailer
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Part of what httptools calls."""
        status = self._parser.get_status_code()
        if status >= 200:
            self.status = status

    def on_message_complete(self) -> None:
        """Part of what httptools calls."""
        if self.status:
            self.done = True
            self.keep = self._parser.should_keep_alive()
        else:
            self.headers.clear()  # of an interim answer; the real one follows
