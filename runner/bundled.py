"""Where the folders that ship with pi-run lie: built-in tools, schemas and example specs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).resolve().parent


def folder(kind: Literal["tools", "schemas", "specs"]) -> Path:
    """The folder of a kind: inside the package when installed from a wheel, else beside it."""
    inside = _PACKAGE / "_bundled" / kind
    return inside if inside.is_dir() else _PACKAGE.parent / kind


def tool_names() -> list[str]:
    """The names of the built-in tools, sorted: each is a file and the function in it."""
    return sorted(each.stem for each in folder("tools").glob("*.py"))
