"""What a tool call comes to: its tool's own result, or the words for why there is none."""

from __future__ import annotations

import asyncio

from runner.engine.contract import ToolResult
from runner.engine.message import check_content, text_block
from runner.error import text_of
from runner.json_text import line

SKIPPED = "Skipped: a new message came before this call was begun. Read it before you go on."
ENDING = "Not run: the run ends."
UNFIT = "The arguments don't fit, and the tool was not run:"
"""Begins the result of a call whose arguments its tool refused; a line for each reason follows."""


def outcome(task: asyncio.Task[ToolResult], reason: str | None) -> ToolResult:
    """What a tool's task came to; ``reason`` is that of its cancellation."""
    if not task.done():
        return failed(f"The tool did not end when it was told to: {reason}. It was left behind.")
    if task.cancelled():
        return failed(f"The tool was stopped: {reason or 'it was cancelled'}.")
    error = task.exception()
    if error is not None:
        # As it is: unlike a person's line on a screen, a result may have many.
        said = text_of(error).strip() or type(error).__name__
        return failed(said if reason is None else f"{said} ({reason})")
    result = task.result()
    if reason is None or result.complete:
        return result
    stopped = text_block(f"\nThe tool was stopped: {reason}.")
    return ToolResult([*result.blocks(), stopped], result.details, is_error=True)


def check_result(result: ToolResult) -> None:
    """Make sure that a result can be told.

    Raises:
        TypeError: where it is not JSON; so for the next.
        ValueError: where its content is no list of blocks.
    """
    blocks = result.blocks()
    check_content(blocks)
    line([blocks, result.details])


def not_run(reason: str | None) -> str:
    """What a call comes to that had not begun when its run was stopped."""
    return f"Not run: {reason}."


def failed(text: str) -> ToolResult:
    """A result that says what went wrong."""
    return ToolResult(text, is_error=True)
