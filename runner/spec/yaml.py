"""YAML text → a tree of nodes, with every fault at its place.

PyYAML reads the syntax, which it does by YAML 1.1; what a value means is decided here, by 1.2.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from runner.error import Fault
from runner.spec.node import Node, Place, Source
from runner.spec.stand_in import hide
from runner.spec.yaml_tree import GiveUp, TreeBuilder

MAX_BYTES = 1 << 20
"""The longest text that is read."""

_UNREADABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOADER: Any = getattr(yaml, "CLoader", yaml.Loader)


def parse(data: bytes, source: Source, faults: list[Fault], path: str = "") -> Node | None:
    """The tree of a YAML text.

    Args:
        data: UTF-8, with or without a byte order mark.
        source: What is named in faults.
        faults: Gets what is wrong; where it can, reading goes on after a fault.
        path: The PATH that the text stands for in its spec.

    Returns:
        None where the text can't be read as a whole.
    """
    text = decode(data, source, faults, path)
    if text is None or not _is_readable(text, source, faults, path):
        return None
    readable, reveal = hide(text)
    builder = TreeBuilder(text, source, path, faults, reveal)
    try:
        for event in yaml.parse(readable, Loader=_LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        builder.syntax_fault(error)
        return None
    except GiveUp as given_up:
        faults.append(given_up.fault)
        return None
    if builder.root is None:
        faults.append(Place(source, 1, 1).fault(path, "it is empty; a map of keys is needed"))
    return builder.root


def decode(data: bytes, source: Source, faults: list[Fault], path: str) -> str | None:
    """The text of a file's bytes, without its byte order mark; None where it is no text."""
    start = Place(source, 1, 1)
    if len(data) > MAX_BYTES:
        faults.append(start.fault(path, "it is larger than 1 MiB; keep data in other files"))
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = Place(source, line, error.start - data.rfind(b"\n", 0, error.start))
        faults.append(place.fault(path, "it is not UTF-8; save the file in that encoding"))
        return None
    return text


def _is_readable(text: str, source: Source, faults: list[Fault], path: str) -> bool:
    """Whether YAML allows all characters of a text, as they stand."""
    odd = _UNREADABLE.search(text)
    if odd is None:
        return True
    line = text.count("\n", 0, odd.start()) + 1
    place = Place(source, line, odd.start() - text.rfind("\n", 0, odd.start()))
    escape = f"\\x{ord(odd[0]):02x}" if odd[0] < "\x80" else f"\\u{ord(odd[0]):04x}"
    message = f'the character {escape} is not allowed; write "{escape}", in double quotes'
    faults.append(place.fault(path, message))
    return False
