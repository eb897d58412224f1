"""Shapes of maps with known keys, of their alternatives, and of what a file may stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.error import did_you_mean, nearest
from runner.spec.mark import Included
from runner.spec.model.map import Map
from runner.spec.node import MapNode, Node, ScalarNode, join
from runner.spec.shape import INVALID, Decoding, NullShape, Shape, TextShape, either, shown

MAX_HINTS = 20
"""For how many unknown keys of a map the nearest known ones are looked up, which takes its time."""


def check_keys(
    node: MapNode,
    path: str,
    known: Iterable[str],
    into: Decoding,
    ignored: Sequence[str] = (),
) -> set[str]:
    """Add a fault for each unknown key; gives the known names that seem to have been meant."""
    meant = set()
    unknown = [
        key
        for key in node.entries
        if key not in known and key not in ignored and not key.startswith("x-")
    ]
    for number, key in enumerate(unknown):
        hint = ""
        if number < MAX_HINTS:
            meant.add(nearest(key, known) or "")
            hint = f"; {did_you_mean(key, known)}"
        into.faults.append(node.keys[key].fault(join(path, key), f"unknown key{hint}"))
    return meant


@dataclass(slots=True, eq=False, repr=False)
class IncludedShape(Shape):
    """A value for which ``{file: PATH}`` may stand."""

    inner: Shape
    mark: Included

    @property
    def wanted(self) -> str:  # type: ignore[override]
        """Both forms."""
        return f"{self.inner.wanted} or {{file: PATH}}"

    def fits(self, node: Node) -> bool:
        """The value itself, or a map."""
        return isinstance(node, MapNode) or self.inner.fits(node)

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """The value, here or from the file."""
        if not isinstance(node, MapNode):
            return self.inner.decode(node, path, into)
        faults = len(into.faults)
        name = node.entries.get("file")
        check_keys(node, path, ("file",), into)
        if name is None and len(into.faults) == faults:
            return into.fault(node, path, f"{self.wanted} is needed, not {shown(node)}")
        if (
            not isinstance(name, ScalarNode)
            or TextShape().read(name, join(path, "file"), into) is INVALID
        ):
            return INVALID
        content = into.include(name, path, self.mark)
        return INVALID if content is None else self.inner.read(content, path, into)


@dataclass(slots=True, eq=False, repr=False)
class FieldShape:
    """A key of a map."""

    name: str
    """Of the class's attribute."""
    shape: Shape
    required: bool


@dataclass(slots=True, eq=False, repr=False)
class ModelShape(Shape):
    """A map with known keys."""

    model: type[Map]
    keys: dict[str, FieldShape] = field(default_factory=dict)
    wanted: str = "a map"

    def rule(self, name: str, default: Any = ()) -> Any:
        """A class variable of the model."""
        return getattr(self.model, name, default)

    def fits(self, node: Node) -> bool:
        """A map of anything."""
        return isinstance(node, MapNode)

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """An instance of the model."""
        if not isinstance(node, MapNode):
            return INVALID
        faults = len(into.faults)
        misspelt = check_keys(node, path, self.keys, into, self.rule("ignored"))
        values: dict[str, Any] = {}
        for key, item in node.entries.items():
            if known := self.keys.get(key):
                values[known.name] = known.shape.read(item, join(path, key), into)
        for key, known in self.keys.items():
            if known.required and key not in node.entries and key not in misspelt:
                into.fault(node, join(path, key), "it is missing, and has no default")
        self._check_rules(node, path, misspelt, into)
        if len(into.faults) > faults or INVALID in values.values():
            return INVALID
        return self.model(**values)

    def _check_rules(self, node: MapNode, path: str, misspelt: set[str], into: Decoding) -> None:
        here = [key for key, item in node.entries.items() if not NullShape().fits(item)]
        if one_of := self.rule("one_of"):
            given = [key for key in here if key in one_of]
            for key in given[1:]:
                message = f'it can\'t stand beside "{given[0]}"; one of {either(one_of)} is needed'
                into.faults.append(node.keys[key].fault(join(path, key), message))
            if not given and not misspelt:
                into.fault(node, path, f"one of {either(one_of)} is needed")
        any_of = self.rule("any_of")
        if any_of and not misspelt and not set(here).intersection(any_of):
            into.fault(node, path, f"{either(any_of)} is needed")
        if needs := self.rule("needs"):
            key, table = needs
            value = node.entries.get(key)
            kind = value.text if isinstance(value, ScalarNode) else ""
            for other in table.get(kind, ()):
                if other not in node.entries and other not in misspelt:
                    into.fault(node, join(path, other), f'it is missing where {key} is "{kind}"')


@dataclass(slots=True, eq=False, repr=False)
class UnionShape(Shape):
    """One of several shapes, told apart by the kind of node, maps by the keys in them."""

    options: list[Shape]
    models: list[ModelShape] = field(default_factory=list)

    @property
    def private(self) -> bool:  # type: ignore[override]
        """Whether any of them is."""
        return any(option.private for option in self.options)

    @property
    def wanted(self) -> str:  # type: ignore[override]
        """All of them."""
        names = dict.fromkeys(o.wanted for o in self.options if not isinstance(o, NullShape))
        return " or ".join(names)

    def fits(self, node: Node) -> bool:
        """Whether any of them does."""
        return any(option.fits(node) for option in self.options)

    def decode(self, node: Node, path: str, into: Decoding) -> Any:
        """The value by the first that fits."""
        if isinstance(node, MapNode) and len(self.models) > 1:
            return self._decode_tagged(node, path, into)
        return next(o for o in self.options if o.fits(node)).decode(node, path, into)

    def _decode_tagged(self, node: MapNode, path: str, into: Decoding) -> Any:
        tags = {model.rule("tag"): model for model in self.models}
        given = [key for key in node.entries if key in tags]
        if given:
            for key in given[1:]:
                message = f'it can\'t stand beside "{given[0]}"; one of {either(tags)} is needed'
                into.faults.append(node.keys[key].fault(join(path, key), message))
            entries = {key: item for key, item in node.entries.items() if key not in given[1:]}
            value = tags[given[0]].decode(MapNode(node.place, entries, node.keys), path, into)
            return INVALID if given[1:] else value
        known = dict.fromkeys(key for model in self.models for key in model.keys)
        for key in node.entries:
            near = None if key in known else nearest(key, [*known])
            if near in tags:
                return tags[near].decode(node, path, into)
        if check_keys(node, path, known, into):
            return INVALID
        return into.fault(node, path, f"one of {either(tags)} is needed")
