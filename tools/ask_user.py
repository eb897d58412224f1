"""The built-in tool ``ask_user``."""

from __future__ import annotations

from runner import ToolContext, ToolResult, tool


@tool(read_only=True, execution="sequential")
async def ask_user(
    question: str, context: ToolContext, choices: list[str] | None = None
) -> ToolResult:
    """Ask the person you work for, and give their answer. Ask only for what you can't find out.

    Args:
        question: What to ask.
        context: The call.
        choices: Answers to choose from; the person may give another one.
    """
    listed = [f"{number}. {choice}" for number, choice in enumerate(choices or (), 1)]
    said = await context.ask("\n".join([question, *listed]))
    if said is None:
        why = "Nobody can be asked: the run has no terminal. Go on by what you know, and say so."
        return ToolResult(why, is_error=True)
    if not said:
        return ToolResult("The person gave no answer.")
    if choices and said.isdecimal() and 1 <= int(said) <= len(choices):
        said = choices[int(said) - 1]
    return ToolResult(said)
