"""Responses: OpenAI's newer format, in which reasoning goes back, encrypted, with its calls.

Source: the OpenAI API reference, "Responses"; the guide "Reasoning models".
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from runner.engine.contract import ModelRequest, Provider, StreamEvent, ToolSchema
from runner.engine.message import Block
from runner.providers.body import merged, spliced, to_bytes
from runner.providers.endpoint import endpoint, need_key
from runner.providers.exchange import exchange
from runner.providers.history import CallResult, Entry, History, Rules
from runner.providers.http import post
from runner.providers.responses_answer import ResponsesAnswer
from runner.providers.settings import ModelSettings
from runner.providers.tool_schema import ToolList, is_strict, object_schema

PUBLIC = "https://api.openai.com/v1"
_EFFORTS = {"off": "none"}
_IDS = re.compile(r"[!-~]{1,64}")
# These refuse a request that asks for what they don't have: encrypted reasoning.
_NO_REASONING = re.compile(r"(.*/)?(gpt-3|gpt-4|chatgpt|.*-chat(-|$))")


def create(settings: ModelSettings) -> Provider:
    """A provider for a server that speaks the Responses format."""
    return OpenAIResponses(settings)


class OpenAIResponses:
    """A model behind the Responses format. Nothing of a run is stored at the server."""

    def __init__(self, settings: ModelSettings) -> None:
        self.name = settings.provider
        self._settings = settings
        self._url = endpoint(settings.base_url or PUBLIC, "/responses")
        self._history = History(Rules(self.name, settings.id, _IDS, longest_id=64), encode)
        self._tools = ToolList(encode_tool)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`."""
        key = need_key(self._settings, request.api_key)
        batches = post(
            self._url,
            self.body(request),
            {"authorization": f"Bearer {key}"} if key else {},
            settings=self._settings,
            secret=key,
        )
        return exchange(batches, ResponsesAnswer(key))

    async def close(self) -> None:
        """See `Provider.close`. The connections belong to the event loop."""

    def body(self, request: ModelRequest) -> bytes:
        """A request's JSON."""
        settings = self._settings
        fields: dict[str, Any] = {"model": request.model, "stream": True, "store": False}
        if request.system_prompt:
            fields["instructions"] = request.system_prompt
        if not _NO_REASONING.match(request.model):
            fields["include"] = ["reasoning.encrypted_content"]
        if settings.reasoning is not None:
            effort = _EFFORTS.get(settings.reasoning, settings.reasoning)
            fields["reasoning"] = {"effort": effort, "summary": "auto"}
        if settings.temperature is not None:
            fields["temperature"] = settings.temperature
        if settings.max_output_tokens is not None:
            fields["max_output_tokens"] = settings.max_output_tokens
        if request.output_schema is not None:
            fields["text"] = {
                "format": {
                    "type": "json_schema",
                    "name": "output",
                    "schema": request.output_schema,
                    "strict": is_strict(request.output_schema),
                }
            }
        lists = {"input": b"[" + b",".join(self._history.parts(request.messages)) + b"]"}
        if request.tools:
            lists["tools"] = self._tools.json(request.tools)
        return spliced(merged(fields, settings.options), lists)


def encode_tool(tool: ToolSchema) -> dict[str, Any]:
    """A tool as a request lists it. Where nothing is said of strictness, it is taken for strict."""
    value: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        value["description"] = tool.description
    return value | {"parameters": object_schema(tool.parameters), "strict": False}


def encode(entry: Entry) -> Sequence[Any]:
    """The items of an entry."""
    if entry.role == "user":
        return [{"role": "user", "content": [_part(block) for block in entry.content]}]
    items = [item for block in entry.content if (item := _item(block))]
    return [*items, *map(_output, entry.results)]


def _part(block: Block) -> dict[str, Any]:
    if block["type"] == "image":
        url = f"data:{block['mime_type']};base64,{block['data']}"
        return {"type": "input_image", "image_url": url}
    return {"type": "input_text", "text": block["text"] if block["type"] == "text" else ""}


def _item(block: Block) -> Any:
    """A block of an answer as the item that it was. Ids are left out: nothing is stored by them."""
    if block["type"] == "text":
        content = [{"type": "output_text", "text": block["text"]}]
        message: dict[str, Any] = {"type": "message", "role": "assistant", "content": content}
        return message | ({"phase": block["signature"]} if block.get("signature") else {})
    if block["type"] == "tool_call":
        return {
            "type": "function_call",
            "call_id": block["id"],
            "name": block["name"],
            "arguments": to_bytes(block["arguments"]).decode(),
        }
    if block["type"] == "thinking" and (encrypted := block.get("signature")):
        summary = [{"type": "summary_text", "text": block["text"]}] if block["text"] else []
        return {"type": "reasoning", "summary": summary, "encrypted_content": encrypted}
    return block["data"] if block["type"] == "provider" else None


def _output(result: CallResult) -> dict[str, Any]:
    output: Any = "\n".join(block["text"] for block in result.content if block["type"] == "text")
    if any(block["type"] == "image" for block in result.content):
        output = [_part(block) for block in result.content]
    return {"type": "function_call_output", "call_id": result.id, "output": output}
