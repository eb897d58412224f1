"""How much a template may do: a count of steps, the same on every machine, so that each ends soon.

A step is an item of a loop, a call, an operator or a filter, or so many characters that one of
these gets or gives. What would make something far larger of what is small is counted before that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, cast

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.visitor import NodeTransformer

MAX_STEPS = 3_000_000
"""Steps that rendering one text may take: a few seconds' work."""
COUNTED = "_counted"
"""The filter that counts what passes it; no text can call a filter of such a name."""
_CHARACTERS = 128
"""Characters that count for one step."""
_CALL = 8
"""Steps that a call is worth, besides what it gets and gives."""
_SIZED = frozenset((list, tuple, dict, set, frozenset, range))
_MAKING_MUCH = frozenset(
    (
        *("%", "expandtabs", "format", "format_map", "indent", "join", "replace", "translate"),
        *("wordwrap",),
    )
)
"""Methods and filters that can make much of little."""
_WRITING = frozenset(
    ("escape", "forceescape", "e", "pprint", "string", "tojson", "urlencode", "xmlattr")
)
"""Filters that write a value with all that is in it, which may stand in it many times."""

_left: ContextVar[list[int] | None] = ContextVar("steps_left", default=None)
"""Of the text that is being rendered; None where nothing is, as when one is compiled."""


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Count the steps of what is rendered inside, from none."""
    token = _left.set([MAX_STEPS])
    try:
        yield
    finally:
        _left.reset(token)


def take(steps: int) -> None:
    """Count steps.

    Raises:
        SecurityError: where these are more than are left.
    """
    left = _left.get()
    if left is None:
        return
    left[0] -= steps
    if left[0] < 0:
        raise SecurityError(f"it takes more than {MAX_STEPS:,} steps; let it do less")


def spend(value: Any, each: int = 1) -> Any:
    """Count what is gone through with a value.

    Args:
        value: Any; what gives its items only once is counted when it gives them.
        each: Steps for an item.

    Returns:
        The value; in place of an iterator one that counts.
    """
    kind = type(value)
    if kind is str:
        take(1 + len(value) // _CHARACTERS)
    elif kind in _SIZED:
        take(1 + len(value) * each)
    elif kind.__module__ == "builtins" and hasattr(kind, "__next__"):
        return _counting(value, each)
    elif isinstance(value, (str, bytes)):
        take(1 + len(value) // _CHARACTERS)
    else:
        take(1)
    return value


def _counting(items: Iterator[Any], each: int) -> Iterator[Any]:
    for item in items:
        take(each)
        yield spend(item) if isinstance(item, str) else item


def counted(value: Any, each: int = 1) -> Any:
    """The filter that stands where a text itself goes through something; 0: through all of it."""
    return spend(value, each) if each else spend_all(value)


def spend_all(value: Any) -> Any:
    """Count a value with all that is in it, as often as it stands there."""
    if type(value) not in _SIZED:
        return spend(value)
    todo = [value]
    while todo:
        one = todo.pop()
        spend(one)
        if type(one) is dict:
            todo += one.values()
        elif type(one) in (list, tuple):
            todo += one
    return value


def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter or test of a name, which counts what it gets and gives."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0  # what Jinja2 passes by itself

    def filter_(*args: Any, **kwargs: Any) -> Any:
        given = [*args]
        for place in range(first, len(given)):
            given[place] = spend(given[place])
        if name in _MAKING_MUCH and len(given) > first:
            foresee(name, given[first], [*given[first + 1 :], *kwargs.values()])
        elif name in _WRITING and len(given) > first:
            spend_all(given[first])
        return spend(function(*given, **kwargs))

    for attribute in ("jinja_pass_arg", "__name__"):
        if hasattr(function, attribute):
            setattr(filter_, attribute, getattr(function, attribute))
    return filter_


def called(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Count a call of a function or a method; gives its arguments."""
    take(_CALL)
    owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
    if isinstance(owner, (str, bytes, list, tuple)):
        spend(owner)
        if name in _MAKING_MUCH:
            foresee(name, owner, [*args, *kwargs.values()])
    return tuple(map(spend, args))


def foresee(name: str, value: Any, args: list[Any]) -> None:
    """Count what a method or a filter is about to make, of those that can make much of little."""
    longest = max((len(one) for one in args if isinstance(one, (str, bytes))), default=0)
    largest = max((one for one in args if isinstance(one, int)), default=0)
    size = 0
    if name == "join":
        size = _joined(value, args)
    elif not isinstance(value, str):
        return
    elif name == "replace" and len(args) > 1 and isinstance(args[0], str):
        size = value.count(args[0]) * len(str(args[1]))
    elif name in ("format", "format_map", "%"):
        longest = max((len(str(spend_all(one))) for one in _all(args)), default=0)
        size = (value.count("{") + value.count("%")) * longest
    elif name in ("indent", "wordwrap"):
        size = (value.count("\n") + len(value) // 8 + 1) * max(longest, largest)
    elif name == "expandtabs":
        size = value.count("\t") * largest
    elif name == "translate":
        size = len(value) * max((len(str(spend_all(one))) for one in _all(args)), default=0)
    take(size // _CHARACTERS)


def _all(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, (list, tuple)):
            yield from value
        else:
            yield value


def _joined(value: Any, args: list[Any]) -> int:
    """Characters of what is joined: by a filter a list with a text, by a method the reverse."""
    items, between = (value, args) if isinstance(value, (list, tuple)) else (args[:1], [value])
    if len(items) == 1 and isinstance(items[0], (list, tuple)):
        items = items[0]
    texts = sum(len(item) for item in items if isinstance(item, str))
    longest = max((len(one) for one in between if isinstance(one, str)), default=0)
    spend_all(items)
    return texts + len(items) * longest


def written(value: Any) -> Any:
    """What goes into the text: a value that is no text yet is counted with all that is in it."""
    return spend_all(value) if type(value) in _SIZED else value


class Counting(NodeTransformer):
    """Has a syntax tree count what no filter, call or operator counts: loops, outputs, slices.

    Args:
        counts_output: Whether all that is written is counted, and not only what is kept: the rest
            leaves in pieces, and who takes them sees to how many they are.
    """

    def __init__(self, *, counts_output: bool = False) -> None:
        self._counts_output = counts_output

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - Jinja2's name
        """Count each item, with the text that stands in the loop."""
        text = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        node.iter = _through(cast("nodes.Expr", node.iter), 1 + text // _CHARACTERS)
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802
        """Count what is written."""
        self.generic_visit(node)
        if self._counts_output:
            node.nodes = [
                one if isinstance(one, nodes.TemplateData) else _through(one, 0)
                for one in node.nodes
            ]
        return node

    def _keeping(self, node: nodes.Node) -> nodes.Node:
        """Count what is written in a node that keeps it."""
        before, self._counts_output = self._counts_output, True
        self.generic_visit(node)
        self._counts_output = before
        return node

    visit_AssignBlock = visit_Macro = visit_CallBlock = visit_FilterBlock = _keeping  # noqa: N815

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        """Count what ``~`` makes of texts, and of all that is no text yet."""
        self.generic_visit(node)
        node.nodes = [_through(one, 0) for one in node.nodes]
        return _through(node)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        """Count a part that is copied."""
        self.generic_visit(node)
        return _through(node) if isinstance(node.arg, nodes.Slice) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        """Count what is gone through to compare."""
        self.generic_visit(node)
        for operand in node.ops:
            operand.expr = _through(operand.expr, 0)
        return node


def _through(node: nodes.Expr, each: int = 1) -> nodes.Expr:
    args: list[nodes.Expr] = [nodes.Const(each, lineno=node.lineno)] if each != 1 else []
    return nodes.Filter(node, COUNTED, args, [], None, None, lineno=node.lineno)
