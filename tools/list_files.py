"""The built-in tool ``list_files``."""

from __future__ import annotations

from fnmatch import fnmatchcase

from runner import ToolContext, ToolResult, tool

MAX_FILES = 1_000
"""In one result."""


@tool(idempotent=True, read_only=True)
def list_files(context: ToolContext, path: str = ".", pattern: str = "*") -> ToolResult:
    """List the files and folders below a folder; a folder ends with a slash.

    What .gitignore leaves out is left out, and so is what is in .git.

    Args:
        context: The call.
        path: The folder, relative to the workspace.
        pattern: Only those whose path or name fits it, such as *.py or src/*.md.
    """
    found: list[str] = []
    try:
        for name, is_folder in context.files.unignored(path):
            if context.cancelled:
                break
            if not any(fnmatchcase(each, pattern) for each in (name, name.rpartition("/")[2])):
                continue
            if len(found) == MAX_FILES:
                found.append(f"[more than {MAX_FILES}; give a narrower path or pattern]")
                break
            found.append(name + ("/" if is_folder else ""))
    except ValueError as error:
        return ToolResult(str(error), is_error=True)
    return ToolResult("\n".join(found) or "There is nothing that fits.")
