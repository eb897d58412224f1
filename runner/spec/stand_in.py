"""Stand-ins for what YAML 1.2 or JSON has in a text, and PyYAML's parser reads otherwise.

These are the line breaks of YAML 1.1 that are none in 1.2, and escapes for half of a character.
Each is as long as what it stands for, so every line and column stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_BREAKS = "\x85\u2028\u2029"
_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_STAND_IN = re.compile(r"\\u[ef][0-9a-f]{3}")
_PRIVATE_USE = range(0xE000, 0xF900)


def hide(text: str) -> tuple[str, Callable[[str], str] | None]:
    """A text that PyYAML reads as it is meant, and what gives a value of it its own letters back.

    Returns:
        The text as it is, and None, where there is nothing to hide.
    """
    breaks = [] if text.isascii() else [char for char in _BREAKS if char in text]
    halves = dict.fromkeys(_HALF.findall(text)) if "\\u" in text else {}
    if not breaks and not halves:
        return text, None
    return _hidden(text, breaks, list(halves))


def _hidden(
    text: str, breaks: list[str], halves: list[str]
) -> tuple[str, Callable[[str], str] | None]:
    free = _free(text, len(breaks) + len(halves))
    if free is None:
        return text, None  # the parser refuses what can't be hidden
    characters: dict[int, str] = {}
    escapes: dict[str, str] = {}
    for char in breaks:
        stand_in = next(free)
        text = text.replace(char, stand_in)
        characters[ord(stand_in)] = char
    written: dict[str, str] = {}
    for escape in halves:
        stand_in = next(free)
        written[escape] = f"\\u{ord(stand_in):04x}"
        escapes[written[escape]] = escape
        characters[ord(stand_in)] = chr(int(escape[2:], 16))
    text = _HALF.sub(lambda match: written[match[0]], text)

    def reveal(value: str) -> str:
        value = value.translate(characters)
        if not escapes:
            return value
        # Outside of double quotes an escape is no escape, but its own six letters.
        value = _STAND_IN.sub(lambda match: escapes.get(match[0], match[0]), value)
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    return text, reveal


def _free(text: str, count: int) -> Iterator[str] | None:
    """So many characters that a text has neither as they are nor as an escape."""
    taken = set(text) | {chr(int(code, 16)) for code in re.findall(r"\\u([0-9a-fA-F]{4})", text)}
    free = [chr(code) for code in _PRIVATE_USE if chr(code) not in taken]
    return iter(free) if len(free) >= count else None
