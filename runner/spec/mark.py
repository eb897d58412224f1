"""What a field of a spec's model says beyond its type, as ``Annotated`` metadata.

Bounds are held when a value is decoded. Marks say what a value is, so that it can be checked, found
or rendered afterwards, wherever in a spec it stands.
"""

from __future__ import annotations

from typing import Literal


class Min:
    """A bound: a number is at least this, or more than it."""

    def __init__(self, least: int, *, exclusive: bool = False) -> None:
        self.least = least
        self.exclusive = exclusive


class Pattern:
    """A bound: a text, or each key of a map, matches this as a whole."""

    def __init__(self, regex: str, wanted: str) -> None:
        self.regex = regex
        self.wanted = wanted
        """What it matches, in words."""


class Private:
    """No message may show the value."""


class Included:
    """``{file: PATH}`` may stand for the value."""

    def __init__(self, content: Literal["text", "data"]) -> None:
        self.content = content
        """The file's text as it is, or the YAML or JSON in it."""


class Mark:
    """A value is of this kind. Where it stands is kept when it is decoded."""


class Text(Mark):
    """What uses names."""

    def __init__(self, *extra: str) -> None:
        self.extra = extra
        """Names that it sees besides those that all texts of its place see."""


class Template(Text):
    """A template; of a list, a map or any JSON, each text in it is one."""


class Url(Template):
    """A template of a URL, of which arguments fill in parts behind its host."""


class Expression(Text):
    """An expression, as it could stand between the braces of a template."""


class Regex(Mark):
    """A regular expression of Python."""


class Schema(Mark):
    """A JSON Schema, Draft 2020-12."""


class Target(Mark):
    """Python: ``PATH.py:NAME`` or ``package.module:NAME``."""


class Program(Mark):
    """An argv; its first item is relative to its file where it begins with ``./`` or ``../``."""


class File(Mark):
    """A file that has to be there."""


class AgentFile(Mark):
    """Another spec's file."""


class EnvironmentName(Mark):
    """A name of an environment variable whose value is used."""
