"""Takes out what a user's regular expression (``log.redact``) matches, also across pieces.

What a regular expression may come to match can't be told in general but by asking it, so this
stands on the ``regex`` package and its partial matches.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from runner.error import UsageError

PLACEHOLDER = "[redacted]"

_END = "[\U0010fffe\U0010ffff]"
"""No characters: that a pattern is followed by one is never true, and always possible at the end
of what has come so far. So a search for both finds each place where more text could change the
outcome, whether or not the pattern matches already. (Of a single one ``regex`` would know that it
can only be at the end, and not look elsewhere.)"""
_CONTEXT = 1000
"""Characters before a place that a pattern may look back at."""
_SOON = 1000
_FLAGS = re.compile(r"\(\?([aimsux]+)\)")
_TOKEN = re.compile(r"\$|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
# At the end of what has come it is open whether a word ends there, and before a last line break
# whether that is the last.
_OPEN = {
    r"\b": rf"(?:(?={_END})|\b)",
    r"\B": rf"(?:(?={_END})|\B)",
    r"\Z": rf"(?:(?={_END})|\Z)",
    "$": rf"(?:(?=\n?{_END})|$)",
}


class PatternRedactor:
    """Replaces each match of one regular expression that is not empty."""

    def __init__(self, pattern: str, on_found: Callable[[], None]) -> None:
        """Understand a pattern.

        Raises:
            UsageError: where it is no regular expression.
        """
        self._on_found = on_found
        self._flags = 0
        self._source = pattern
        self._keep: frozenset[str] = frozenset()
        self._understand()

    def keep(self, placeholders: Iterable[str]) -> None:
        """Let these texts be, where the pattern would find something in them."""
        self._keep = frozenset()
        self._compile()
        self._keep = frozenset(text for text in placeholders if self._pattern.search(text))
        self._compile()

    def whole(self, text: str) -> str:
        """A text without the matches; the same object where there is none in it."""
        if self._pattern.search(text) is None:
            return text
        return self.scan(text, 0, final=True)[0]

    def stream(self) -> PatternStream:
        """A text that comes in pieces."""
        return PatternStream(self)

    def scan(self, text: str, pos: int, *, final: bool) -> tuple[str, int]:
        """What may be shown of a text from a place on, and where what is held back begins.

        Args:
            text: The text so far.
            pos: The place up to which it is dealt with.
            final: Whether nothing more comes.
        """
        out: list[str] = []
        shown = pos
        hold = len(text)
        while pos <= hold and (match := self._pattern.search(text, pos)):
            start, end = match.span()
            if not final and (unsettled := self._unsettled(text, pos, start)) is not None:
                hold = unsettled
                break
            if start == end:
                pos = start + 1
                continue
            if match[0] in self._keep:
                out.append(text[shown:end])
            else:
                out += text[shown:start], PLACEHOLDER
                self._on_found()
            shown = pos = end
        else:
            if not final and pos <= hold and (found := self._open.search(text, pos, partial=True)):
                hold = found.start()
        out.append(text[shown:hold])
        return "".join(out), hold

    def _unsettled(self, text: str, pos: int, last: int) -> int | None:
        """The first place up to the last at which more text could change the outcome."""
        # Not by a search, which would go on behind the last place, perhaps for long.
        for place in range(pos, last + 1):
            if self._open.match(text, place, partial=True):
                return place
        return None

    def _understand(self) -> None:
        import regex

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what may mean another thing some day
                re.compile(self._source)
                while leading := _FLAGS.match(self._source):
                    for letter in leading[1]:
                        self._flags |= getattr(regex, letter.upper())
                    self._source = self._source[leading.end() :]
                self._compile()
        except (re.error, regex.error, OverflowError, RecursionError) as error:
            raise UsageError(f"{self._source!r} is no regular expression: {error}") from None

    def _compile(self) -> None:
        import regex

        # In a verbose pattern a comment may go on up to the end of the line.
        end = "\n)" if self._flags & regex.VERBOSE else ")"
        keep = "".join(f"{re.escape(text)}|" for text in sorted(self._keep, key=len, reverse=True))
        self._pattern: Any = regex.compile(f"(?:{keep}{self._source}{end}", self._flags)
        open_ended = _TOKEN.sub(lambda m: _OPEN.get(m[0], m[0]), self._source)
        self._open: Any = regex.compile(f"(?:{keep}{open_ended}{end}{_END}", self._flags)


class PatternStream:
    """What was held back of one text that comes in pieces, and what came just before it."""

    __slots__ = ("_before", "_due", "_held", "_length", "_redactor")

    def __init__(self, redactor: PatternRedactor) -> None:
        self._redactor = redactor
        self._before = ""
        self._held: list[str] = []
        self._length = 0
        self._due = 0

    def feed(self, text: str) -> str:
        """What may be shown, now that this came."""
        self._held.append(text)
        self._length += len(text)
        if self._length < self._due:
            return ""
        text = self._before + "".join(self._held)
        shown, pos = self._redactor.scan(text, len(self._before), final=False)
        self._before = text[max(0, pos - _CONTEXT) : pos]
        self._held = [text[pos:]]
        self._length = len(text) - pos
        # A match that grows and grows is looked at again only when there is much more of it, so
        # that the cost of a piece does not grow with it.
        self._due = self._length * 5 // 4 if self._length > _SOON else 0
        return shown

    def finish(self) -> str:
        """What was held back, now that nothing more comes."""
        text = self._before + "".join(self._held)
        self._held.clear()
        return self._redactor.scan(text, len(self._before), final=True)[0]
