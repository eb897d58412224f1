"""A spec that was loaded, and what later stages ask of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.error import Fault
from runner.spec import inputs
from runner.spec.file import locate
from runner.spec.model import Input, Spec
from runner.spec.node import MapNode, Node, Place, Source, child, join, split


@dataclass(slots=True, eq=False, repr=False)
class EnvironmentUse:
    """A name of the environment whose value is used."""

    name: str
    path: str
    place: Place
    default: str | None = None
    """Its value where it is not set; None: it has to be."""


@dataclass(slots=True, eq=False, repr=False)
class Loaded:
    """A spec with all that is known about its text. Paths in it are as they were written."""

    source: Source
    """Its file, as a person knows it; for a plan, what it was taken from."""
    data: bytes
    """The file's bytes; empty for what is no file."""
    root: Node
    """The whole text, what it extends included."""
    spec: Spec
    """What it says, the text of files that stand for a value included."""
    name: str
    """What it is called: its own name, or the file's stem."""
    inputs: dict[str, Input] = field(default_factory=dict)
    """The inputs that it declares."""
    included: dict[str, Node] = field(default_factory=dict)
    """By PATH: what came from a file that stands for a value."""
    agents: dict[str, Loaded] = field(default_factory=dict)
    """By the PATH that names it, such as ``tools[1].agent``: the other specs that it uses."""
    environment: list[EnvironmentUse] = field(default_factory=list)
    """Where names of the environment are used, in the order of the text."""
    environment_defaults: dict[str, str] = field(default_factory=dict)
    """Values for names that ``env`` lists and that need not be set."""
    warnings: list[Fault] = field(default_factory=list)
    """What should be looked at, though nothing is wrong."""

    @property
    def sha256(self) -> str:
        """Of the file's bytes, in hexadecimal."""
        import hashlib

        return hashlib.sha256(self.data).hexdigest()

    @property
    def file(self) -> str:
        """The path of its file, as it was given."""
        return self.source.name

    @property
    def folder(self) -> str:
        """The full path of its file's folder; ``spec.dir`` in templates."""
        return self.source.folder

    def place(self, path: str, *, key: bool = False) -> Place:
        """Where a PATH stands; where there is no such thing, the place of what is around it.

        Args:
            path: Such as ``tools[2].python``.
            key: Whether the key is meant rather than the value.
        """
        node, place = self.root, self.root.place
        here = ""
        for step in split(path) or ():
            below = child(node, step)
            if below is None:
                break
            here = join(here, step)
            place = below.place
            if key and isinstance(node, MapNode) and isinstance(step, str):
                place = node.keys.get(step, place)
            node = self.included.get(here, below)
        return place

    def fault(self, path: str, message: str, *, key: bool = False, warning: bool = False) -> Fault:
        """A fault about what stands at a PATH, for stages that find one later."""
        return self.place(path, key=key).fault(path, message, warning=warning)

    def where(self, path: str) -> str:
        """A PATH with its place, ``FILE:LINE:COLUMN: PATH``, for errors in the middle of a run."""
        place = self.place(path)
        return f"{place.source.name}:{place.line}:{place.column}: {path}"

    def folder_of(self, path: str) -> str:
        """The full path of the folder that a PATH's text is relative to: that of its own file."""
        return self.place(path).source.folder

    def resolve(self, path: str, name: str) -> str:
        """The full path of a file that is named at a PATH."""
        return locate(self.folder_of(path), name)

    def everything(self) -> Iterator[Loaded]:
        """This spec and all that it uses, each once."""
        seen: list[Loaded] = []
        todo = [self]
        while todo:
            loaded = todo.pop()
            if loaded not in seen:
                seen.append(loaded)
                todo.extend(reversed(loaded.agents.values()))
                yield loaded

    def missing_environment(self, environ: Mapping[str, str]) -> list[Fault]:
        """A fault for each name that is used, not set and has no default, at its first use."""
        faults: dict[str, Fault] = {}
        for loaded in self.everything():
            for use in loaded.environment:
                if use.name in environ or use.default is not None or use.name in faults:
                    continue
                message = f"the environment name {use.name} is not set; set it, or use --env-file"
                faults[use.name] = use.place.fault(use.path, message)
        return list(faults.values())

    def environment_values(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What templates see as ``env``: the listed names that are set or have a default."""
        values = dict(self.environment_defaults)
        for name in self.spec.env:
            name = name if isinstance(name, str) else name.env
            if name in environ:
                values[name] = environ[name]
        return values

    def bind_inputs(
        self, values: Mapping[str, Any] | None = None, texts: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The value of each input.

        Args:
            values: JSON values that were given.
            texts: What was given as text, which is read by the declared type.

        Raises:
            UsageError: for all that is unknown, missing or does not fit, a line each.
        """
        return inputs.bind(self.inputs, values or {}, texts or {})
