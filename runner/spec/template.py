"""Templates and expressions: text of a spec that is made ready once and rendered often.

A text without braces of Jinja2 is itself, and Jinja2 isn't imported for it. What a template renders
to is data: nothing here ever renders a result again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from runner.error import TemplateError

MAX_TEXT = 64 << 20
"""The longest text that a template may render to, in characters."""
_KEPT = 256
"""How many compiled texts are kept."""


def is_plain(text: str) -> bool:
    """Whether a text has nothing to render."""
    return "{{" not in text and "{%" not in text and "{#" not in text


# Each agent of a fan-out has a plan of its own, of the same few texts.
@lru_cache(_KEPT)
def _compiled(text: str) -> Any:
    from runner.spec.sandbox import SANDBOX

    return SANDBOX.from_string(text)


@lru_cache(_KEPT)
def _compiled_expression(text: str) -> Any:
    from runner.spec.sandbox import SANDBOX

    return SANDBOX.compile_expression(text, undefined_to_none=False)


class Template:
    """A text with places to fill in."""

    __slots__ = ("_compiled", "_native", "text", "where")

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        """Where it stands, for errors."""
        self._compiled: Any = None
        self._native: Expression | None = None

    def render(self, names: Mapping[str, Any]) -> str:
        """The text, filled in.

        Args:
            names: The values of all names that it may use.

        Raises:
            TemplateError: naming the place and the cause.
        """
        if is_plain(self.text):
            return self.text
        with told(self.where):
            if self._compiled is None:
                self._compiled = _compiled(self.text)
            pieces, size = [], 0
            for piece in self._compiled.generate(**names):
                pieces.append(piece)
                size += len(piece)
                if size > MAX_TEXT:
                    raise ValueError(f"the text is longer than {MAX_TEXT:,} characters")
            return "".join(pieces)

    def value(self, names: Mapping[str, Any]) -> Any:
        """As `render`; but a template that is nothing but one ``{{ … }}`` keeps its value's type.

        Raises:
            TemplateError: naming the place and the cause.
        """
        if self._native is None and (source := _single_expression(self.text)) is not None:
            self._native = Expression(source, self.where)
        if self._native is not None:
            return self._native.value(names)
        return self.render(names)


class Expression:
    """A condition, or where a list comes from: Jinja2 without the braces."""

    __slots__ = ("_compiled", "text", "where")

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        """Where it stands, for errors."""
        self._compiled: Any = None

    def value(self, names: Mapping[str, Any]) -> Any:
        """What it comes to.

        Raises:
            TemplateError: naming the place and the cause.
        """
        with told(self.where):
            from runner.spec.sandbox import defined

            if self._compiled is None:
                self._compiled = _compiled_expression(self.text)
            return defined(self._compiled(**names))

    def holds(self, names: Mapping[str, Any]) -> bool:
        """Whether it comes to something true.

        Raises:
            TemplateError: naming the place and the cause.
        """
        return bool(self.value(names))


def render_all(value: Any, names: Mapping[str, Any], where: str) -> Any:
    """A JSON value in which each text is a template, filled in; see `Template.value`.

    Raises:
        TemplateError: naming the place and the cause.
    """
    if isinstance(value, str):
        return Template(value, where).value(names)
    if isinstance(value, list):
        return [render_all(item, names, where) for item in value]
    if isinstance(value, dict):
        return {key: render_all(item, names, where) for key, item in value.items()}
    return value


def _single_expression(text: str) -> str | None:
    """What stands between the braces of a text that is one expression and nothing else."""
    text = text.strip()
    if not (text.startswith("{{") and text.endswith("}}")):
        return None
    from jinja2 import TemplateError as JinjaError
    from jinja2 import nodes

    from runner.spec.sandbox import SANDBOX

    try:
        body = SANDBOX.parse(text).body
    except (JinjaError, RecursionError):
        return None  # rendering tells what is wrong
    match body:
        case [nodes.Output(nodes=[nodes.TemplateData()])]:
            return None
        case [nodes.Output(nodes=[_])]:
            return text.removeprefix("{{").removeprefix("-").removesuffix("}}").removesuffix("-")
    return None


@contextlib.contextmanager
def told(where: str) -> Iterator[None]:
    """Tell whatever goes wrong inside as a `TemplateError` that says where."""
    from runner.spec.budget import bounded

    try:
        with bounded():
            yield
    except RecursionError:
        raise TemplateError(f"{where}: it is nested too deeply") from None
    except Exception as error:  # a template can call what raises anything
        cause = " ".join(str(error).split()) or type(error).__name__
        raise TemplateError(f"{where}: {cause}") from error
