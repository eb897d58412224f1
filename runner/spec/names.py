"""What a template or an expression uses, held against what is there where it stands.

All of this is done on its syntax tree: nothing is rendered, and no value is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from jinja2 import TemplateSyntaxError, nodes

from runner.error import did_you_mean, nearest
from runner.spec.sandbox import SANDBOX
from runner.spec.scope import Scope

_KINDS = {"inputs": "input", "env": "environment name", "tasks": "task", "args": "argument"}
MAX_PROBLEMS = 20
"""How many things that are wrong with one template are told."""

MAX_KNOWN = 200
"""Among how many names the one is looked for that may have been meant."""

_NO_FILES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends, nodes.Block)
_MAP_METHODS = frozenset(("get", "items", "keys", "values"))
_IMPLICIT = frozenset(("loop", "self", "caller", "varargs", "kwargs"))


@dataclass(slots=True)
class Problem:
    """Something that is wrong with a template."""

    message: str
    line: int
    """In the template, counted from 1."""


@dataclass(slots=True)
class Use:
    """What a template does, as far as its text tells."""

    problems: list[Problem] = field(default_factory=list)
    environment: dict[str, int] = field(default_factory=dict)
    """The names of ``env`` that must have a value, each with the line of its first use."""


def look_at(
    text: str, scope: Scope, *, expression: bool = False, all_tasks: Collection[str] = ()
) -> Use:
    """Find all that is wrong with a template or an expression.

    Args:
        text: As it stands in the spec.
        scope: The names that there are.
        expression: Whether it is one, without braces.
        all_tasks: The tasks that there are, done or not.
    """
    use = Use()
    try:
        tree = SANDBOX.parse_expression(text) if expression else SANDBOX.parse(text)
        _Look(tree, scope, all_tasks, use).at(tree)
    except TemplateSyntaxError as error:
        what = "expression" if expression else "template"
        hint = "; it stands without braces" if expression and "{{" in text else ""
        message = f"the {what} can't be read: {error.message}{hint}"
        use.problems.append(Problem(message, error.lineno))
    except RecursionError:
        use.problems.append(Problem("the template is nested too deeply", 1))
    except ValueError:  # Jinja2 reads numbers by int()
        use.problems.append(Problem("a number in the template has too many digits", 1))
    return use


class _Look:
    """One walk over a syntax tree."""

    def __init__(
        self, tree: nodes.Node, scope: Scope, all_tasks: Collection[str], use: Use
    ) -> None:
        self._scope = scope
        self._all_tasks = all_tasks
        self._use = use
        # A name that the template sets itself is its own from there on; where exactly is left to
        # the run.
        self._own = _IMPLICIT | {
            name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"
        }
        self._own |= {macro.name for macro in tree.find_all(nodes.Macro)}
        self._tested: set[str] = set()
        for test in tree.find_all(nodes.Test):
            chain = _chain(test.node)
            if test.name in ("defined", "undefined") and len(chain) > 1 and chain[0] == "env":
                self._tested.add(chain[1])

    def at(self, node: nodes.Node, optional: bool = False) -> None:
        """Look at a node and all below it; ``optional`` where it may come to nothing."""
        if len(self._use.problems) >= MAX_PROBLEMS:
            return
        if isinstance(node, _NO_FILES):
            name = type(node).__name__.lower()
            self._tell(node, f'"{name}" is not available: a template is all in one text')
            return
        if isinstance(node, (nodes.Getattr, nodes.Getitem, nodes.Name)):
            if chain := _chain(node):
                self._names(node, chain, optional)
            self._closed(node)
        if isinstance(node, nodes.Filter):
            self._known(node, "filter", node.name, SANDBOX.filters)
            self._attr_filter(node)
            optional = node.name in ("default", "d")
        elif isinstance(node, nodes.Test):
            self._known(node, "test", node.name, SANDBOX.tests)
            optional = node.name in ("defined", "undefined")
        elif not isinstance(node, (nodes.Getattr, nodes.Getitem)):
            optional = False
        for below in _below(node):
            self.at(below, optional)

    def _names(self, node: nodes.Expr, chain: list[str], optional: bool) -> None:
        root = chain[0]
        if root in self._own or root in SANDBOX.globals:
            return
        scope: Scope | None = self._scope
        path = ""
        for name in chain:
            if scope is None or name.startswith("_"):
                return
            if name not in scope:
                early = path == "tasks" and name in self._all_tasks
                self._tell(node, _early(name) if early else _unknown(path, name, scope))
                return
            scope = scope[name]
            path = f"{path}.{name}" if path else name
        if root == "env" and len(chain) > 1 and not optional and chain[1] not in self._tested:
            self._use.environment.setdefault(chain[1], node.lineno)

    def _closed(self, node: nodes.Node) -> None:
        for step in _steps(node):
            if isinstance(step, nodes.Getattr):
                name = step.attr
            else:
                # An item may begin with _, and only what Python hides is never one.
                name = step.arg.value if isinstance(step.arg, nodes.Const) else ""
                name = name if isinstance(name, str) and name.startswith("__") else ""
            if name.startswith("_"):
                self._tell(step, f'"{name}": names that begin with _ are closed to templates')

    def _known(self, node: nodes.Node, kind: str, name: str, known: Mapping[str, object]) -> None:
        if name not in known:
            near = nearest(name, known)
            hint = f'; did you mean "{near}"?' if near else ""
            self._tell(node, f'no {kind} is called "{name}"{hint}')

    def _attr_filter(self, node: nodes.Filter) -> None:
        if node.name == "attr" and node.args and isinstance(node.args[0], nodes.Const):
            name = str(node.args[0].value)
            if name.startswith("_"):
                self._tell(node, f'"{name}": names that begin with _ are closed to templates')

    def _tell(self, node: nodes.Node, message: str) -> None:
        problem = Problem(message, node.lineno)
        if problem not in self._use.problems:
            self._use.problems.append(problem)


def _early(name: str) -> str:
    return f'the task "{name}" is not done here; a task sees those before it'


def _unknown(path: str, name: str, scope: Scope) -> str:
    """What to say of a name that is not there."""
    hint = did_you_mean(name, itertools.islice(scope, MAX_KNOWN))
    if not path:
        return f'"{name}" is not defined here; {hint}'
    if path == "env":
        return f'the environment name "{name}" is not listed under env; {hint}'
    if kind := _KINDS.get(path):
        return f'no {kind} is called "{name}"; {hint}'
    return f'{path} has no "{name}"; {hint}'


def _chain(node: nodes.Node | None) -> list[str]:
    """``["tasks", "main", "text"]`` of ``tasks.main.text``, also with brackets; else nothing."""
    names: list[str] = []
    while True:
        if isinstance(node, nodes.Getattr):
            names.append(node.attr)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
            if not isinstance(node.arg.value, str):
                names.clear()
            else:
                names.append(node.arg.value)
        elif isinstance(node, nodes.Getitem):
            names.clear()
        elif isinstance(node, nodes.Name):
            return [node.name, *reversed(names)]
        else:
            return []
        node = node.node


def _steps(node: nodes.Node) -> Iterator[nodes.Getattr | nodes.Getitem]:
    """Of ``a.b["c"]`` the node of ``c``, then that of ``b``."""
    while isinstance(node, (nodes.Getattr, nodes.Getitem)):
        yield node
        node = node.node


def _below(node: nodes.Node) -> Iterator[nodes.Node]:
    """What is to be looked at below a node: of ``a.b[c]`` only ``c``, as the rest was."""
    called = node.node if isinstance(node, nodes.Call) else None
    if isinstance(called, nodes.Getattr) and called.attr in _MAP_METHODS:
        yield called.node
        yield from (child for child in node.iter_child_nodes() if child is not called)
        return
    if not _chain(node):
        yield from node.iter_child_nodes()
        return
    for step in _steps(node):
        if isinstance(step, nodes.Getitem):
            yield step.arg
