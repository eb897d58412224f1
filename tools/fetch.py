"""The built-in tool ``fetch``."""

from __future__ import annotations

from typing import Literal

from runner import ToolContext, ToolResult, tool

POST = "Not run: this run is read-only, and POST may change something."


@tool(timeout=60, read_only=True)
async def fetch(
    url: str,
    context: ToolContext,
    method: Literal["GET", "POST"] = "GET",
    body: str | None = None,
    headers: dict[str, str] | None = None,
) -> ToolResult:
    """Ask a web server, and give what it answers: text, a page as its text, or an image.

    Args:
        url: An http or https URL of the public internet.
        context: The call.
        method: GET to read, POST to send.
        body: What is sent by POST.
        headers: More headers, such as Content-Type or Accept.
    """
    if method == "POST" and context.read_only:
        return ToolResult(POST, is_error=True)
    if method == "GET" and body is not None:
        return ToolResult("A GET sends no body; put it into the URL, or use POST.", is_error=True)
    data = None if body is None else body.encode(errors="replace")
    try:
        answer = await context.web.request(method, url, headers=headers, body=data)
    except ValueError as error:
        return ToolResult(str(error), is_error=True)
    return answer.result()
