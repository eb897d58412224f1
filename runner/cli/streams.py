"""Where a command's words go: the result to stdout, all else to stderr, both in UTF-8.

stdout belongs to the result. Once `Streams.claim` is called, descriptor 1 is stderr, so that what
imported modules, tools and child processes print can't get between; the result has a descriptor of
its own, which no child inherits.
"""

from __future__ import annotations

import os
import select
import sys
from typing import TextIO

from runner.error import LogError
from runner.views.escape import uncommanding, visible


def open_standard_descriptors() -> None:
    """Give a closed stdin, stdout or stderr the null device.

    Otherwise the next file that is opened, such as the log, would get its number, and with it all
    that is printed.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # What was closed at Python's start has no stream either.
    sys.stdout = sys.stdout or _text_stream(1)
    sys.stderr = sys.stderr or _text_stream(2)


def _text_stream(descriptor: int) -> TextIO:
    """A stream in UTF-8 that writes line by line, and shows what can't be encoded."""
    return open(
        descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def let_go_of_standard_streams() -> None:
    """Write what is left; what can't be written is dropped.

    Python's own end would try it again, and make an exit code of the failure.
    """
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except (OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, descriptor)
            os.close(null)


class Streams:
    """The two streams of a command."""

    def __init__(self) -> None:
        self.in_actions = os.environ.get("GITHUB_ACTIONS") == "true"
        self.verbose = False
        """Whether ``--verbose`` was given."""
        self.closed = False
        """Whether the reader of stdout went away. What is written after that is dropped."""
        self._result = 1
        self.claimed = False
        """Whether stdout is kept for the result."""

    def claim(self) -> None:
        """Keep stdout for the result from here on."""
        if self.claimed:
            return
        self.claimed = True
        sys.stdout.flush()
        sys.stderr.flush()
        self._result = os.dup(1)
        os.dup2(2, 1)
        sys.stdout, sys.stderr = _text_stream(1), _text_stream(2)

    @property
    def result_is_terminal(self) -> bool:
        """Whether a person sees the result as it is written."""
        return os.isatty(self._result)

    @property
    def can_draw(self) -> bool:
        """Whether stderr is a terminal whose cursor can be moved, and not a log of Actions."""
        return (
            sys.stderr.isatty()
            and not self.in_actions
            and os.environ.get("TERM") not in ("", "dumb")
        )

    def result(self, text: str) -> None:
        """Write a text of the result; on a terminal and in Actions it can command neither.

        Raises:
            LogError: where it can't be written. A reader that went away is no such case.
        """
        if not text:
            return
        if self.in_actions or self.result_is_terminal:
            text = visible(text)
        if self.in_actions:
            text = uncommanding(text)
        self.line(text)

    def line(self, text: str) -> None:
        """Write text that is harmless by its form, such as JSON, as it is, and end its line.

        Raises:
            LogError: where it can't be written. A reader that went away is no such case.
        """
        if self.closed:
            return
        try:
            self._write(_encode(text if text.endswith("\n") else text + "\n"))
        except BrokenPipeError:
            self.closed = True
        except OSError as error:
            raise self.unwritten(error) from None

    def unwritten(self, error: OSError) -> Exception:
        """What to tell of a failure to write to stdout; a reader that went away stays as it is."""
        if isinstance(error, BrokenPipeError):
            return error
        return LogError(f"stdout: {error.strerror}; the result could not be written")

    def wait(self, seconds: float) -> bool:
        """Wait while there is who reads stdout; gives whether there is."""
        poll = select.poll()
        poll.register(self._result, 0)
        self.closed = self.closed or bool(poll.poll(seconds * 1000))
        return not self.closed

    def say(self, text: str) -> None:
        """Tell a person something on stderr, on lines of its own, its control codes shown."""
        text = visible(text)
        self.annotate(uncommanding(text) if self.in_actions else text)

    def annotate(self, text: str) -> None:
        """Write to stderr what Actions is to obey. All in it that others said must be escaped."""
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            # Nobody reads it, and there is no other place to tell that.
            return

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._result, rest) :]
            except BlockingIOError:  # a pipe that its other end made non-blocking, and is full
                select.select([], [self._result], [])


def _encode(text: str) -> bytes:
    """UTF-8. Bytes of an input that were no UTF-8 come out as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
