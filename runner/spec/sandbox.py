"""The Jinja2 environment that templates and expressions of a spec run in.

It is imported where the first template with braces is met: Jinja2 costs more than a small spec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from jinja2 import StrictUndefined, Undefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.filters import do_urlencode
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from runner.error import did_you_mean
from runner.spec.budget import (
    COUNTED,
    Counting,
    called,
    counted,
    counting,
    foresee,
    spend,
    take,
    written,
)

MAX_COUNT = 1_000_000
"""The longest text, list or range that an operator or filter may make of something short."""
_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\d{5}|\*)|\{[^{}]*\d{5}")
_REMOVED_GLOBALS = ("lipsum",)
# Chance in a template would make a run that can't be replayed.
_REMOVED_FILTERS = ("random",)
_SIZED_FILTERS = ("batch", "center", "indent", "round", "slice", "wordwrap")


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2 without a way out, without chance, and with bounds on what grows."""

    counts_output = False
    """Whether all that is written counts as steps."""
    intercepted_binops = frozenset(("+", "*", "**", "%", "<<"))

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            autoescape=False,
            finalize=written,
        )
        for name in _REMOVED_GLOBALS:
            del self.globals[name]
        for name in _REMOVED_FILTERS:
            del self.filters[name]
        for name in _SIZED_FILTERS:
            self.filters[name] = _bounded(self.filters[name])
        self.filters["format"] = _bounded_format(self.filters["format"])
        self.globals["range"] = _bounded_range
        for known in (self.filters, self.tests):
            for name, function in [*known.items()]:
                known[name] = counting(name, function)
        self.filters[COUNTED] = counted

    def getattr(self, obj: Any, attribute: str) -> Any:
        """``a.b``: of a map the item first, so that ``args.items`` is the argument."""
        if not isinstance(obj, Mapping):
            return super().getattr(obj, attribute)
        if attribute in obj:
            return obj[attribute]
        if attribute.startswith("_") or not hasattr(obj, attribute):
            hint = f'there is no "{attribute}" in it; {did_you_mean(attribute, map(str, obj))}'
            return self.undefined(hint, obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Operators whose result may be far larger than what they get."""
        if operator == "*":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, (str, bytes, list, tuple)) and isinstance(other, int):
                    _check_count(len(one) * other)
            if isinstance(left, int) and isinstance(right, int):
                bits = left.bit_length() + right.bit_length()
                _check_count(bits)
                take(bits // 16)
        elif operator == "**" and isinstance(right, (int, float)):
            _check_count(right)
            if isinstance(left, int) and isinstance(right, int):
                _check_count(left.bit_length() * right)
        elif operator == "%" and isinstance(left, str):
            _check_format(left)
            foresee("%", left, [right])
        return spend(super().call_binop(context, operator, left, right))

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        """The code of a template, which counts its steps; Jinja2 has this to be overridden."""
        Counting(counts_output=self.counts_output).visit(source)
        source.set_environment(self)
        return super()._generate(source, *args, **kwargs)

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls of methods, with the same bounds."""
        for argument in args:
            if isinstance(argument, int):
                _check_count(argument)
        method = getattr(function, "__wrapped__", function)  # Jinja2 wraps str.format
        if isinstance(owner := getattr(method, "__self__", None), str):
            _check_format(owner)
        args = called(method, args, kwargs)
        return spend(super().call(context, function, *args, **kwargs))

    def parse_expression(self, source: str) -> nodes.Expr:
        """The syntax tree of an expression.

        Raises:
            TemplateSyntaxError: where it is none.
        """
        parser = Parser(self, source, state="variable")
        expression = parser.parse_expression()
        if not parser.stream.eos:
            parser.fail(f'"{parser.stream.current.value}" is not expected here')
        expression.set_environment(self)
        return expression


def defined(value: Any) -> Any:
    """The value itself.

    Raises:
        UndefinedError: where there is none, which says why.
    """
    if isinstance(value, Undefined):
        str(value)
    return value


def _check_count(count: float) -> None:
    if abs(count) > MAX_COUNT:
        raise SecurityError(f"a template may not make more than {MAX_COUNT:,} of something")


def _check_format(text: str) -> None:
    if _WIDTH.search(text):
        raise SecurityError("a template may not format to such a width")


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    def filter_(*args: Any, **kwargs: Any) -> Any:
        for argument in (*args[1:], *kwargs.values()):
            if isinstance(argument, int):
                _check_count(argument * (100 if function.__name__ == "do_round" else 1))
        return function(*args, **kwargs)

    for name in ("jinja_pass_arg", "__name__"):
        if hasattr(function, name):
            setattr(filter_, name, getattr(function, name))
    return filter_


def _bounded_format(function: Callable[..., Any]) -> Callable[..., Any]:
    def filter_(value: str, *args: Any, **kwargs: Any) -> Any:
        _check_format(value)
        return function(value, *args, **kwargs)

    return filter_


def _bounded_range(*args: int) -> range:
    numbers = range(*args)
    _check_count(len(numbers))
    return numbers


class _Encoded(str):
    """Text that is percent-encoded already."""


class UrlSandbox(Sandbox):
    """The same for a part of a URL: what a place comes to stays in the place."""

    counts_output = True

    def __init__(self) -> None:
        super().__init__()
        self.finalize = _encoded
        self.filters["urlencode"] = _url_encoded


def _encoded(value: Any) -> str:
    if isinstance(value, _Encoded):
        return value
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return _Encoded(quote(text, safe="", errors="replace"))


def _url_encoded(value: Any) -> str:
    """As Jinja2's own, but for the slash, which would begin another part of a path."""
    if isinstance(value, Mapping):
        return _Encoded(do_urlencode(value))
    return _encoded(value)


SANDBOX = Sandbox()
"""The one environment; it keeps nothing of a template."""
URL_SANDBOX = UrlSandbox()
"""That of the parts of URLs."""
