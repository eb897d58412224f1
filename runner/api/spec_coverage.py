"""Which parts of a spec no log ever exercised."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.api.coverage_items import Item, Json, items_of
from runner.api.coverage_log import LogCoverage
from runner.api.coverage_scope import Scope
from runner.error import LogError, SpecError, UsageError
from runner.log.find import find, logs
from runner.log.read import Warn, read
from runner.spec.decode import to_json
from runner.spec.load import load, load_plan
from runner.spec.loaded import Loaded
from runner.spec.node import ScalarNode, child


@dataclass(slots=True, eq=False)
class CoveredSpec:
    """A spec with all in it that can be exercised."""

    loaded: Loaded
    items: list[Item]
    by_key: dict[tuple[Any, ...], Item]

    @classmethod
    def of(cls, loaded: Loaded, omit: Collection[str]) -> CoveredSpec:
        """Those of a spec that was loaded, but for some kinds."""
        found = items_of(to_json(loaded.spec), lambda path: _is_written(loaded, path))
        return cls(
            loaded,
            [item for item in found if item.kind not in omit],
            {item.key: item for item in found},
        )


@dataclass(slots=True)
class Coverage:
    """What logs exercised of a spec and of those that it uses."""

    specs: list[CoveredSpec]
    logs: list[str] = field(default_factory=list)

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return sum(len(item.parts) for spec in self.specs for item in spec.items)

    @property
    def exercised(self) -> int:
        """How many of them a run exercised."""
        return sum(sum(item.parts.values()) for spec in self.specs for item in spec.items)

    @property
    def percent(self) -> float:
        """How many of a hundred; all, where there is nothing."""
        return 100 * self.exercised / self.parts if self.parts else 100.0

    def as_json(self) -> dict[str, Any]:
        """As the command gives it."""
        return {
            "spec": self.specs[0].loaded.file,
            "logs": self.logs,
            "parts": self.parts,
            "exercised": self.exercised,
            "percent": round(self.percent, 2),
            "items": [_as_json(spec, item) for spec in self.specs for item in spec.items],
        }


def coverage(
    spec: str, names: Sequence[str], *, omit: Collection[str] = (), warn: Warn | None = None
) -> Coverage:
    """Hold logs against a spec.

    Args:
        spec: The spec's file.
        names: Logs: paths, globs, run ids or their beginnings, ``last``; folders with all below.
        omit: Kinds of items that don't count.
        warn: Is told what a person should know of the logs.

    Raises:
        SpecError: with all that is wrong with the spec.
        UsageError: where there is no such log, or one is of another spec.
        LogError: where one can't be read.
    """
    warn = warn or (lambda text: None)
    found = Coverage([CoveredSpec.of(each, omit) for each in load(spec).everything()])
    for path in _logs_of(found, names, warn):
        _read(found, path, warn)
        found.logs.append(path)
    return found


def _read(found: Coverage, path: str, warn: Callable[[str], None]) -> None:
    """Take a log into account."""
    events = (event for _, event in read(path, warn))
    start = next(events)
    top = _spec_of(found, path, start)
    walk = LogCoverage(lambda plan: _bind(found, path, plan, top))
    walk.see(start)
    if start["spec"]["sha256"] != top.loaded.sha256:
        warn(
            f"{path} is of another version of {top.loaded.file}; "
            "what it did counts where the same still stands"
        )
    for event in events:
        walk.see(event)


def _spec_of(found: Coverage, path: str, start: Json) -> CoveredSpec:
    """The spec that a log is of."""
    name, sha256 = start["spec"]["name"], start["spec"]["sha256"]
    named = [spec for spec in found.specs if spec.loaded.name == name]
    same = [spec for spec in named if spec.loaded.sha256 == sha256]
    if not named:
        known = ", ".join(dict.fromkeys(spec.loaded.name for spec in found.specs))
        raise UsageError(
            f'{path} is a log of the spec "{name}", which is none of these: {known}; leave it out'
        )
    if not same:
        _hold_for_a_version(path, start, named[0])
    return (same or named)[0]


def _hold_for_a_version(path: str, start: Json, spec: CoveredSpec) -> None:
    """Refuse the log of a spec that has nothing in common with this one but the name."""
    file = start["spec"].get("path")
    if not spec.by_key or (file and os.path.basename(file) == os.path.basename(spec.loaded.file)):
        return
    then = items_of(_spec_in(path, start["plan"]))
    if then and not any(item.key in spec.by_key for item in then):
        raise UsageError(
            f"{path} is a log of another spec of the same name, {file or 'a file unknown'}: "
            f"nothing of it stands in {spec.loaded.file}; leave it out"
        )


# --- a log's own spec -----------------------------------------------------------------------------


def _bind(found: Coverage, path: str, plan: Json, now: CoveredSpec | None) -> Scope:
    """What a plan has of today's specs."""
    spec = _spec_in(path, plan)
    by_key: Mapping[tuple[Any, ...], Item] = now.by_key if now is not None else {}
    items = {item.path: by_key[item.key] for item in items_of(spec) if item.key in by_key}
    resolved = plan.get("resolved") or {}
    scope = Scope(spec, items, tools=dict(_tool_paths(spec, resolved)))
    for at, other in (resolved.get("agents") or {}).items():
        base = at.removesuffix(".agent")
        used = _used_at(found, now, items.get(base), other)
        scope.agents.append((base, _bind(found, path, other, used)))
    return scope


def _spec_in(path: str, plan: Json) -> Json:
    """The spec that a plan holds, in the form of today."""
    given = {key: value for key, value in plan.items() if key != "resolved"}
    try:
        loaded = load_plan(given, name=path)
    except (SpecError, KeyError, TypeError) as error:
        raise LogError(f"{path}: line 1: its plan is no spec: {error}") from None
    spec: dict[str, Any] = to_json(loaded.spec)
    return {**spec, "name": plan.get("name")}


def _used_at(
    found: Coverage, now: CoveredSpec | None, item: Item | None, other: Json
) -> CoveredSpec | None:
    """Today's spec of an agent: the one that the same item uses, else one of the same name."""
    if now is not None and item is not None:
        loaded = now.loaded.agents.get(f"{item.path}.agent")
        for spec in found.specs:
            if spec.loaded is loaded:
                return spec
    named = (spec for spec in found.specs if spec.loaded.name == other.get("name"))
    return next(named, None)


def _tool_paths(spec: Json, resolved: Json) -> Iterator[tuple[str, str]]:
    """Each tool's name as the model knows it, with the PATH of its entry."""
    servers: Mapping[str, Mapping[str, str]] = resolved.get("mcp") or {}
    others = {name for names in servers.values() for name in names}
    names = (tool["name"] for tool in resolved.get("tools") or () if tool["name"] not in others)
    for n, entry in enumerate(spec.get("tools") or ()):
        path = f"tools[{n}]"
        if isinstance(entry, Mapping) and "mcp" in entry:
            yield from ((name, path) for name in servers.get(path, ()))
        elif (name := next(names, None)) is not None:
            yield name, path


# --- logs by name ---------------------------------------------------------------------------------


def _logs_of(found: Coverage, names: Sequence[str], warn: Callable[[str], None]) -> Iterator[str]:
    """The paths of logs, each once."""
    seen: set[str] = set()
    for name in names:
        for path in _paths_of(found, name, warn):
            if (real := os.path.realpath(path)) not in seen:
                seen.add(real)
                yield path


def _paths_of(found: Coverage, name: str, warn: Callable[[str], None]) -> Iterator[str]:
    if os.path.isdir(name):
        yield from _in_folder(found, name, warn)
    elif not os.path.lexists(name) and glob.has_magic(name):
        paths = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
        if not paths:
            raise UsageError(f"{name}: there is no such log")
        yield from paths
    else:
        yield str(find(name))


def _in_folder(found: Coverage, folder: str, warn: Callable[[str], None]) -> Iterator[str]:
    """The logs in a folder, and in those below it, that are of the specs at hand."""
    known = {spec.loaded.name for spec in found.specs}
    others: dict[str, int] = {}
    none = True
    for below in sorted(path for path, _, _ in os.walk(folder)):
        for entry in sorted(logs(Path(below)), key=lambda entry: entry.path):
            if entry.name not in known:
                others[entry.name] = others.get(entry.name, 0) + 1
                continue
            none = False
            yield str(entry.path)
    told = ", ".join(f"{name} ({count})" for name, count in sorted(others.items()))
    if none:
        of = f"; it has those of {told}" if told else ""
        raise UsageError(f"{folder}: there is no log of {', '.join(sorted(known))} in it{of}")
    if told:
        warn(f"{folder} has logs of other specs too, which are left out: {told}")


# --- items ----------------------------------------------------------------------------------------


def _is_written(loaded: Loaded, path: str) -> bool:
    node: Any = loaded.root
    for step in path.split("."):
        node = child(node, step)
    return node is not None and not (isinstance(node, ScalarNode) and node.value is None)


def _as_json(spec: CoveredSpec, item: Item) -> dict[str, Any]:
    place = spec.loaded.place(item.path)
    return {
        "file": place.source.name,
        "line": place.line,
        "column": place.column,
        "path": item.path,
        "kind": item.kind,
        "name": item.name,
        "spec": spec.loaded.file,
        "parts": dict(item.parts),
        **item.outcomes,
    }
