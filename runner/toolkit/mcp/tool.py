"""A server's tools, resources and prompts as tools that a model can call."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Unpack

from runner.engine.contract import Cancellation, ToolResult, Update
from runner.engine.message import Block, text_block
from runner.toolkit.mcp.listing import Listed, Page, all_pages
from runner.toolkit.mcp.server import McpServer
from runner.toolkit.tool import SchemaTool, ToolOptions

_BURST = 20
"""Updates of one call that are told at once."""
_UPDATES_A_SECOND = 10
"""How many more are told, each second."""
_MAX_UPDATES = 1000
"""Updates of one call."""
_MAX_MESSAGE = 1000
"""Characters of an update's message."""
_2020_12 = "https://json-schema.org/draft/2020-12/schema"

Ask = Callable[[Any, dict[str, Any], Any], Awaitable[ToolResult]]
"""Asks a client, with arguments and what takes progress."""


class McpTool(SchemaTool):
    """Something of a server that a model can call.

    Args:
        server: The server.
        name: See `SchemaTool`; so for the next two.
        description: For the model.
        parameters: JSON Schema of its arguments, as the server has it.
        ask: Calls it.
        options: See `ToolOptions`.
    """

    def __init__(
        self,
        server: McpServer,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        ask: Ask,
        **options: Unpack[ToolOptions],
    ) -> None:
        super().__init__(name, description, parameters, **options)
        self._server = server
        self._ask = ask

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        """All ways in which arguments don't fit; a schema of an older draft is the server's own."""
        if self.parameters.get("$schema", _2020_12).rstrip("#") != _2020_12:
            return ()
        return super().check(arguments)

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Have the server do it. A call that is cancelled is cancelled there too."""
        progress = _Progress(on_update)
        return await self._server.ask(lambda client: self._ask(client, params, progress.tell))


def mcp_tool(
    server: McpServer, listed: Listed, name: str, **options: Unpack[ToolOptions]
) -> McpTool:
    """Something that a server lists, under the name that the model knows it by."""
    ask = _OFFERS.get(listed.name) or _calls(listed)
    return McpTool(server, name, listed.description, listed.parameters, ask, **options)


def _calls(listed: Listed) -> Ask:
    async def ask(client: Any, arguments: dict[str, Any], progress: Any) -> ToolResult:
        from runner.toolkit.mcp.content import blocks_of, structured_text

        result = await client.call_tool(listed.name, arguments, progress_callback=progress)
        structured = result.structured_content
        content = blocks_of(result.content)
        if not content and structured is not None:
            content = [text_block(structured_text(structured))]
        wrong = [] if result.is_error else _violations(listed.output, structured)
        if wrong:
            told = "\n- ".join(["This does not fit the schema that the tool has for it:", *wrong])
            content = [*content, text_block(told)]
        return ToolResult(content, structured, is_error=bool(result.is_error or wrong))

    return ask


def _violations(schema: Mapping[str, Any] | None, structured: Any) -> Sequence[str]:
    if schema is None:
        return ()
    from runner.schema.check import SchemaCheck

    return SchemaCheck(schema).violations(structured)


class _Progress:
    """Takes a server's progress, and tells as much of it as anyone wants to read."""

    def __init__(self, on_update: Update) -> None:
        self._on_update = on_update
        self._room = float(_BURST)
        self._last = time.monotonic()
        self._told = 0

    async def tell(self, progress: float, total: float | None, message: str | None) -> None:
        """Take one step of it."""
        now = time.monotonic()
        self._room = min(self._room + (now - self._last) * _UPDATES_A_SECOND, _BURST)
        self._last = now
        if self._room < 1 or self._told >= _MAX_UPDATES:
            return
        numbers = {"progress": progress, "total": total}
        update: dict[str, Any] = {key: value for key, value in numbers.items() if value is not None}
        if not all(map(math.isfinite, update.values())):
            return
        if message is not None:
            update["message"] = message[:_MAX_MESSAGE]
        self._room -= 1
        self._told += 1
        self._on_update(update)


# --- resources and prompts ------------------------------------------------------------------------
# They go by the protocol's own names of what is asked, which are no tool's.

_NOTHING: Mapping[str, Any] = {"type": "object", "properties": {}}


def resource_listed() -> list[Listed]:
    """What a model may do with a server's resources."""
    uri = {"type": "string", "description": "The resource's URI."}
    return [
        Listed("resources/list", "List the resources that can be read.", _NOTHING),
        Listed(
            "resources/read",
            "Read a resource.",
            {"type": "object", "properties": {"uri": uri}, "required": ["uri"]},
        ),
    ]


def prompt_listed() -> list[Listed]:
    """What a model may do with a server's prompts."""
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    properties = {"name": {"type": "string"}, "arguments": texts}
    return [
        Listed("prompts/list", "List the prompts that there are, with their arguments.", _NOTHING),
        Listed(
            "prompts/get",
            "Get a prompt, filled in with arguments.",
            {"type": "object", "properties": properties, "required": ["name"]},
        ),
    ]


async def _list_resources(client: Any, arguments: dict[str, Any], progress: Any) -> ToolResult:
    async def page(cursor: str | None) -> Page:
        found = await client.list_resources(cursor=cursor)
        return found.resources, found.next_cursor

    async def templates(cursor: str | None) -> Page:
        found = await client.list_resource_templates(cursor=cursor)
        return found.resource_templates, found.next_cursor

    lines = [_described(each, each.uri) for each in await all_pages(page, "resources")]
    for each in await all_pages(templates, "resource templates"):
        lines.append(_described(each, each.uri_template))
    return ToolResult("\n".join(lines) or "There are none.")


def _described(item: Any, uri: Any) -> str:
    about = " — ".join(part for part in (item.name, item.description) if part)
    kind = f" ({item.mime_type})" if item.mime_type else ""
    return f"{uri}{kind}: {about}"


async def _read_resource(client: Any, arguments: dict[str, Any], progress: Any) -> ToolResult:
    from runner.toolkit.mcp.content import resource_blocks

    found = await client.read_resource(arguments["uri"])
    return ToolResult(resource_blocks(found.contents))


async def _list_prompts(client: Any, arguments: dict[str, Any], progress: Any) -> ToolResult:
    async def page(cursor: str | None) -> Page:
        found = await client.list_prompts(cursor=cursor)
        return found.prompts, found.next_cursor

    lines = []
    for prompt in await all_pages(page, "prompts"):
        wanted = ", ".join(
            each.name if each.required else f"[{each.name}]" for each in prompt.arguments or ()
        )
        lines.append(f"{prompt.name}({wanted}): {prompt.description or ''}".rstrip(": "))
    return ToolResult("\n".join(lines) or "There are none.")


async def _get_prompt(client: Any, arguments: dict[str, Any], progress: Any) -> ToolResult:
    from runner.toolkit.mcp.content import blocks_of

    found = await client.get_prompt(arguments["name"], arguments.get("arguments"))
    blocks: list[Block] = []
    for message in found.messages:
        blocks += [text_block(f"{message.role}:"), *blocks_of([message.content])]
    return ToolResult(blocks)


_OFFERS: Mapping[str, Ask] = {
    "resources/list": _list_resources,
    "resources/read": _read_resource,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
}
