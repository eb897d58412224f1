"""The built-in tool ``finish``."""

from __future__ import annotations

import json
from typing import Any

from runner import ToolContext, ToolResult, tool


@tool(idempotent=True, read_only=True, answers=True)
def finish(answer: Any, context: ToolContext) -> ToolResult:
    """End the work and give its answer. Call it when all is done, and nothing beside it.

    Args:
        answer: The answer, whole.
        context: The call.
    """
    is_text = context.output_schema is None and isinstance(answer, str)
    text = answer if is_text else json.dumps(answer, ensure_ascii=False)
    return ToolResult(text, {"answer": True}, terminate=True)
