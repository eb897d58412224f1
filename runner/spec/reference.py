"""The reference of all keys of a spec, made of the model that loads them.

``python -m runner.spec.reference`` writes ``docs/reference.md``. Nothing imports this at run time.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field
from typing import Any

from runner.bundled import folder
from runner.spec.decode import shape_of, to_json
from runner.spec.mark import (
    AgentFile,
    EnvironmentName,
    Expression,
    File,
    Mark,
    Program,
    Regex,
    Schema,
    Target,
    Template,
    Url,
)
from runner.spec.model import Spec
from runner.spec.model.map import Map
from runner.spec.record import IncludedShape, ModelShape, UnionShape
from runner.spec.schema import notes
from runner.spec.shape import (
    BooleanShape,
    ChoiceShape,
    ListShape,
    MarkedShape,
    NullShape,
    NumberShape,
    PrivateShape,
    Shape,
    TableShape,
    TextShape,
)

FILE = folder("schemas").parent / "docs" / "reference.md"
"""Where the reference stands; there only in a checkout."""

_INTRODUCTION = """\
# Every key of a spec

Made of `runner/spec/model` by `python -m runner.spec.reference`; a test holds the two together.
`pi-run schema spec` prints the same as a JSON Schema, for editors.

A **template** is Jinja2; an **expression** is what could stand between its braces. Keys that begin
with `x-` may stand in any map and are ignored; so is `$schema` at the top. Any other unknown key is
an error.
"""

_MARKS: dict[type[Mark], str] = {
    Template: "template",
    Url: "template of a URL",
    Expression: "expression",
    Regex: "regular expression",
    Schema: "JSON Schema",
    Target: "`PATH.py:NAME` or `package.module:NAME`",
    File: "path",
    AgentFile: "path of a spec",
    EnvironmentName: "environment name",
}


def text() -> str:
    """The reference as it stands in its file."""
    root = shape_of(Spec)
    assert isinstance(root, ModelShape)
    return _Reference(root).text()


class _Reference:
    """The maps of a spec, each with the shortest path at which it stands."""

    def __init__(self, root: ModelShape) -> None:
        self._titles = {root.model: "The spec"}
        self._shapes = [root]
        places = [""]
        # The list grows while it is gone through: nearer maps are named before those in them.
        for shape, place in zip(self._shapes, places, strict=False):
            for key, known in shape.keys.items():
                for below, inner in _models(known.shape, f"{place}.{key}".lstrip(".")):
                    if inner.model not in self._titles:
                        tag = inner.rule("tag")
                        self._titles[inner.model] = f"`{below}`" + (f" with `{tag}`" if tag else "")
                        self._shapes.append(inner)
                        places.append(below)
        tops = list(root.keys)
        order = [tops.index(re.split(r"[.\[]", place)[0]) if place else -1 for place in places]
        pairs = sorted(zip(order, self._shapes, strict=True), key=lambda pair: pair[0])
        self._shapes = [shape for _, shape in pairs]

    def text(self) -> str:
        """All sections."""
        return "\n".join([_INTRODUCTION, *map(self._section, self._shapes)])

    def _section(self, shape: ModelShape) -> str:
        about = " ".join((shape.model.__doc__ or "").split())
        lines = [f"## {self._titles[shape.model]}", "", about, *_rules(shape), ""]
        wider = self._wider(shape)
        if wider:
            more = [f"`{key}`" for key in wider.keys if key not in shape.keys]
            lines += [f"Its keys are those of {self._link(wider)} but for {', '.join(more)}.", ""]
        else:
            lines += [*self._table(shape), ""]
        return "\n".join(lines)

    def _wider(self, shape: ModelShape) -> ModelShape | None:
        """A map before this one that has all its keys, with the same meaning, and more."""
        before = self._shapes[: self._shapes.index(shape)]
        return next((other for other in before if issubclass(other.model, shape.model)), None)

    def _table(self, shape: ModelShape) -> Iterator[str]:
        meanings = notes(shape.model)
        own = inspect.get_annotations(shape.model)
        yield "| key | what stands there | default | meaning |"
        yield "| --- | --- | --- | --- |"
        for key, known in sorted(shape.keys.items(), key=lambda item: item[1].name not in own):
            default = shape.model.fields[known.name]
            kind = self._kind(known.shape)
            if default is not None and _takes_null(known.shape):
                kind += " or `null`"
            cells = (f"`{key}`", kind, _default(default), meanings[known.name])
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    def _kind(self, shape: Shape) -> str:
        """What stands in a place, in words."""
        match shape:
            case MarkedShape(mark=Program()):
                return f"argv: {self._kind(shape.inner)}"
            case MarkedShape():
                return _MARKS[type(shape.mark)]
            case PrivateShape():
                return self._kind(shape.inner)
            case IncludedShape():
                return f"{self._kind(shape.inner)}, or `{{file: PATH}}`"
            case ListShape():
                return f"list of {self._kind(shape.item)}"
            case TableShape():
                return f"map of {self._kind(shape.value)}"
            case UnionShape():
                kinds = [self._kind(o) for o in shape.options if not isinstance(o, NullShape)]
                return " or ".join(dict.fromkeys(kinds))
            case ModelShape():
                return self._link(shape)
        return _plain(shape)

    def _link(self, shape: ModelShape) -> str:
        title = self._titles[shape.model]
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        return f"[{title.replace('` with `', ' with ')}](#{anchor})"


def _models(shape: Shape, path: str) -> Iterator[tuple[str, ModelShape]]:
    """The maps with known keys in a place, each with its path."""
    match shape:
        case MarkedShape() | PrivateShape() | IncludedShape():
            yield from _models(shape.inner, path)
        case ListShape():
            yield from _models(shape.item, f"{path}[]")
        case TableShape():
            yield from _models(shape.value, f"{path}.NAME")
        case UnionShape():
            for option in shape.options:
                yield from _models(option, path)
        case ModelShape():
            yield path, shape


def _plain(shape: Shape) -> str:
    match shape:
        case TextShape():
            return "text"
        case BooleanShape():
            return "`true` or `false`"
        case NumberShape():
            name = "integer" if shape.integer else "number"
            if shape.bound:
                return f"{name} {'>' if shape.bound.exclusive else '≥'} {shape.bound.least}"
            return name
        case ChoiceShape():
            return ", ".join(f"`{option}`" for option in shape.options)
    return "any JSON"


def _takes_null(shape: Shape) -> bool:
    return isinstance(shape, UnionShape) and any(isinstance(o, NullShape) for o in shape.options)


def _default(default: Any) -> str:
    if default is MISSING:
        return "**required**"
    if isinstance(default, Field):
        assert default.default_factory is not MISSING
        default = default.default_factory()
    # That of a map is what its own keys say.
    if default is None or isinstance(default, Map):
        return ""
    return f"`{json.dumps(to_json(default), ensure_ascii=False)}`"


def _rules(shape: ModelShape) -> Iterator[str]:
    """What has to stand in a map, besides the keys that are required."""
    if one_of := shape.rule("one_of"):
        yield f"Exactly one of {_names(one_of)} stands in it."
    if any_of := shape.rule("any_of"):
        yield f"At least one of {_names(any_of)} stands in it."
    if needs := shape.rule("needs"):
        key, table = needs
        for value, others in table.items():
            yield f"Where `{key}` is `{value}`, it needs {_names(others)}."


def _names(keys: tuple[str, ...]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text(), encoding="utf-8")
