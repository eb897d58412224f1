"""A shell command taken apart, so that a rule for one command lets no second one through.

This reads no more of the shell's grammar (POSIX.1-2017, 2.2 to 2.10) than is needed to find where a
command begins. What could be read in two ways is not guessed at: the command is then *unclear*.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath

_SEPARATORS = frozenset(";&|()\n")
_REDIRECTION = re.compile(r"(<<<|<<-?|<>|>>|>\||<&|>&|<|>)[ \t]*")
_NAMED = re.compile(r"\$\{\w+\}")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_OPERATORS = re.compile(r"[;&|()<>\n`'\"]|\$\(")
_KEYWORDS = frozenset(("!", "{", "do", "elif", "else", "if", "then", "time", "until", "while"))
_RUNNERS = frozenset(("builtin", "command", "doas", "env", "exec", "nice", "nohup", "sudo"))
"""Programs that run the program that follows them."""


@dataclass(slots=True)
class Parts:
    """What a command consists of."""

    texts: list[str] = field(default_factory=list)
    """Simple commands, and redirections as in ``> out.txt``; blanks between words are one."""
    unclear: bool = False
    """Whether it may hold more than was found."""


def split(command: str) -> Parts:
    """Take a command apart at its operators, also inside of ``$( )`` and backticks."""
    reader = _Reader(command)
    parts = reader.parts
    try:
        reader.commands("")
    except RecursionError:
        parts.unclear = True
    if parts.unclear:
        parts.texts += [each.strip() for each in _OPERATORS.split(command) if each.strip()]
    return parts


def spellings(part: str) -> set[str]:
    """A part, and the plainer commands that it comes to: with no quotes, no ``env``, no folder."""
    found = {part}
    try:
        words = shlex.split(part)
    except ValueError:
        words = part.split()
    while words:
        found.add(" ".join(words))
        found.add(" ".join([PurePosixPath(words[0]).name, *words[1:]]))
        name = PurePosixPath(words[0]).name
        if name in _RUNNERS:
            words = words[1:]
            while words and words[0].startswith("-"):
                words = words[1:]
        elif name in _KEYWORDS or _ASSIGNMENT.match(words[0]):
            words = words[1:]
        else:
            break
    return found


class _Reader:
    """Reads a command once, from its beginning to its end."""

    def __init__(self, text: str) -> None:
        # A line that goes on is one line to the shell; in single quotes, or after a backslash, or
        # in a comment it is not.
        self._text = text.replace("\\\n", "")
        self._at = 0
        joined = self._text != text
        self.parts = Parts(unclear=joined and any(sign in text for sign in ("'", "#", "\\\\")))

    def commands(self, end: str) -> None:
        """Read commands up to ``)``, a backtick or, where ``end`` is empty, all."""
        said: list[str] = []
        depth = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == end and not depth:
                self._at += 1
                self._add(said)
                return
            if char in _SEPARATORS:
                depth += {"(": 1, ")": -1}.get(char, 0) if end == ")" else 0
                self._add(said)
                self._at += 1
            elif char in "<>":
                self._redirection(said)
            elif char == "#" and (not said or said[-1] in " \t"):
                self._comment()
            else:
                said.append(self._piece(end))
        self.parts.unclear |= bool(end)
        self._add(said)

    def _add(self, said: list[str]) -> None:
        pieces: list[str] = []
        for piece in said:
            if piece not in " \t":
                pieces.append(piece)
            elif pieces and pieces[-1] != " ":
                pieces.append(" ")
        text = "".join(pieces)
        if text := text.strip():
            self.parts.texts.append(text)
        said.clear()

    def _comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _redirection(self, said: list[str]) -> None:
        """Read ``> FILE``; the words after it are the command's again."""
        found = _REDIRECTION.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        while said and said[-1].isdecimal():
            said.pop()
        target: list[str] = []
        while self._at < len(self._text) and self._text[self._at] not in " \t<>;&|()\n`":
            target.append(self._piece(""))
        operator, file = found[1], "".join(target)
        said.append(" ")
        if operator.startswith("<<") and operator != "<<<":
            # Quotes in a document quote nothing, and only its own end ends it.
            self.parts.unclear = True
        if operator in ("<&", ">&") and (file == "-" or file.isdecimal()):
            return
        if file != "/dev/null":
            self.parts.texts.append(f"{operator} {file}".strip())

    def _piece(self, end: str) -> str:
        """Read one character, or what is quoted or put in at this place, as it is written."""
        start, char = self._at, self._text[self._at]
        self._at += 1
        if char == "\\":
            self.parts.unclear |= end == "`"
            self._at += 1
        elif char == "'":
            self._single()
        elif char == '"':
            self._double()
        elif char == "`":
            self.commands("`")
        elif char == "$":
            self._dollar(quoted=False)
        return self._text[start : self._at]

    def _single(self) -> None:
        end = self._text.find("'", self._at)
        self.parts.unclear |= end < 0
        self._at = len(self._text) if end < 0 else end + 1

    def _double(self) -> None:
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char == '"':
                return
            if char == "\\":
                self._at += 1
            elif char == "`":
                self.commands("`")
            elif char == "$":
                self._dollar(quoted=True)
        self.parts.unclear = True

    def _dollar(self, *, quoted: bool) -> None:
        following = self._text[self._at : self._at + 1]
        if following == "(":
            self._at += 1
            self.commands(")")
        elif following == "'" and not quoted:
            # Shells differ in what ends this one.
            self.parts.unclear = True
        elif following == "{" and not _NAMED.match(self._text, self._at - 1):
            self.parts.unclear = True
