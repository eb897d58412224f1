"""What a docstring says of a function and its parameters, in Google's, NumPy's or Sphinx's form."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_PARAMETERS = re.compile(r"(other |keyword )?(param(eter)?s|arg(ument)?s)")
_OTHERS = re.compile(r"returns?|yields?|raises|warns|receives")
"""Sections that say nothing to a model that calls the function."""
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)")
_NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_FIELD = re.compile(
    r":(?:(?P<of>param(?:eter)?|arg(?:ument)?|key(?:word)?)|type|returns?|rtype|raises?|yields?"
    r"|except(?:ion)?)\b\s*(?P<name>[^:]*):\s*(?P<text>.*)"
)


@dataclass(slots=True)
class Docstring:
    """A docstring, read."""

    text: str = ""
    """All but the sections on parameters, results and exceptions."""
    parameters: dict[str, str] = field(default_factory=dict)
    """What is said of each parameter, in one line."""


def read_docstring(doc: str | None) -> Docstring:
    """Read a docstring; what is in none of the three forms is text."""
    lines = inspect.cleandoc(doc or "").splitlines()
    said = Docstring()
    kept: list[str] = []
    at = 0
    while at < len(lines):
        name = lines[at].strip().lower()
        if _is_underlined(lines, at) and _is_section(name):
            end, items = _section_end(lines, at + 2, underlined=True), _numpy_items
        elif name.endswith(":") and _is_section(name[:-1]):
            end, items = _section_end(lines, at + 1, underlined=False), _google_items
        elif _FIELD.match(lines[at]):
            end, items = _section_end(lines, at + 1, underlined=False), _sphinx_items
        else:
            kept.append(lines[at])
            at += 1
            continue
        if not _OTHERS.fullmatch(name.rstrip(":")):
            said.parameters.update(items(lines[at:end]))
        at = end
    said.text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return said


def _is_section(name: str) -> bool:
    return bool(_PARAMETERS.fullmatch(name) or _OTHERS.fullmatch(name))


def _is_underlined(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[at + 1].strip()) is not None


def _section_end(lines: list[str], start: int, *, underlined: bool) -> int:
    """The line after a section: one that is underlined, or that is not indented, is of the next."""
    for at in range(start, len(lines)):
        if underlined and _is_underlined(lines, at):
            return at
        if not underlined and lines[at] and not lines[at][0].isspace():
            return at
    return len(lines)


def _google_items(section: list[str]) -> dict[str, str]:
    return _items(inspect.cleandoc("\n" + "\n".join(section[1:])).splitlines(), _GOOGLE_ITEM)


def _numpy_items(section: list[str]) -> dict[str, str]:
    items: dict[str, str] = {}
    names: list[str] = []
    for line in section[2:]:
        if line and not line[0].isspace():
            found = _NUMPY_ITEM.match(line)
            names = [n.strip(" *") for n in found[1].split(",")] if found else []
        for name in names if line[:1].isspace() else ():
            items[name] = f"{items.get(name, '')} {line.strip()}".strip()
    return items


def _items(lines: list[str], item: re.Pattern[str]) -> dict[str, str]:
    """Items that begin at the margin, each with lines that go on with it further in."""
    items: dict[str, str] = {}
    name = None
    for line in lines:
        if line and not line[0].isspace():
            found = item.match(line)
            name = found[1] if found else None
            line = found[2] if found else ""
        if name is not None:
            items[name] = f"{items.get(name, '')} {line.strip()}".strip()
    return items


def _sphinx_items(section: list[str]) -> dict[str, str]:
    found = _FIELD.match(section[0])
    if found is None or not found["of"] or not found["name"].strip():
        return {}
    text = " ".join([found["text"], *(line.strip() for line in section[1:])])
    return {found["name"].split()[-1].lstrip("*"): " ".join(text.split())}
