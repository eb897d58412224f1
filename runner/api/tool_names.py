"""Names of tools in what a spec says of calls: a name that no tool has is most likely misspelt.

None of it is an error: a spec may lay rules over tools that only another one has. But a rule that
can't apply protects nothing, and that should not go unsaid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from runner.error import Fault, nearest
from runner.spec.loaded import Loaded
from runner.spec.model import expect
from runner.spec.model.tool import McpTools

_RULES = ("allow", "ask", "deny")
_PATTERN = frozenset("*?[")


def doubts(loaded: Loaded, names: Mapping[int, Collection[str]]) -> Iterator[Fault]:
    """A warning for each name of a tool, in a spec and all that it uses, that no tool has.

    Args:
        loaded: The spec.
        names: By the ``id`` of each loaded spec, what its tools are called, but for those of MCP
            servers, which tell that only when they are started.
    """
    everything = list(loaded.everything())
    for each in everything:
        # What is expected of a run is held against the calls of all agents in it.
        below = list(each.everything())
        own = _Known(names[id(each)], [each])
        all_ = _Known([name for one in below for name in names[id(one)]], below)
        for path, name in _in_rules(each):
            yield from own.doubt(each, path, name, may_be_elsewhere=True)
        for n, message in enumerate(each.spec.steering.messages):
            if message.after_tool is not None:
                path = f"steering.messages[{n}].after_tool"
                yield from own.doubt(each, path, message.after_tool)
        for path, name in _expected(each):
            elsewhere = path.endswith("tool_not_called")
            yield from all_.doubt(each, path, name, may_be_elsewhere=elsewhere)


class _Known:
    """The names that tools have."""

    def __init__(self, names: Collection[str], specs: Collection[Loaded]) -> None:
        self._names = names
        entries = [entry for one in specs for entry in one.spec.tools]
        self._servers = [f"{one.mcp.name}_" for one in entries if isinstance(one, McpTools)]

    def doubt(
        self, loaded: Loaded, path: str, name: str, *, may_be_elsewhere: bool = False
    ) -> Iterator[Fault]:
        """A warning, where no tool has a name or fits a pattern.

        Args:
            loaded: The spec that names it.
            path: Where.
            name: The name, or a pattern.
            may_be_elsewhere: Whether it is no surprise to have it said of a tool that there is,
                but not in this spec.
        """
        if any(fnmatchcase(known, name) for known in self._names):
            return
        if any(_may_be_of(server, name) for server in self._servers):
            return
        elsewhere = _elsewhere() if may_be_elsewhere else []
        if any(fnmatchcase(known, name) for known in elsewhere):
            return
        near = nearest(name, [*self._names, *elsewhere])
        hint = f'did you mean "{near}"?' if near else f"there are: {', '.join(self._names)}"
        hint = hint if near or self._names else "there is none"
        yield loaded.fault(path, f'no tool here is called "{name}"; {hint}', warning=True)


def _elsewhere() -> list[str]:
    """The tools that any spec can have by their names."""
    from runner.api.tooling import tool_names

    return tool_names()


def _may_be_of(server: str, name: str) -> bool:
    return name.startswith(server) or not _PATTERN.isdisjoint(name)


def _in_rules(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """The tools that permissions and hooks name, each with its PATH."""
    wanted = loaded.spec.permissions
    for verdict in _RULES if wanted is not None else ():
        for n, text in enumerate(getattr(wanted, verdict) or ()):
            yield f"permissions.{verdict}[{n}]", text.partition("(")[0]
    for n, hook in enumerate(loaded.spec.hooks.before_tool_call):
        for key in ("deny", "allow", "set"):
            said = getattr(hook, key)
            if said is not None:
                yield f"hooks.before_tool_call[{n}].{key}.tool", said.tool


def _expected(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """The tools that expectations name, each with its PATH."""
    lists = [("expect", loaded.spec.expect)]
    for n, task in enumerate(loaded.spec.follow_ups.tasks):
        lists.append((f"follow_ups.tasks[{n}].expect", task.expect))
    for at, expectations in lists:
        for n, one in enumerate(expectations):
            called = one.tool_called
            if isinstance(called, expect.ToolCalled):
                yield f"{at}[{n}].tool_called.name", called.name
            elif called is not None:
                yield f"{at}[{n}].tool_called", called
            if one.tool_not_called is not None:
                yield f"{at}[{n}].tool_not_called", one.tool_not_called
