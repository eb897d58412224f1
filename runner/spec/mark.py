"""What a field of a spec's model says beyond its type, as ``Annotated`` metadata.

Bounds are held when a value is decoded. Marks say what a text is, so that it can be checked, found
or rendered afterwards, wherever in a spec it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Min:
    """A number is at least this, or more than it."""

    least: float
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text, or each key of a map, matches this as a whole."""

    regex: str
    wanted: str
    """What it matches, in words."""


@dataclass(frozen=True, slots=True)
class Private:
    """A value that no message may show."""


@dataclass(frozen=True, slots=True)
class Included:
    """``{file: PATH}`` may stand for the value."""

    content: Literal["text", "data"]
    """The file's text as it is, or the YAML or JSON in it."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template; of a list, a map or any JSON, each text in it is one."""

    extra: tuple[str, ...] = ()
    """Names that it sees besides those that all templates of its place see."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, as it could stand between the braces of a template."""

    extra: tuple[str, ...] = ()
    """Names that it sees besides those that all templates of its place see."""


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression of Python."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON Schema, Draft 2020-12."""


@dataclass(frozen=True, slots=True)
class Target:
    """Python: ``PATH.py:NAME`` or ``package.module:NAME``."""


@dataclass(frozen=True, slots=True)
class Program:
    """An argv; its first item is relative to its file where it begins with ``./`` or ``../``."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that has to be there."""


@dataclass(frozen=True, slots=True)
class AgentFile:
    """Another spec's file."""


@dataclass(frozen=True, slots=True)
class EnvironmentName:
    """A name of an environment variable whose value is used."""


Mark = (
    Template | Expression | Regex | Schema | Target | Program | File | AgentFile | EnvironmentName
)
MARKS = Mark.__args__
"""The classes whose places are kept."""
