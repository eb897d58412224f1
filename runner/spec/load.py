"""Spec files → a checked spec: what they extend, include and use, and all faults of all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner import json_text
from runner.error import Fault, SpecError, UsageError
from runner.spec import yaml
from runner.spec.change import SET, Change, apply, changes_of, told
from runner.spec.check import Check
from runner.spec.decode import shape_of
from runner.spec.file import Unreadable, locate, read, source_of
from runner.spec.loaded import Loaded
from runner.spec.mark import Included, Target
from runner.spec.model import Spec
from runner.spec.node import (
    ListNode,
    MapNode,
    Node,
    Place,
    ScalarNode,
    Source,
    from_value,
    one_line,
)
from runner.spec.shape import INVALID, Decoding, Found, shown

MAX_CHAIN = 20
"""How many files may extend, or use, one another in a row."""

_Link = tuple[str, str]
"""A file by its full path, and as it is shown."""


def load(
    path: str | os.PathLike[str],
    *,
    sets: Iterable[str | tuple[str, Any]] = (),
    probe: Callable[[str, str], str | None] | None = None,
) -> Loaded:
    """Load a spec with all that it extends, includes and uses.

    Args:
        path: The spec's file.
        sets: Changes to it, as of ``--set``: ``limits.turns=3``, or a PATH and its JSON value.
        probe: Tells what is wrong with Python that is named, from the name and the folder that it
            is relative to. It is asked where the spec is wrong, so that all faults are told at
            once: of one that is not, later stages ask.

    Raises:
        SpecError: with all faults of all files.
        UsageError: if there is no such file, or for what is wrong with a change.
    """
    changes = changes_of(sets)
    session = _Session()
    loaded = session.top(os.fspath(path), changes)
    if wrong := [fault for fault in session.faults if fault.file.startswith(SET)]:
        raise UsageError("\n".join(map(told, wrong)))
    if session.faults or loaded is None:
        if probe is not None:
            session.faults += _target_faults(session, probe)
        raise SpecError(session.faults)
    for each in loaded.everything():
        _pass_on(each)
    return loaded


def _target_faults(session: _Session, probe: Callable[[str, str], str | None]) -> list[Fault]:
    known = {(fault.file, fault.line, fault.column) for fault in session.faults}
    faults = []
    for found in session.targets:
        place = found.node.place
        if (place.source.name, place.line, place.column) in known:
            continue
        if problem := probe(getattr(found.node, "text", ""), place.source.folder):
            faults.append(place.fault(found.path, problem))
    return faults


def _pass_on(loaded: Loaded) -> None:
    """Have all specs that one uses keep to what it may not do: an agent is no way around it."""
    for agent in loaded.everything():
        agent.spec.read_only = agent.spec.read_only or loaded.spec.read_only
        if loaded.spec.sandbox not in (None, "none"):
            agent.spec.sandbox = loaded.spec.sandbox


def load_plan(
    plan: Mapping[str, Any],
    agents: Mapping[str, Loaded] | None = None,
    *,
    name: str = "plan",
    folder: str = ".",
) -> Loaded:
    """A spec from its JSON, as `runner.spec.decode.to_json` gave it; no file is looked at.

    Args:
        plan: The JSON. Its templates may be rendered; they are not looked at either.
        agents: The specs that it uses, by the PATH that names each.
        name: What the plan is called in faults.
        folder: What paths in it are relative to.

    Raises:
        SpecError: where it is no spec.
    """
    source = Source(name, folder)
    root = from_value(plan, Place(source, 1, 1))
    into = Decoding([], lambda _node, _path, _mark: None)
    spec = shape_of(Spec).read(root, "", into)
    if into.faults:
        raise SpecError(into.faults)
    loaded = Loaded(source, b"", root, spec, spec.name or "spec", inputs=spec.inputs)
    loaded.agents.update(agents or {})
    return loaded


def read_data(path: str) -> Any:
    """The value in a YAML or JSON file, such as that of ``--inputs``.

    Raises:
        UsageError: if there is no such file, or it can't be read.
    """
    session = _Session()
    source = source_of(path)
    try:
        node = session.data(read(os.path.abspath(path)), source, "")
    except Unreadable as error:
        raise UsageError(str(error)) from None
    into = Decoding(session.faults, lambda _node, _path, _mark: None)
    value = INVALID if node is None else shape_of(Any).read(node, "", into)
    if session.faults:
        raise SpecError(session.faults)
    return value


@dataclass(slots=True, eq=False, repr=False)
class _Session:
    """One call of `load`: what was read, and what was found."""

    faults: list[Fault] = field(default_factory=list)
    specs: dict[str, Loaded | None] = field(default_factory=dict)
    """By full path: the specs that are loaded."""
    trees: dict[str, Node | None] = field(default_factory=dict)
    """By full path: the tree of a file, laid over what it extends."""
    chain: list[_Link] = field(default_factory=list)
    """The specs that are being loaded."""
    targets: list[Found] = field(default_factory=list)
    """The Python that they name."""

    def top(self, path: str, changes: list[Change]) -> Loaded | None:
        """Load the spec that was asked for."""
        source = source_of(path)
        try:
            data = read(os.path.abspath(path))
        except Unreadable as error:
            raise UsageError(one_line(_not_a_spec(path, error))) from None
        return self.spec(source, os.path.abspath(path), data, changes)

    def spec(self, source: Source, full: str, data: bytes, changes: list[Change]) -> Loaded | None:
        """Load one spec, and those that it uses."""
        self.chain.append((full, source.name))
        try:
            root = self.tree(source, full, data, [])
            loaded = None if root is None else self.decode(source, data, apply(root, changes))
        finally:
            self.chain.pop()
        self.specs[full] = loaded
        return loaded

    def decode(self, source: Source, data: bytes, root: Node) -> Loaded | None:
        """Make a spec of a tree, and check it."""
        included: dict[str, Node] = {}

        def include(name: ScalarNode, path: str, mark: Included) -> Node | None:
            node = self.include(name, path, mark)
            if node is not None:
                included[path] = node
            return node

        into = Decoding(self.faults, include)
        spec = shape_of(Spec).read(root, "", into)
        stem = os.path.splitext(os.path.basename(source.name))[0]
        loaded = Loaded(source, data, root, spec, _name(stem), included=included)
        if spec is not INVALID:
            loaded.name = spec.name or loaded.name
            loaded.inputs = spec.inputs
        self.targets += [found for found in into.found if isinstance(found.mark, Target)]
        Check(loaded, into.found, self.faults, self.agent).run()
        return None if spec is INVALID else loaded

    def agent(self, name: str, place: Place, path: str) -> Loaded | None:
        """Load a spec that another one names; None where it can't be."""
        full = locate(place.source.folder, name)
        if any(full == busy for busy, _ in self.chain):
            names = [each for _, each in self.chain]
            start = next(n for n, (busy, _) in enumerate(self.chain) if busy == full)
            circle = " → ".join([*names[start:], names[start]])
            self.faults.append(place.fault(path, f"the specs use each other in a cycle: {circle}"))
            return None
        if full in self.specs:
            return self.specs[full]
        if len(self.chain) >= MAX_CHAIN:
            message = f"more than {MAX_CHAIN} specs use one another in a row"
            self.faults.append(place.fault(path, message))
            return None
        data = self.bytes(full, place, path)
        if data is None:
            return None
        return self.spec(source_of(name, place.source), full, data, [])

    # --- trees ------------------------------------------------------------------------------------

    def tree(self, source: Source, full: str, data: bytes, below: list[_Link]) -> Node | None:
        """A file's tree laid over those that it extends; None where one of them can't be read."""
        if full not in self.trees:
            root = yaml.parse(data, source, self.faults)
            if isinstance(root, MapNode) and "extends" in root.entries:
                root = self.extended(root, [*below, (full, source.name)])
            self.trees[full] = root
        return self.trees[full]

    def extended(self, root: MapNode, chain: list[_Link]) -> Node | None:
        """A tree laid over those that it names, the last of which lies on top of the others."""
        named = root.entries["extends"]
        names = named.items if isinstance(named, ListNode) else [named]
        if not all(isinstance(name, ScalarNode) and name.value is not None for name in names):
            return root  # decoding tells what is wrong with it
        root = MapNode(root.place, dict(root.entries), dict(root.keys))
        del root.entries["extends"], root.keys["extends"]
        for index, name in reversed([*enumerate(names)]):
            path = "extends" if names[0] is named else f"extends[{index}]"
            base = self.base(name, path, chain) if isinstance(name, ScalarNode) else None
            if base is None:
                return None
            root = lay(root, base)
        return root

    def base(self, name: ScalarNode, path: str, chain: list[_Link]) -> MapNode | None:
        """The tree of a file that another one extends."""
        place = name.place
        full = locate(place.source.folder, name.text)
        source = source_of(name.text, place.source)
        if any(full == busy for busy, _ in chain):
            circle = " → ".join([*(each for _, each in chain), source.name])
            message = f"the files extend each other in a cycle: {circle}"
            self.faults.append(place.fault(path, message))
            return None
        if len(chain) >= MAX_CHAIN:
            message = f"more than {MAX_CHAIN} files extend one another in a row"
            self.faults.append(place.fault(path, message))
            return None
        data = self.bytes(full, place, path)
        tree = None if data is None else self.tree(source, full, data, chain)
        if tree is None or isinstance(tree, MapNode):
            return tree
        self.faults.append(tree.place.fault("", f"a map is needed, not {shown(tree)}"))
        return None

    def include(self, name: ScalarNode, path: str, mark: Included) -> Node | None:
        """What a file has that stands for a value."""
        place = name.place
        data = self.bytes(locate(place.source.folder, name.text), place, f"{path}.file")
        if data is None:
            return None
        source = source_of(name.text, place.source)
        if mark.content == "data":
            return self.data(data, source, path)
        text = yaml.decode(data, source, self.faults, path)
        return None if text is None else ScalarNode(Place(source, 1, 1), text, text)

    def data(self, data: bytes, source: Source, path: str) -> Node | None:
        """The tree of a YAML file, or of a JSON one, which may hold what YAML can't."""
        if not source.name.endswith(".json"):
            return yaml.parse(data, source, self.faults, path)
        place = Place(source, 1, 1)
        text = yaml.decode(data, source, self.faults, path)
        if text is None:
            return None
        try:
            return from_value(json_text.parse(text), place)
        except (ValueError, RecursionError) as error:
            self.faults.append(place.fault(path, f"it is no JSON: {error}"))
            return None

    def bytes(self, full: str, place: Place, path: str) -> bytes | None:
        """A file's bytes; None where it can't be read, which is a fault where it is named."""
        try:
            return read(full)
        except Unreadable as error:
            self.faults.append(place.fault(path, str(error)))
            return None


def lay(upper: MapNode, lower: MapNode) -> MapNode:
    """One map over another: what is in both is merged if both are maps, else the upper one's."""
    merged = MapNode(upper.place, {**lower.entries}, {**lower.keys, **upper.keys})
    for key, value in upper.entries.items():
        below = lower.entries.get(key)
        if isinstance(value, MapNode) and isinstance(below, MapNode):
            value = lay(value, below)
        merged.entries[key] = value
    return merged


def _name(stem: str) -> str:
    """A file's stem as a spec's name."""
    return re.sub(r"[^a-z0-9_-]+", "-", stem.lower()).lstrip("-_") or "spec"


def _not_a_spec(path: str, error: Unreadable) -> str:
    if os.path.isdir(path):
        return f"{path} is a folder; name a spec in it, such as {os.path.join(path, 'spec.yaml')}"
    if not os.path.exists(path):
        return f"there is no spec {path}; look at its path"
    return str(error)
