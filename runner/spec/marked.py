"""What has to hold of a marked value by itself: that it can be read, and that its file is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from runner.error import Fault
from runner.spec.decode import shape_of
from runner.spec.file import Unreadable, locate, must_exist
from runner.spec.json_schema import problem_of
from runner.spec.mark import File, Program, Regex, Schema, Target
from runner.spec.node import ListNode, Place, ScalarNode, child, join
from runner.spec.shape import INVALID, Decoding, Found
from runner.spec.template import is_plain


def faults(found: Found) -> Iterator[Fault]:
    """What is wrong with a marked value."""
    yield from _CHECKS[type(found.mark)](found)


def _regex(found: Found) -> Iterator[Fault]:
    try:
        re.compile(getattr(found.node, "text", ""))
    except (re.error, OverflowError, RecursionError) as error:
        yield found.node.place.fault(found.path, f"it is no regular expression: {error}")


def _schema(found: Found) -> Iterator[Fault]:
    value = shape_of(Any).read(found.node, found.path, Decoding([], lambda *_: None))
    if value is INVALID or (problem := problem_of(value)) is None:
        return
    steps, message = problem
    path, node = found.path, found.node
    for step in steps:
        below = child(node, step)
        if below is None:
            break
        path, node = join(path, step), below
    yield node.place.fault(path, f"this is no valid JSON Schema: {message}")


def _file(found: Found) -> Iterator[Fault]:
    if isinstance(found.node, ScalarNode):
        yield from _missing(found.node.text, found.node.place, found.path)


def _program(found: Found) -> Iterator[Fault]:
    items = found.node.items if isinstance(found.node, ListNode) else []
    if not items:
        yield found.node.place.fault(found.path, "it is empty; name a program")
        return
    name = getattr(items[0], "text", "")
    if name.startswith(("./", "../")) and is_plain(name):
        yield from _missing(name, items[0].place, join(found.path, 0))


def _target(found: Found) -> Iterator[Fault]:
    """Whether the file is there; what is in it is for a later stage."""
    text, place = getattr(found.node, "text", ""), found.node.place
    file, colon, name = text.rpartition(":")
    if not colon:
        file, name = text, ""
    if file.endswith(".py") or "/" in file:
        if name:
            yield from _missing(file, place, found.path)
        else:
            yield place.fault(found.path, f"the function is missing; write {file}:NAME")
    elif not re.fullmatch(r"\w+(\.\w+)*", file) or not (name or "." in file):
        message = f'"{text}" is no function; write FILE.py:NAME, or package.module:NAME'
        yield place.fault(found.path, message)


def _missing(name: str, place: Place, path: str) -> Iterator[Fault]:
    try:
        must_exist(locate(place.source.folder, name))
    except Unreadable as error:
        yield place.fault(path, str(error))


_CHECKS: dict[type, Callable[[Found], Iterator[Fault]]] = {
    File: _file,
    Program: _program,
    Regex: _regex,
    Schema: _schema,
    Target: _target,
}
