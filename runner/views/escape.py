"""Text of models, tools and specs, made harmless for those who read it.

A terminal obeys control codes and GitHub Actions obeys lines that begin with ``::``; what a model
or a tool says must be able to command neither. It stays readable: what is taken out of effect is
shown, not dropped.
"""

from __future__ import annotations

import re

# C0 but for tab and newline, DEL and C1; the bidirectional overrides and isolates, which make text
# read as another; lone surrogates, which no encoding carries.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

# What the runner of GitHub Actions takes for a command: "::" after spaces of any kind at a line's
# start (a CR ends a line there too), and the older "##[" anywhere.
_COMMAND = re.compile(r"(?m)(^[^\S\n]*|\r\s*):(?=:)|##(?=\[)")


def _show(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def visible(text: str) -> str:
    """A text with each control code shown as a sign: ESC as U+241B, and so on.

    Tabs and newlines stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub(_show, text)


def uncommanding(text: str) -> str:
    """A text in which GitHub Actions finds no command: a backslash breaks what would be one."""
    if "::" not in text and "##[" not in text:
        return text
    return _COMMAND.sub(lambda m: m[0] + "\\", text)


def one_line(text: str, limit: int = 200) -> str:
    """A text as one line of at most ``limit`` characters, its control codes shown."""
    # Twice the limit is looked at, and no more: a result may have megabytes.
    line = visible(" ".join(text[: 2 * limit].split()))
    return line if len(line) <= limit and len(text) <= 2 * limit else line[: limit - 1] + "…"
