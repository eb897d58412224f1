"""The built-in tool ``python``."""

from __future__ import annotations

import sys

from runner import ToolContext, ToolResult, tool


@tool(timeout=120)
async def python(code: str, context: ToolContext) -> ToolResult:
    """Run Python code in a fresh interpreter, in the workspace. Gives what it prints.

    Nothing is left of one call in the next. Only the standard library is sure to be there.

    Args:
        code: The program. What it is to tell, it prints.
        context: The call.
    """
    # Isolated: neither the workspace nor the environment decides what is imported.
    argv = [sys.executable or "python3", "-I", "-X", "utf8", "-"]
    source = code.encode(errors="replace") or b"\n"
    return await context.output(argv, stdin=source)
