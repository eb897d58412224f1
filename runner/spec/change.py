"""Changes to a spec from the command line: ``--set limits.turns=3``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runner.error import Fault, UsageError
from runner.spec import yaml
from runner.spec.node import (
    ListNode,
    MapNode,
    Node,
    Place,
    ScalarNode,
    Source,
    child,
    from_value,
    one_line,
    split,
)

SET = "--set "
"""What the source of a value is called that came from there, before its PATH."""

_PROVIDER = ["model", "provider"]
_OF_A_PROVIDER = ("api_key", "base_url", "options", "path", "price", "rate")
"""Keys of a model that mean nothing, or something else, to another provider."""


@dataclass(slots=True, eq=False, repr=False)
class Change:
    """A new value for what stands at a PATH."""

    path: str
    steps: list[str | int]
    value: Node


def changes_of(sets: Iterable[str | tuple[str, Any]]) -> list[Change]:
    """What ``--set`` says.

    Args:
        sets: ``PATH=YAML`` each, or a PATH and a JSON value.

    Raises:
        UsageError: for all that can't be read.
    """
    changes: list[Change] = []
    problems: list[str] = []
    for item in sets:
        path, equals, text = item.partition("=") if isinstance(item, str) else (item[0], "=", "")
        path = path.strip()
        steps = split(path)
        if not equals or steps is None or not isinstance(steps[0], str):
            problems.append(f"--set {path}: it is no change; write --set limits.turns=3")
            continue
        place = Place(Source(f"{SET}{path}"), 1, 1)
        faults: list[Fault] = []
        value = _read(text, place, faults) if isinstance(item, str) else from_value(item[1], place)
        problems += [f"--set {path}: {fault.message}" for fault in faults]
        if value is not None:
            changes.append(Change(path, steps, value))
    if problems:
        raise UsageError("\n".join(map(one_line, problems)))
    return changes


def _read(text: str, place: Place, faults: list[Fault]) -> Node | None:
    if text.lstrip().startswith(("{{", "{%", "{#")):
        return ScalarNode(place, text, text)  # the shell has taken the quotes
    if not text.strip():
        return ScalarNode(place, "", None, plain=True)
    return yaml.parse(text.encode("utf-8", "surrogatepass"), place.source, faults)


def told(fault: Fault) -> str:
    """What is wrong with a value that came from ``--set``."""
    inside = "" if fault.file == f"{SET}{fault.path}" else f"{fault.path}: "
    return f"{one_line(fault.file)}: {inside}{fault.message}"


def apply(root: Node, changes: Iterable[Change]) -> Node:
    """A tree with the changes made; the tree that is given stays as it is.

    Another provider of the model gets nothing that was meant for the one before: no key, above
    all. What is set beside it is its own, in whatever order the changes were given.

    Raises:
        UsageError: for a PATH that leads nowhere.
    """
    for change in sorted(changes, key=lambda one: one.steps != _PROVIDER):
        if change.steps == _PROVIDER:
            root = _for_another(root, change.value)
        root = _changed(root, change, change.steps)
    return root


def _for_another(root: Node, provider: Node) -> Node:
    """A spec without what its model's provider has to itself, if `provider` is another one."""
    model = child(root, "model")
    before = child(model, "provider")
    if not isinstance(root, MapNode) or not isinstance(model, MapNode):
        return root
    known = before.value if isinstance(before, ScalarNode) else "scripted"
    if isinstance(provider, ScalarNode) and provider.value == known:
        return root
    kept = [key for key in model.entries if key not in _OF_A_PROVIDER]
    entries = {key: model.entries[key] for key in kept}
    rest = MapNode(model.place, entries, {key: model.keys[key] for key in kept})
    return MapNode(root.place, {**root.entries, "model": rest}, root.keys)


def _changed(node: Node | None, change: Change, steps: list[str | int]) -> Node:
    if not steps:
        return change.value
    step, *rest = steps
    below = _changed(child(node, step), change, rest)
    place = change.value.place
    if isinstance(step, int):
        if not isinstance(node, ListNode) or step >= len(node.items):
            count = len(node.items) if isinstance(node, ListNode) else 0
            path = one_line(change.path)
            raise UsageError(f"--set {path}: there is no item {step}; there are {count}")
        return ListNode(node.place, [*node.items[:step], below, *node.items[step + 1 :]])
    if isinstance(node, MapNode):
        keys = {step: place, **node.keys}
        return MapNode(node.place, {**node.entries, step: below}, keys)
    return MapNode(place, {step: below}, {step: place})
