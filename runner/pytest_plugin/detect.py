"""Tells specs from other YAML by the keys at their top, without parsing: other people's is big."""

from __future__ import annotations

import re
from pathlib import Path

_MAX_BYTES = 1 << 20
"""What is looked at; a spec that is larger is an error anyway."""
_KEY = re.compile(rb"""^(["']?)([\w$-]+)\1[ \t]*:(?=[ \t\r]|$)""", re.MULTILINE)
_FLOW_KEY = re.compile(rb"""[{,]\s*(["']?)([\w$-]+)\1\s*:""")
_MODEL_IS_MAP = re.compile(rb"""^["']?model["']?[ \t]*:[ \t]*(?:[{&*#]|\r?$)""", re.MULTILINE)

_OURS = frozenset(
    (b"model", b"prompt", b"system_prompt", b"messages", b"follow_ups", b"expect", b"extends")
)
"""Keys of specs of which each says something, though none is known to specs alone."""


def is_spec(path: Path) -> bool:
    """Whether a file is meant as a spec, right or wrong.

    It is one that has, at its top, ``version``, ``extends`` or a ``model`` that is a map, and
    another of the keys that make a spec. What can't be read is none, nor is a pipe, which may never
    say anything.
    """
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return False
    flow = data.lstrip().startswith(b"{")
    keys = {found[2] for found in (_FLOW_KEY if flow else _KEY).finditer(data)}
    signs = keys & {b"version", b"extends"}
    if b"model" in keys and (flow or _MODEL_IS_MAP.search(data)):
        signs.add(b"model")
    with_inputs = b"extends" in signs and b"inputs" in keys
    return with_inputs or any(keys & _OURS - {sign} for sign in signs)
