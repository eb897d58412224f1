"""JSON values as YAML that a person likes to read, and that YAML 1.2 reads as they were.

Texts stand without quotes wherever they can, those of several lines as literal blocks; small lists
and maps stand on one line. What a terminal or a CI would obey, or an editor would not show, stands
as an escape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WIDTH = 100
"""The longest line that a list or a map of several values is written on."""

# What the core schema takes for something else than a text (YAML 1.2, 10.3.2).
_NO_TEXT = re.compile(
    r"~|null|Null|NULL|true|True|TRUE|false|False|FALSE"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
# An indicator at its beginning, ": ", " #" and ":" at its end make a plain text something else.
_NOT_PLAIN = re.compile(r"^[?:,\[\]{}#&*!|>'\"%@`\s]|^-(?![A-Za-z])|^<<$|:(?:\s|$)|\s#|\s$")
_NOT_IN_FLOW = re.compile(r"[,\[\]{}:]")
# Control codes, line breaks but LF, what turns the direction of writing, surrogates, BOMs, and the
# last two of each plane, which are no characters.
_HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]"
)
_TABS = re.compile(r"[\t]")
# What GitHub Actions takes for a command, wherever the text is printed.
_COMMAND = re.compile(r"(?m)^\s*::|##\[")
_ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", '"': '\\"', "\\": "\\\\"}


def yaml_lines(value: Any, width: int = WIDTH) -> Iterator[str]:
    """A JSON value as the lines of a YAML text.

    Args:
        value: Maps, lists, texts, numbers, booleans and nulls. Keys are at most about 1000
            characters long, which is all that YAML allows.
        width: The longest line of several values.
    """
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _entry(f"{_key(key)}:", item, width)
    elif _is_list(value) and value:
        for item in value:
            yield from _item(item, width)
    else:
        yield _flow(value, in_flow=False)


def _entry(head: str, item: Any, width: int) -> Iterator[str]:
    """A key with its value."""
    if (short := _on_one_line(item, width - len(head) - 1)) is not None:
        yield f"{head} {short}"
        return
    if isinstance(item, str):
        mark, lines = _literal(item)
        yield f"{head} {mark}"
    else:
        yield head
        lines = yaml_lines(item, width - 2)
    for line in lines:
        yield f"  {line}" if line else ""


def _item(item: Any, width: int) -> Iterator[str]:
    """An item of a list."""
    if (short := _on_one_line(item, width - 2)) is not None:
        yield f"- {short}"
        return
    if isinstance(item, str):
        mark, lines = _literal(item)
        yield f"- {mark}"
    else:
        lines = yaml_lines(item, width - 2)
        yield f"- {next(lines)}"
    for line in lines:
        yield f"  {line}" if line else ""


def _on_one_line(value: Any, width: int) -> str | None:
    """A value on one line; None where it is better written on several."""
    if isinstance(value, str):
        return None if _is_block(value) else _text(value, in_flow=False)
    if not isinstance(value, Mapping) and not _is_list(value):
        return _flow(value, in_flow=False)
    if not value:
        return _flow(value, in_flow=False)
    if _has_block(value):
        return None
    line = _flow(value, in_flow=False)
    return line if len(line) <= width else None


def _has_block(value: Any) -> bool:
    if isinstance(value, str):
        return _is_block(value)
    if isinstance(value, Mapping):
        return any(map(_has_block, value.values()))
    return _is_list(value) and any(map(_has_block, value))


def _flow(value: Any, *, in_flow: bool) -> str:
    """A value on one line."""
    if isinstance(value, str):
        return _text(value, in_flow=in_flow)
    if isinstance(value, Mapping):
        entries = (f"{_key(k)}: {_flow(item, in_flow=True)}" for k, item in value.items())
        return "{" + ", ".join(entries) + "}"
    if _is_list(value):
        return "[" + ", ".join(_flow(item, in_flow=True) for item in value) + "]"
    return json.dumps(value, allow_nan=False)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


# --- texts ----------------------------------------------------------------------------------------


def _key(key: str) -> str:
    return _text(key, in_flow=True)


def _text(text: str, *, in_flow: bool) -> str:
    """A text on one line: plain where it can be, else in the quotes that need no escapes."""
    if "\n" in text or _HIDDEN.search(text) or _COMMAND.search(text):
        return _escaped(text)
    if text and not (
        _NOT_PLAIN.search(text)
        or (in_flow and _NOT_IN_FLOW.search(text))
        or _NO_TEXT.fullmatch(text)
    ):
        return text
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


def _escaped(text: str) -> str:
    text = "".join(_ESCAPED.get(char, char) for char in text).replace("##[", "#\\x23[")
    return '"' + _HIDDEN.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _is_block(text: str) -> bool:
    """Whether a text is best written as a literal block."""
    if "\n" not in text or not text.strip("\n "):
        return False
    return not (_HIDDEN.search(_TABS.sub("", text)) or _COMMAND.search(text))


def _literal(text: str) -> tuple[str, Iterator[str]]:
    """The mark of a literal block, and its lines."""
    # A first line that begins with a space would be taken for the indentation.
    indent = "2" if text[0] in " \n\t" else ""
    if not text.endswith("\n"):
        chomp = "-"
    else:
        chomp = "+" if text.endswith("\n\n") else ""
        text = text[:-1]
    return f"|{indent}{chomp}", iter(text.split("\n"))
