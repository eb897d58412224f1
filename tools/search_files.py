"""The built-in tool ``search_files``."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

import regex

from runner import ToolContext, ToolResult, tool

MAX_BYTES = 5_000_000
"""Of a file; a larger one is passed over."""
MAX_HITS = 200
"""In one result."""
MAX_LINE = 300
"""Characters that are shown of a line."""
SECONDS = 1.0
"""How long the search of one file may take."""


@tool(idempotent=True, read_only=True, timeout=60)
def search_files(
    pattern: str, context: ToolContext, path: str = ".", files: str = "*"
) -> ToolResult:
    """Search text files by a regular expression. Gives PATH:LINE: TEXT, a line for each hit.

    What .gitignore leaves out is left out, and so is what is in .git.

    Args:
        pattern: A regular expression, as Python's re knows it; it is held against each line.
        context: The call.
        path: The folder to search in, relative to the workspace.
        files: Only files whose path or name fits this pattern, such as *.py.
    """
    try:
        wanted = regex.compile(pattern)
    except regex.error as error:
        return ToolResult(f"The pattern is no regular expression: {error}", is_error=True)
    found: list[str] = []
    try:
        for name in names(context, path, files):
            for hit in hits(context, name, wanted):
                if len(found) == MAX_HITS:
                    note = f"[more than {MAX_HITS} hits; search for something narrower]"
                    return ToolResult("\n".join([*found, note]))
                found.append(hit)
    except TimeoutError:
        return ToolResult("The pattern takes too long; write a simpler one.", is_error=True)
    except ValueError as error:
        return ToolResult(str(error), is_error=True)
    return ToolResult("\n".join(found) or "Nothing fits.")


def names(context: ToolContext, path: str, files: str) -> Iterator[str]:
    """The files to search."""
    for name, is_folder in context.files.unignored(path):
        if context.cancelled:
            return
        fits = any(fnmatchcase(each, files) for each in (name, name.rpartition("/")[2]))
        if fits and not is_folder:
            yield name


def hits(context: ToolContext, name: str, wanted: regex.Pattern[str]) -> Iterator[str]:
    """The lines of a file that fit."""
    try:
        data = context.files.read(name, MAX_BYTES)
    except ValueError:  # gone since, a link that leads out, too large
        return
    if b"\0" in data[:8192]:
        return
    for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
        if wanted.search(line, timeout=SECONDS):
            shown = line if len(line) <= MAX_LINE else line[:MAX_LINE] + "…"
            yield f"{name}:{number}: {shown}"
