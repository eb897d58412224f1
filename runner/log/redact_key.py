"""Takes out what looks like a key of a well-known service, also across pieces of a text.

A key is told by how it begins (``ghp_``, ``AKIA``, ``Bearer `` …). That beginning is public and
stays; what follows is the secret. So a text that comes in pieces is held back only from such a
beginning on, up to where the run of characters ends of which that kind of key is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property

# A key does not begin in the middle of a word, but for one that only an escape makes so: JSON's
# ``\n``, a URL's ``%3D``, a terminal's ``[32m``.
_AFTER_A_WORD = r"(?:[^A-Za-z0-9]|\\[nrtbf]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\[[0-9;]{0,9}m)\Z"
_BEFORE = 48
"""Characters before a key's beginning that may say something about it."""


class _Key:
    """A kind of key, by one of its beginnings.

    Args:
        kind: What it is called.
        run: All characters that may follow the beginning without a break.
        secret: What of that run, from its start on, is the secret; seen without what follows.
        before: What stands before the beginning; None: nothing, or no word.
        shrinks: Whether what is no secret from a place on is none from a later one on either, as
            far as the next dot: the later one sees less of the same.
    """

    def __init__(
        self, kind: str, run: str, secret: str, before: str | None, *, shrinks: bool
    ) -> None:
        self.kind = kind
        self.characters = run
        self.at_start = before is None
        self.shrinks = shrinks
        self._sources = {"run": f"[{run}]*", "secret": secret, "before": before or _AFTER_A_WORD}

    # Most runs meet none or one of these, so that each is compiled when it is met.

    @cached_property
    def run(self) -> re.Pattern[str]:
        return re.compile(self._sources["run"])

    @cached_property
    def secret(self) -> re.Pattern[str]:
        return re.compile(self._sources["secret"])

    @cached_property
    def before(self) -> re.Pattern[str]:
        return re.compile(self._sources["before"])


_KEYS: dict[str, _Key] = {}


def _known(
    kind: str,
    beginnings: str,
    run: str,
    secret: str,
    before: str | None = None,
    *,
    shrinks: bool = True,
) -> None:
    key = _Key(kind, run, secret, before, shrinks=shrinks)
    _KEYS.update(dict.fromkeys(beginnings.split("|"), key))


_ALNUM = "A-Za-z0-9"
_WORD = r"A-Za-z0-9_\-"
_DIGIT = rf"(?=[{_WORD}]*[0-9])"
_PEM = r"-----BEGIN (?:[A-Z]+ )?PRIVATE \Z"
_BREAK = r"(?:\s|\\+[nr])"

_known("anthropic", "sk-ant-", _WORD, rf"[{_WORD}]{{20,}}\Z")
# Not the long names of things, such as sk-circle-fade-dot-2-large.
_known("openai", "sk-", _WORD, rf"{_DIGIT}(?=[{_WORD}]*[{_ALNUM}]{{16}})[{_WORD}]{{20,}}\Z")
_known("github", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_", "A-Za-z0-9_", r"\w{36,}\Z")
_known("gitlab", "glpat-", _WORD + ".", rf"[{_WORD}]{{20,}}[{_WORD}.]*\Z")
_known("aws", "AKIA|ASIA", _ALNUM, r"[A-Z0-9]{16}\Z", shrinks=False)
_known(
    "aws",
    "access_key|ACCESS_KEY|AccessKey",
    r"A-Za-z0-9/+=\s\"'\\:",
    r"[\s\"'\\]{0,4}[:=][\s\"'\\]{0,4}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    r"(?i:secret_?)\Z",
    shrinks=False,
)
_known("google", "AIza", _WORD, rf"[{_WORD}]{{35}}\Z", shrinks=False)
_known("google", "ya29.", _WORD, rf"[{_WORD}]{{20,}}\Z")
_known("slack", "xoxa-|xoxb-|xoxe-|xoxo-|xoxp-|xoxr-|xoxs-|xapp-", _WORD, rf"{_DIGIT}.{{10,}}\Z")
_known("slack", "/services/T", _ALNUM + "/", rf"[{_ALNUM}/]{{20,}}\Z", r"slack\.com\Z")
_known("stripe", "sk_live_|sk_test_|rk_live_|rk_test_|whsec_", _ALNUM, r".{16,}\Z")
_known("sendgrid", "SG.", _WORD + ".", rf"[{_WORD}]{{16,}}\.[{_WORD}]{{16,}}")
_known("huggingface", "hf_", _ALNUM, r".{30,}\Z")
_known("npm", "npm_", _ALNUM, r".{36}\Z", shrinks=False)
_known("pypi", "pypi-AgEI", _WORD, r".{40,}\Z")
_known("groq", "gsk_", _ALNUM, r".{30,}\Z")
_known("xai", "xai-", _ALNUM, r".{40,}\Z")
_known("jwt", "eyJ", _WORD + ".", rf"[{_WORD}]{{6,}}\.eyJ[{_WORD}]{{6,}}\.[{_WORD}]*")
_known("bearer", "Bearer |bearer |BEARER ", _WORD + "._~+/=", r"(?=.*[0-9]).{16,}\Z")
_known(
    "basic",
    "Basic |basic |BASIC ",
    _ALNUM + "+/=",
    r".{8,}\Z",
    r"(?i:authorization)[\\\"']{0,3}\s{0,3}[:=]\s{0,3}[\\\"']{0,3}\Z",
)
_known(
    "private_key",
    "KEY-----|KEY BLOCK-----",
    r"A-Za-z0-9+/=\s\\",
    rf"{_BREAK}*[A-Za-z0-9+/=]{{40,}}(?:{_BREAK}+[A-Za-z0-9+/=]+)*",
    _PEM,
    shrinks=False,
)


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Any of some texts, the longest first; by first letters, which is twice as fast."""
    by_letter: dict[str, list[str]] = {}
    for text in sorted(texts, key=len, reverse=True):
        by_letter.setdefault(text[0], []).append(re.escape(text[1:]))
    return re.compile(
        "|".join(f"{re.escape(one)}(?:{'|'.join(rest)})" for one, rest in by_letter.items())
    )


_BEGINNING = _any_of(_KEYS)
_LONGEST = max(map(len, _KEYS))

PLACEHOLDERS = frozenset(f"[redacted:{key.kind}]" for key in _KEYS.values())
"""All that `KeyRedactor` may write."""


class KeyRedactor:
    """Replaces what looks like a key by ``[redacted:KIND]``, after the key's public beginning."""

    def __init__(self, on_found: Callable[[], None]) -> None:
        self.on_found = on_found

    def whole(self, text: str) -> str:
        """A text without keys; the same object where there is none in it."""
        if _BEGINNING.search(text) is None:
            return text
        return KeyStream(self).scan(text, 0, final=True)

    def stream(self) -> KeyStream:
        """A text that comes in pieces."""
        return KeyStream(self)


class _Runs:
    """What was learnt of a text in one scan: many beginnings in one run cost little more."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: dict[str, int] = {}
        self._without: dict[_Key, int] = {}

    def end(self, key: _Key, place: int) -> int:
        """Where the run ends that goes on from a place."""
        known = self._ends.get(key.characters, -1)
        if place <= known:
            return known
        run = key.run.match(self._text, place)
        assert run is not None
        self._ends[key.characters] = run.end()
        return run.end()

    def secret(self, key: _Key, place: int, end: int) -> re.Match[str] | None:
        """The secret that begins at a place of a run."""
        if place < self._without.get(key, 0):
            return None
        secret = key.secret.match(self._text, place, end)
        if secret is None and key.shrinks:
            dot = self._text.find(".", place, end)
            self._without[key] = end if dot < 0 else dot
        return secret


class KeyStream:
    """What was held back of one text that comes in pieces, and what came just before it."""

    __slots__ = ("_before", "_held", "_pos", "_redactor", "_run")

    def __init__(self, redactor: KeyRedactor) -> None:
        self._redactor = redactor
        self._before = ""
        self._pos = 0  # where in `_before` the next key may begin
        self._held: list[str] = []
        self._run: re.Pattern[str] | None = None  # of the key that may have begun

    def feed(self, text: str) -> str:
        """What may be shown, now that this came."""
        if self._run is not None and self._run.fullmatch(text):
            self._held.append(text)
            return ""
        if self._held:
            text = "".join(self._held) + text
        before = self._before
        return self.scan(before + text if before else text, len(before), final=False)

    def finish(self) -> str:
        """What was held back, now that nothing more comes."""
        return self.scan(self._before + "".join(self._held), len(self._before), final=True)

    def scan(self, text: str, shown: int, *, final: bool) -> str:
        """What may be shown of a text, of which the part before `shown` is shown already."""
        out: list[str] = []
        pos = self._pos
        hold = len(text)
        self._run = None
        runs = _Runs(text)
        while begin := _BEGINNING.search(text, pos):
            start, end = begin.span()
            key = _KEYS[begin[0]]
            if not (key.at_start and start == 0) and not key.before.search(
                text[max(0, start - _BEFORE) : start]
            ):
                pos = start + 1
                continue
            run_end = runs.end(key, end)
            if run_end == len(text) and not final:
                self._run = key.run
                pos, hold = start, max(shown, end)
                break
            secret = runs.secret(key, end, run_end)
            if secret is None:
                pos = end
                continue
            group = 1 if secret.re.groups else 0
            out += text[shown : secret.start(group)], f"[redacted:{key.kind}]"
            self._redactor.on_found()
            shown = pos = secret.end(group)
        out.append(text[shown:hold])
        self._keep(text, hold, pos)
        return "".join(out)

    def _keep(self, text: str, hold: int, pos: int) -> None:
        """Remember what is held back, and as much of what is shown as matters for what comes."""
        cut = max(0, hold - _BEFORE - _LONGEST)
        self._before = text[cut:hold]
        self._held = [text[hold:]] if hold < len(text) else []
        self._pos = max(pos, hold - _LONGEST + 1 if self._run is None else 0, cut) - cut
