"""What a server offers, read page by page and held against what a run can use."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.error import RunError, did_you_mean
from runner.json_text import line

MAX_LISTED = 10_000
"""Tools that a server may list."""
MAX_TOOLS = 1000
"""Tools of one server that a run may have, once ``include`` and ``exclude`` are kept to."""
_MAX_PAGES = 200
_MAX_SCHEMA = 100_000
"""Characters of a tool's schema, as JSON."""
_MAX_DEPTH = 100
"""Levels of a tool's schema."""
_MAX_DESCRIPTION = 20_000
_GLOB = frozenset("*?[")


@dataclass(slots=True)
class Listed:
    """A tool as a server lists it."""

    name: str
    """What the server calls it."""
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of its arguments."""
    output: Mapping[str, Any] | None = None
    """JSON Schema of its structured result, if it has one."""


@dataclass(slots=True)
class Listing:
    """What a server offers."""

    tools: list[Listed] = field(default_factory=list)
    unusable: list[tuple[str, str]] = field(default_factory=list)
    """Tools that can't be used, each with the reason."""


Page = tuple[Sequence[Any], str | None]
"""Some items and the cursor of those that follow; None after the last."""


async def all_pages(fetch: Callable[[str | None], Awaitable[Page]], what: str) -> list[Any]:
    """The items of all pages.

    Raises:
        RunError: where there are too many, or the pages lead in a circle.
    """
    items: list[Any] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(_MAX_PAGES):
        page, cursor = await fetch(cursor)
        items += page
        if len(items) > MAX_LISTED:
            raise RunError(f"it lists more than {MAX_LISTED} {what}")
        if cursor is None:
            return items
        if cursor in seen:
            raise RunError(f"the pages of its {what} lead in a circle")
        seen.add(cursor)
    raise RunError(f"its {what} take more than {_MAX_PAGES} pages")


def listing_of(
    tools: Sequence[Any], include: Sequence[str] | None, exclude: Sequence[str]
) -> Listing:
    """The tools of a run, of those that a server lists.

    Args:
        tools: As the SDK gives them.
        include: The only ones that are wanted, by name or pattern; None for all.
        exclude: Those that are not.

    Raises:
        RunError: for a name that no tool has, or too many tools.
    """
    names = [tool.name for tool in tools]
    for wanted in (*(include or ()), *exclude):
        if not _GLOB.intersection(wanted) and wanted not in names:
            raise RunError(f'it has no tool "{wanted}"; {did_you_mean(wanted, names[:200])}')
    listing = Listing()
    seen: set[str] = set()
    for tool in tools:
        kept = include is None or _matches(tool.name, include)
        if not kept or _matches(tool.name, exclude):
            continue
        problem = "it is listed twice" if tool.name in seen else _problem(tool.input_schema)
        seen.add(tool.name)
        if problem is not None:
            listing.unusable.append((tool.name, problem))
        else:
            listing.tools.append(_listed(tool))
    if len(listing.tools) > MAX_TOOLS:
        raise RunError(f"it has {len(listing.tools)} tools, which no model can use; use `include`")
    return listing


def _listed(tool: Any) -> Listed:
    text = tool.description or tool.title or ""
    if len(text) > _MAX_DESCRIPTION:
        text = f"{text[:_MAX_DESCRIPTION]}…"
    output = tool.output_schema
    usable = output is not None and _problem(output, wants_object=False) is None
    return Listed(tool.name, text, tool.input_schema, output if usable else None)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(name == each or fnmatch.fnmatchcase(name, each) for each in patterns)


def _problem(schema: Any, *, wants_object: bool = True) -> str | None:
    """What is wrong with a schema; None where a model can be given it."""
    if _depth(schema) > _MAX_DEPTH:
        return "its schema is nested too deeply"
    try:
        text = line(schema)
    except (ValueError, TypeError):
        return "its schema is no JSON"
    if len(text) > _MAX_SCHEMA:
        return f"its schema has more than {_MAX_SCHEMA} characters"
    if wants_object and (not isinstance(schema, dict) or schema.get("type") != "object"):
        return 'its schema has no "type": "object"'
    from jsonschema.exceptions import best_match
    from jsonschema.validators import Draft202012Validator, validator_for

    draft = validator_for(schema, default=Draft202012Validator)
    error = best_match(draft(draft.META_SCHEMA).iter_errors(json.loads(text)))
    if error is None:
        return None
    place = "".join(f"[{step!r}]" for step in error.absolute_path)
    return f"its schema is no valid JSON Schema: at {place or 'its top'}: {error.message:.300}"


def _depth(value: Any) -> int:
    """Levels of a JSON value, counted without recursion."""
    deepest, todo = 0, [(value, 1)]
    while todo:
        current, level = todo.pop()
        deepest = max(deepest, level)
        todo += [(below, level + 1) for below in _below(current)]
    return deepest


def _below(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
