"""Chat Completions: OpenAI's older format, which most other servers speak as well.

Source: the OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from runner.engine.contract import ModelRequest, Provider, StreamEvent, ToolSchema
from runner.engine.message import Block, text_of
from runner.providers.blocks import loads
from runner.providers.body import merged, spliced, to_bytes
from runner.providers.chat_answer import REASONING_FIELDS, ChatAnswer
from runner.providers.endpoint import endpoint, need_key
from runner.providers.exchange import exchange
from runner.providers.history import CallResult, Entry, History, Rules
from runner.providers.http import post
from runner.providers.settings import ModelSettings
from runner.providers.think_tags import CLOSING, OPENING
from runner.providers.tool_schema import ToolList, is_strict, object_schema

PUBLIC = "https://api.openai.com/v1"
NO_OUTPUT = "(no output)"
"""What a result says that is empty; some servers refuse a message without content."""

_EFFORTS = {"off": "none"}
_IDS = re.compile(r"[!-~]{1,40}")


def create(settings: ModelSettings) -> Provider:
    """A provider for a server that speaks Chat Completions."""
    return OpenAI(settings)


class OpenAI:
    """A model behind Chat Completions."""

    def __init__(self, settings: ModelSettings) -> None:
        self.name = settings.provider
        self._settings = settings
        self._url = endpoint(settings.base_url or PUBLIC, "/chat/completions")
        self._history = History(Rules(self.name, settings.id, _IDS, longest_id=40), encode)
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
        return exchange(batches, ChatAnswer(key))

    async def close(self) -> None:
        """See `Provider.close`. The connections belong to the event loop."""

    def body(self, request: ModelRequest) -> bytes:
        """A request's JSON."""
        settings = self._settings
        fields: dict[str, Any] = {
            "model": request.model,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if settings.temperature is not None:
            fields["temperature"] = settings.temperature
        if settings.max_output_tokens is not None:
            fields[self._limit_name()] = settings.max_output_tokens
        if settings.reasoning is not None:
            fields["reasoning_effort"] = _EFFORTS.get(settings.reasoning, settings.reasoning)
        if request.output_schema is not None:
            fields["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": "output",
                    "schema": request.output_schema,
                    "strict": is_strict(request.output_schema),
                },
            }
        parts = self._history.parts(request.messages)
        if request.system_prompt:
            parts.insert(0, to_bytes({"role": "system", "content": request.system_prompt}))
        lists = {"messages": b"[" + b",".join(parts) + b"]"}
        if request.tools:
            lists["tools"] = self._tools.json(request.tools)
        return spliced(merged(fields, settings.options), lists)

    def _limit_name(self) -> str:
        """OpenAI's own models refuse the old name, and other servers don't know the new one."""
        host = urlsplit(self._url).hostname or ""
        own = host == "api.openai.com" or host.endswith(".openai.azure.com")
        return "max_completion_tokens" if own else "max_tokens"


def encode_tool(tool: ToolSchema) -> dict[str, Any]:
    """A tool as a request lists it."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    return {
        "type": "function",
        "function": function | {"parameters": object_schema(tool.parameters)},
    }


def encode(entry: Entry) -> Sequence[Any]:
    """The messages of an entry."""
    if entry.role == "user":
        return [{"role": "user", "content": _content(entry.content)}]
    results = list(_results(entry.results))
    return [message, *results] if (message := _answer(entry)) else results


def _content(blocks: Sequence[Block]) -> Any:
    """One text as a text, which every server takes; all else as parts."""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return [_part(block) for block in blocks]


def _part(block: Block) -> dict[str, Any]:
    if block["type"] == "image":
        url = f"data:{block['mime_type']};base64,{block['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": text_of([block])}


def _answer(entry: Entry) -> dict[str, Any] | None:
    text = text_of(entry.content)
    calls: list[dict[str, Any]] = []
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    thinking: dict[str, str] = {}
    for block in entry.content:
        if block["type"] == "tool_call":
            function = {"name": block["name"], "arguments": to_bytes(block["arguments"]).decode()}
            call: dict[str, Any] = {"id": block["id"], "type": "function", "function": function}
            if extra := loads(block.get("signature", "")):
                call["extra_content"] = extra
            calls.append(call)
        elif block["type"] == "thinking":
            where = block.get("signature", "")
            thinking[where] = thinking.get(where, "") + block["text"]
        elif block["type"] == "provider" and isinstance(block["data"], dict):
            message["reasoning_details"] = block["data"].get("reasoning_details")
    if not text and not calls:
        return None
    if calls:
        # Models that think before they call want to see why; after a final answer, none does.
        message["tool_calls"] = calls
        message |= {name: thinking[name] for name in REASONING_FIELDS if name in thinking}
        if OPENING in thinking:
            message["content"] = f"{OPENING}\n{thinking[OPENING]}\n{CLOSING}\n\n{text}"
    return message


def _results(results: Sequence[CallResult]) -> Iterator[dict[str, Any]]:
    """A message for each result, and one for their images, which results can't have here."""
    images: list[dict[str, Any]] = []
    for result in results:
        texts = [block["text"] for block in result.content if block["type"] == "text"]
        found = [_part(block) for block in result.content if block["type"] == "image"]
        if found:
            images += [{"type": "text", "text": f"The image of {result.name}:"}, *found]
            texts = texts or ["(the image stands below)"]
        content = "\n".join(texts) or NO_OUTPUT
        yield {"role": "tool", "tool_call_id": result.id, "content": content}
    if images:
        yield {"role": "user", "content": images}
