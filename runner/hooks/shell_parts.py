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
_KEYWORDS = frozenset(("!", "{", "do", "elif", "else", "if", "then", "until", "while"))
_JOINING = frozenset(("eval", "ssh", "watch"))
"""Programs that make one command of all their words."""
_SHELLS = frozenset(("ash", "bash", "busybox", "dash", "ksh", "mksh", "sh", "zsh"))
_RUNNERS = frozenset(
    (
        *("builtin", "chroot", "chrt", "command", "coproc", "doas", "env", "eval", "exec", "find"),
        *("flock", "function", "ionice", "nice", "nohup", "parallel", "runuser", "script"),
        *("setpriv", "setsid", "ssh", "stdbuf", "strace", "su", "sudo", "taskset", "time"),
        *("timeout", "trap", "unshare", "watch", "xargs"),
    )
)
"""Programs that run a program which stands among their arguments."""
_QUOTED = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|['"\\])+""", re.DOTALL)
"""A word with its quotes."""
_BLANK = re.compile(r"\s")
_UNTOLD = re.compile(r"[$`*?]|(?<!^)\[")
"""What the shell puts something else in the place of."""
_WORDS = 200
"""Words of a part of which one may be the program that another one runs."""
_DEPTH = 4
"""Shells within shells that are looked into."""


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
    """A part, and the plainer commands that it comes to: with no quotes, no ``env``, no folder.

    So are the commands that it has others run, as far as they stand there: by ``timeout 5``,
    ``xargs``, ``find -exec``, or in words such as those of ``sh -c`` and ``eval``.
    """
    found: set[str] = set()
    _spell(part, found, _DEPTH)
    return found


def _spell(part: str, found: set[str], depth: int) -> None:
    found.add(part)
    words = _words(part)
    while words:
        name = PurePosixPath(words[0]).name
        found.update((" ".join(words), " ".join([name, *words[1:]])))
        if name in _RUNNERS or name in _SHELLS:
            # Which of the words is the program depends on what options there are.
            for start in range(1, min(len(words), _WORDS)):
                run = PurePosixPath(words[start]).name
                found.add(" ".join([run, *words[start + 1 :]]))
            if depth:
                _spell_all(" ".join(words[1:]) if name in _JOINING else "", found, depth)
                for word in words[1:]:
                    _spell_all(word, found, depth)
            return
        if name not in _KEYWORDS and not _ASSIGNMENT.match(words[0]):
            return
        words = words[1:]


def _spell_all(command: str, found: set[str], depth: int) -> None:
    if _BLANK.search(command):
        for part in split(command).texts:
            _spell(part, found, depth - 1)


def hides_its_program(part: str) -> bool:
    """Whether only the shell knows what program a part runs: by a variable or its stdin."""
    words = _QUOTED.findall(part)
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _KEYWORDS):
        words = words[1:]
    if not words or words[0] in ("[", "[["):
        return False
    name = PurePosixPath(words[0]).name
    if len(words) > _WORDS and (name in _RUNNERS or name in _SHELLS):
        return True
    if name in _RUNNERS and name not in _SHELLS:
        return any(_UNTOLD.search(word) for word in words[:2])
    if name in _SHELLS:
        reads = all(word.startswith("-") for word in words[1:])
        return reads or any(map(_hides, _words(" ".join(words[1:]))))
    return _UNTOLD.search(words[0]) is not None


def _hides(command: str) -> bool:
    return any(map(hides_its_program, split(command).texts))


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:
        return part.split()


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
