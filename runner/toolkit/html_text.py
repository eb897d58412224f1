"""What a person reads of a web page, as plain text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_HIDDEN = frozenset(("script", "style", "noscript", "template", "svg", "iframe", "select"))
_INLINE = frozenset(
    ("abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "kbd", "label", "mark", "q", "s")
) | frozenset(("samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"))
_CELLS = frozenset(("td", "th"))
_BLANK = "\ue000"
"""Stands for a blank that is to stay where it is, until the others are thinned out."""
_MAX_DEPTH = 512
"""Hidden elements within each other that are counted."""


def html_text(html: str) -> str:
    """The text of a page: its title, then a line for each block, each link with its address."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = (re.sub(r"[^\S\n]+", " ", each).strip() for each in "".join(reader.said).split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    title = " ".join("".join(reader.title).split())
    text = text.replace(_BLANK, " ")
    return f"{title}\n\n{text}" if title else text


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.said: list[str] = []
        self.title: list[str] = []
        self._in_title = False
        self._hidden: list[str] = []
        self._links: list[str] = []
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = not self.title
        elif tag in _HIDDEN and len(self._hidden) < _MAX_DEPTH:
            self._hidden.append(tag)
        elif self._hidden:
            return
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
        elif tag in _CELLS:
            self.said.append(" | ")
        elif tag == "img":
            alt = dict(attrs).get("alt")
            self.said.append(f"[{alt}]" if alt else "")
        elif tag not in _INLINE:
            self.said.append("\n- " if tag == "li" else "\n")
            self._pre += tag == "pre"
            if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
                self.said.append(f"\n{'#' * int(tag[1])} ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in self._hidden:
            # Whatever was not closed within it ends with it.
            while self._hidden.pop() != tag:
                pass
        elif self._hidden:
            return
        elif tag == "a" and self._links:
            where = self._links.pop()
            if where.startswith(("http://", "https://", "/")):
                self.said.append(f" ({where})")
        elif tag not in _INLINE and tag not in _CELLS:
            self._pre -= tag == "pre" and self._pre > 0
            self.said.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._hidden:
            kept = data.replace(" ", _BLANK) if self._pre else re.sub(r"\s+", " ", data)
            self.said.append(kept)
