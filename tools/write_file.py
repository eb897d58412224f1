"""The built-in tool ``write_file``."""

from __future__ import annotations

import difflib

from runner import ToolContext, ToolResult, tool

MAX_BYTES = 1_000_000
"""Of a file of which a diff is shown."""
MAX_LINES = 5_000
"""Of both texts together: the cost of a diff grows with their square."""


def preview(path: str, content: str, context: ToolContext) -> str | None:
    """What a call would change, as a diff; None where it would fail."""
    files = context.files
    try:
        files.relative(path)
    except ValueError:
        return None
    try:
        old = files.read(path, MAX_BYTES).decode(errors="replace").splitlines()
    except ValueError:  # there is none yet
        old = []
    new = content.splitlines()
    if len(old) + len(new) > MAX_LINES:
        return None
    return "\n".join(difflib.unified_diff(old, new, path, path, lineterm="", n=3))


@tool(idempotent=True, preview=preview)
def write_file(path: str, content: str, context: ToolContext) -> ToolResult:
    """Write a text file whole, in place of what is there; folders that it needs are made.

    To change a part of a file, use edit_file.

    Args:
        path: The file, relative to the workspace.
        content: All of the file's text.
        context: The call.
    """
    data = content.encode(errors="replace")
    try:
        files = context.files
        with files.lock(path):
            is_new = files.write(path, data)
    except ValueError as error:
        return ToolResult(str(error), is_error=True)
    done = "Made" if is_new else "Replaced"
    return ToolResult(f"{done} {path}, {len(data)} bytes.", {"bytes": len(data), "new": is_new})
