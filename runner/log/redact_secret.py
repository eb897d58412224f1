"""Takes out known values, in each of the forms in which they may stand in a text."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator

_SHORTEST_BASE64 = 6
"""Characters of base64; fewer would be found where they mean nothing."""
_LONG = 1000


class SecretRedactor:
    """Replaces secrets, the longest form first where several begin at one place."""

    def __init__(self, on_found: Callable[[], None]) -> None:
        self._on_found = on_found
        self.placeholders: set[str] = set()
        self._instead: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self._first: re.Pattern[str] | None = None
        self._by_first: dict[str, list[str]] = {}
        self._longest = 0

    def add(self, name: str, value: str) -> None:
        """Know one more secret. One that is empty or blank is none."""
        placeholder = f"[secret:{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}]"
        for each in {value, value.strip()}:
            if each.strip():
                self.placeholders.add(placeholder)
                for form in _forms(each):
                    self._instead.setdefault(form, placeholder)
        # What a placeholder itself says is let be, where a secret is part of it.
        for shown in self.placeholders:
            if any(form in shown for form in self._instead):
                self._instead[shown] = shown
        self._compile()

    def whole(self, text: str) -> str:
        """A text without the secrets; the same object where there is none in it."""
        pattern = self._pattern
        if pattern is None:
            return text
        if len(text) > _LONG:
            if not any(form in text for form in self._instead):
                return text
        elif pattern.search(text) is None:
            return text
        return pattern.sub(lambda match: self._replacement(match[0]), text)

    def stream(self) -> SecretStream:
        """A text that comes in pieces."""
        return SecretStream(self)

    def scan(self, text: str) -> tuple[str, str]:
        """What may be shown of a text that goes on, and what may be the beginning of a secret."""
        if self._pattern is None or self._first is None or self._first.search(text) is None:
            return text, ""
        out: list[str] = []
        pos = 0
        hold = self._beginning(text, pos)
        while match := self._pattern.search(text, pos):
            # Where a longer form may still come, or an earlier one, the match is not certain.
            if match.start() >= hold:
                break
            out += text[pos : match.start()], self._replacement(match[0])
            pos = match.end()
            if hold < pos:
                hold = self._beginning(text, pos)
        out.append(text[pos:hold])
        return "".join(out), text[hold:]

    def _replacement(self, found: str) -> str:
        instead = self._instead[found]
        if instead != found:
            self._on_found()
        return instead

    def _beginning(self, text: str, pos: int) -> int:
        """Where the text may be the beginning of a form; its length where nowhere."""
        assert self._first is not None
        for match in self._first.finditer(text, max(pos, len(text) - self._longest + 1)):
            rest = text[match.start() :]
            for form in self._by_first[match[0]]:
                if len(form) > len(rest) and form.startswith(rest):
                    return match.start()
        return len(text)

    def _compile(self) -> None:
        if not self._instead:
            return
        forms = sorted(self._instead, key=len, reverse=True)
        self._longest = len(forms[0])
        self._pattern = re.compile("|".join(map(re.escape, forms)))
        self._by_first = {}
        for form in forms:
            self._by_first.setdefault(form[0], []).append(form)
        self._first = re.compile("[" + "".join(map(re.escape, self._by_first)) + "]")


class SecretStream:
    """What was held back of one text that comes in pieces."""

    __slots__ = ("_held", "_redactor")

    def __init__(self, redactor: SecretRedactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, text: str) -> str:
        """What may be shown, now that this came."""
        shown, self._held = self._redactor.scan(self._held + text if self._held else text)
        return shown

    def finish(self) -> str:
        """What was held back, now that nothing more comes."""
        held, self._held = self._held, ""
        return self._redactor.whole(held)


def _forms(value: str) -> Iterator[str]:
    """All ways in which a value may be written: plain, in JSON, in a URL, in base64."""
    yield value
    yield from _json_forms(value)
    yield from _url_forms(value)
    yield from _base64_forms(value.encode(errors="surrogatepass"))


def _json_forms(value: str) -> Iterator[str]:
    """Inside a JSON string, and inside one that is itself inside a JSON string."""
    for ascii_only in (False, True):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        twice = json.dumps(once, ensure_ascii=ascii_only)[1:-1]
        for form in (once, twice):
            yield form
            yield form.replace("/", "\\/")
            yield re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda match: match[0].upper(), form)


def _url_forms(value: str) -> Iterator[str]:
    from urllib.parse import quote, quote_plus

    for form in (
        quote(value, safe="", errors="replace"),
        quote(value, errors="replace"),
        quote_plus(value, errors="replace"),
    ):
        yield form
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), form)


def _base64_forms(data: bytes) -> Iterator[str]:
    """In base64, alone or anywhere within other data: what no neighbour has a part in."""
    for encode in (b64encode, urlsafe_b64encode):
        forms = [encode(data).decode()]
        for before in range(3):
            text = encode(b"\0" * before + data).decode()
            first = -(-8 * before // 6)
            forms.append(text[first : 8 * (before + len(data)) // 6])
        yield from (form for form in forms if len(form) >= _SHORTEST_BASE64)
