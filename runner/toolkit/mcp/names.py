"""What a model calls the tools of a server: names that every provider takes, each only once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST = 64
"""Characters of a name that every provider takes."""
_MARK = 8
"""Hexadecimal digits that tell a name apart that could not stay as it is."""


def legal_names(server: str, names: Sequence[str], taken: Collection[str]) -> dict[str, str]:
    """A name for each tool: ``SERVER_TOOL``, made legal and unique.

    A character that no provider takes becomes ``_``. A name that is too long, or that another tool
    has, ends with a mark made of the tool's own name, so it is the same in every run.

    Args:
        server: The server's name in the spec.
        names: Its tools, as it calls them.
        taken: The names of other tools.
    """
    used = set(taken)
    given: dict[str, str] = {}
    # Names that stay as they are come first: what another tool is called does not change them.
    for name in sorted(names, key=lambda name: not _is_legal(f"{server}_{name}")):
        wanted = f"{server}_{_ILLEGAL.sub('_', name)}"
        if len(wanted) > _LONGEST or wanted in used:
            wanted = _marked(wanted, f"{server}/{name}")
        number = 2
        unique = wanted
        while unique in used:
            unique = f"{wanted[: _LONGEST - 4]}_{number}"
            number += 1
        used.add(unique)
        given[name] = unique
    return {name: given[name] for name in names}


def _is_legal(name: str) -> bool:
    return len(name) <= _LONGEST and not _ILLEGAL.search(name)


def _marked(wanted: str, of: str) -> str:
    mark = hashlib.sha256(of.encode(errors="replace")).hexdigest()[:_MARK]
    return f"{wanted[: _LONGEST - _MARK - 1]}_{mark}"
