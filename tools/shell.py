"""The built-in tool ``shell``."""

from __future__ import annotations

from runner import ToolContext, ToolResult, tool


@tool(timeout=120)
async def shell(command: str, context: ToolContext) -> ToolResult:
    """Run a command by sh in the workspace. Gives what it prints, stdout and stderr together.

    It reads nothing from stdin. What it leaves running in the background is ended with it.

    Args:
        command: The command line.
        context: The call.
    """
    return await context.output(["sh", "-c", command])
