"""Thinking that stands in an answer's text, as servers without a parser for it send it."""

from __future__ import annotations

from typing import Literal

OPENING = "<think>"
CLOSING = "</think>"


class ThinkTags:
    """Tells thinking from text, where the text begins with ``<think>``; tags may be cut anywhere.

    Line breaks around the tags belong to neither.
    """

    __slots__ = ("_held", "state")

    def __init__(self) -> None:
        self.state: Literal["start", "opened", "inside", "after", "plain"] = "start"
        """Where in the answer this is. Once it is ``plain``, all that comes is text."""
        self._held = ""

    def split(self, text: str) -> list[tuple[bool, str]]:
        """What a piece completes: whether each part is thinking, and the part; none is empty."""
        text = self._held + text
        self._held = ""
        if self.state in ("opened", "inside"):
            return self._until_closing(text)
        if self.state == "plain":
            return [(False, text)] if text else []
        start = text.lstrip()
        if self.state == "after":
            text = start
        elif start.startswith(OPENING):
            self.state = "opened"
            return self._until_closing(start.removeprefix(OPENING))
        elif OPENING.startswith(start):
            self._held = text
            return []
        if not text:
            return []
        self.state = "plain"
        return [(False, text)]

    def rest(self) -> list[tuple[bool, str]]:
        """What was held back, at the end of the answer."""
        held, self._held = self._held, ""
        return [(self.state == "inside", held)] if held else []

    def _until_closing(self, text: str) -> list[tuple[bool, str]]:
        if self.state == "opened":
            text = text.lstrip("\n")
            self.state = "inside" if text else "opened"
        thinking, tag, after = text.partition(CLOSING)
        if tag:
            self.state = "after"
            thinking = thinking.rstrip("\n")
            return [*([(True, thinking)] if thinking else []), *self.split(after)]
        end = len(text) - _overlap(text)
        # Line breaks before a tag go with it, so they wait as well.
        end = len(text[:end].rstrip("\n"))
        self._held = text[end:]
        return [(True, text[:end])] if end else []


def _overlap(text: str) -> int:
    """How many characters at a text's end may be the beginning of the closing tag."""
    return next((n for n in range(len(CLOSING) - 1, 0, -1) if text.endswith(CLOSING[:n])), 0)
