"""What has to be known of a spec before its test is run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from runner.error import UsageError
from runner.json_text import parse
from runner.spec.load import load
from runner.spec.loaded import Loaded
from runner.spec.node import Source, scalars

_START = 1 << 20
"""Bytes of a log's first line that are looked at."""


@dataclass(slots=True, frozen=True)
class Look:
    """What a spec says about its own test."""

    expects: bool = True
    """Whether something is expected of it."""
    alone: bool = True
    """Whether it can be run as it is: its inputs have defaults, and it has a prompt."""
    uses: frozenset[str] = frozenset()
    """Real paths of the specs that it extends, and of its agents."""
    line: int = 1
    """Of its expectations, counted from 1; 1 where it has none of its own."""


def look(path: str) -> Look:
    """Look at a spec. One that is wrong expects something: its test tells what is wrong."""
    try:
        loaded = load(path)
    except UsageError:
        return Look()
    return Look(expects(loaded), _is_complete(loaded), _uses(loaded), _line(loaded))


def expects(loaded: Loaded) -> bool:
    """Whether something is expected of a spec, or of one of its tasks."""
    spec = loaded.spec
    tasks = any(task.expect for task in spec.follow_ups.tasks)
    return bool(spec.expect) or spec.output is not None or tasks


def _is_complete(loaded: Loaded) -> bool:
    given = all(known.default is not None for known in loaded.inputs.values())
    return given and loaded.spec.prompt is not None


def _uses(loaded: Loaded) -> frozenset[str]:
    own = _real(loaded.source)
    sources = {
        node.place.source for each in loaded.everything() for _, node in scalars(each.root, "")
    }
    return frozenset(map(_real, sources)) - {own}


def _real(source: Source) -> str:
    return os.path.realpath(os.path.join(source.folder, os.path.basename(source.name)))


def _line(loaded: Loaded) -> int:
    key = "expect" if loaded.spec.expect else "output"
    place = loaded.place(key, key=True)
    return place.line if place.source == loaded.source else 1


def log_beside(path: Path) -> Path | None:
    """The recorded log beside a spec, whole or broken. Other data of that name is none."""
    log = log_path(path)
    try:
        if log.exists() and not log.is_file():
            return None  # such as a pipe, which may never say anything
        with log.open("rb") as file:
            first = file.readline(_START)
    except FileNotFoundError:
        return None
    except OSError:
        return log  # reading it tells what is wrong
    if b'"run_start"' in first[:200]:
        return log
    try:
        parse(first.decode())
    except ValueError:
        return log
    return None


def log_path(path: Path) -> Path:
    """Where a spec's recorded log is, or would be."""
    return path.with_suffix(".jsonl")
