"""What ``.gitignore`` files leave out. Source: gitignore(5), "PATTERN FORMAT"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_MAX_STARS = 12
"""A pattern with more of them is passed over: it could take for ever."""


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of a ``.gitignore``."""

    expression: re.Pattern[str]
    """Of a path from the workspace on."""
    ignores: bool
    """False for a line that begins with ``!``."""
    only_folders: bool


def read_rules(text: str, folder: str) -> list[IgnoreRule]:
    """The rules of a ``.gitignore``.

    Args:
        text: What it holds.
        folder: Where it is, from the workspace on, with a slash at the end; empty for the top.
    """
    return [rule for line in text.splitlines() if (rule := _rule(line, folder)) is not None]


def is_ignored(path: str, is_folder: bool, rules: Sequence[IgnoreRule]) -> bool:
    """Whether rules leave a path out; the last that fits decides."""
    for rule in reversed(rules):
        if (is_folder or not rule.only_folders) and rule.expression.fullmatch(path):
            return rule.ignores
    return False


def _rule(line: str, folder: str) -> IgnoreRule | None:
    pattern = line.strip() if not line.endswith("\\ ") else line.lstrip()
    if not pattern or pattern.startswith("#"):
        return None
    ignores = not pattern.startswith("!")
    pattern = pattern if ignores else pattern[1:]
    only_folders = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    if not pattern or pattern.count("*") > _MAX_STARS:
        return None
    start = re.escape(folder) + ("" if anchored else "(?:.*/)?")
    try:
        return IgnoreRule(
            re.compile(start + _expression(pattern), re.DOTALL), ignores, only_folders
        )
    except re.error:
        return None


_PIECE = re.compile(r"\*\*/|/\*\*|\*+|\?|\[!?\]?[^\]/]*\]|\\.|.", re.DOTALL)


def _expression(pattern: str) -> str:
    return "".join(_translated(piece) for piece in _PIECE.findall(pattern))


def _translated(piece: str) -> str:
    fixed = {"**/": "(?:.*/)?", "/**": "/.*", "?": "[^/]"}.get(piece)
    if fixed is not None:
        return fixed
    if piece.startswith("*"):
        return "[^/]*"
    if piece.startswith("[") and len(piece) > 2:
        negated = piece[1] == "!"
        inner = piece[2 if negated else 1 : -1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[{'^' if negated else ''}{inner}]"
    return re.escape(piece[-1] if piece.startswith("\\") and len(piece) > 1 else piece)
