"""Which names a template sees, by the place where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from runner.spec.loaded import Loaded
from runner.spec.node import ListNode, MapNode, Node, ScalarNode, child, split

Scope = Mapping[str, "Scope | None"]
"""The names in a place, and those in each of them; None where they are not known."""

RUN = ("id", "name")
"""What ``run`` has."""
SPEC = ("dir",)
"""What ``spec`` has."""
TASK = ("output", "status", "text")
"""What a task has that is done, among ``tasks`` and as ``task``."""
RESULT = (
    "cost_usd",
    "output",
    "seconds",
    "status",
    "task_id",
    "text",
    "tool_calls",
    "turns",
    "usage",
)
"""What ``result`` has: the run, or the task, that an expectation is held against."""

_TASK_PATH = re.compile(r"follow_ups\.tasks\[(\d+)\]\.(\w+)")
_TOOL_PATH = re.compile(r"(tools\[\d+\])\.")
_BEFORE_ITEMS = ("for_each", "when")


class _Earlier(Mapping[str, "Scope | None"]):
    """The tasks before one, without a copy for each of many."""

    def __init__(self, places: Mapping[str, int], before: int) -> None:
        self._places = places
        self._before = before

    def __getitem__(self, name: str) -> Scope:
        if self._places[name] >= self._before:
            raise KeyError(name)
        return dict.fromkeys(TASK)

    def __iter__(self) -> Iterator[str]:
        return (name for name, place in self._places.items() if place < self._before)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Scopes:
    """The scopes of one spec."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        root = loaded.root
        declared = child(root, "inputs")
        names = declared.entries if isinstance(declared, MapNode) else ()
        self._base: dict[str, Scope | None] = {
            "inputs": {name: None for name in names if not name.startswith("x-")},
            "env": dict.fromkeys(_environment(root, loaded.environment_defaults)),
            "run": dict.fromkeys(RUN),
            "spec": dict.fromkeys(SPEC),
        }
        tasks = child(child(root, "follow_ups"), "tasks")
        self._tasks = list(tasks.items) if isinstance(tasks, ListNode) else []
        ids = [child(task, "id") for task in self._tasks]
        self.tasks = {"main": -1}
        """The place of each task in the chain, by its id."""
        for place, node in enumerate(ids):
            if isinstance(node, ScalarNode):
                self.tasks.setdefault(node.text, place)

    def of(self, path: str, extra: tuple[str, ...]) -> Scope:
        """The names that are seen at a PATH, with those that its own kind of text sees."""
        scope = dict(self._base)
        scope.update({name: self._extra(name, path) for name in extra})
        match = _TASK_PATH.match(path)
        if match and "result" not in extra:
            index = int(match[1])
            scope["tasks"] = _Earlier(self.tasks, index)
            loops = child(self._tasks[index], "for_each") is not None
            if loops and match[2] not in _BEFORE_ITEMS:
                scope["item"] = None
        return scope

    def _extra(self, name: str, path: str) -> Scope | None:
        if name == "task":
            return dict.fromkeys(TASK)
        if name == "result":
            return dict.fromkeys(RESULT)
        if name == "args" and (match := _TOOL_PATH.match(path)):
            return _arguments(child(_at(self._loaded.root, match[1]), "parameters"))
        return None


def _at(root: Node, path: str) -> Node | None:
    node: Node | None = root
    for step in split(path) or ():
        node = child(node, step)
    return node


def _environment(root: Node, defaults: dict[str, str]) -> list[str]:
    """The names that ``env`` lists; gathers those that have a default."""
    names = []
    listed = child(root, "env")
    for item in listed.items if isinstance(listed, ListNode) else ():
        name, default = child(item, "env") or item, child(item, "default")
        if isinstance(name, ScalarNode):
            names.append(name.text)
            if isinstance(default, ScalarNode):
                defaults[name.text] = default.text
    return names


def _arguments(parameters: Node | None) -> Scope | None:
    """The arguments of a tool, where its schema says for sure that there are no others."""
    more = child(parameters, "additionalProperties")
    properties = child(parameters, "properties")
    closed = isinstance(more, ScalarNode) and more.value is False
    if not closed or child(parameters, "patternProperties"):
        return None
    return dict.fromkeys(properties.entries) if isinstance(properties, MapNode) else None
