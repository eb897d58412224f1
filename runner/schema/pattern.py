"""Searching text for a pattern of a JSON Schema, in a time that no pattern can blow up."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

_REPEAT = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|([*+]|\{\d*,\d*\})")
_REPEATED_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{)")
_MAX_STEPS = 10_000_000
"""Steps that a search may take at the worst: about a second."""


def search(pattern: str, text: str) -> bool:
    """Whether a pattern is found anywhere in a text.

    Rust's engine, which pydantic brings along, takes linear time, but has neither look-around nor
    back-references. Python's has them and may take for ever, so it gets only texts that are short
    enough for the worst that the pattern could do.

    Raises:
        ValueError: if the pattern is none, or might take too long.
    """
    linear = _linear(pattern)
    if linear is not None:
        # A lone surrogate is not text to it.
        return linear.isinstance_python(text.encode(errors="replace").decode())
    compiled, repeats = _python(pattern)
    # A repeated group may try each way to part a text; repeats side by side, each set of places.
    worst = 4 ** min(len(text), 99) if repeats is None else len(text) ** min(repeats + 1, 99)
    if worst > _MAX_STEPS:
        raise ValueError(f'the pattern "{pattern}" might take for ever; do without (?=, (?! or \\1')
    return compiled.search(text) is not None


@lru_cache(256)
def _linear(pattern: str) -> SchemaValidator | None:
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return None


@lru_cache(256)
def _python(pattern: str) -> tuple[re.Pattern[str], int | None]:
    """A pattern and how many parts of it repeat without end; None where a group does."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f'"{pattern}" is no pattern: {error}') from None
    if _REPEATED_GROUP.search(pattern):
        return compiled, None
    return compiled, sum(1 for match in _REPEAT.finditer(pattern) if match[1])
