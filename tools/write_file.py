"""The built-in tool ``write_file``."""

from __future__ import annotations

from runner import ToolContext, ToolResult, tool


@tool(idempotent=True)
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
