"""Messages: the format of Anthropic's Claude, which some other servers speak as well.

Source: the Claude API reference, "Messages" and "Prompt caching".
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from runner.engine.contract import ModelRequest, Provider, StreamEvent, ToolSchema
from runner.engine.message import Block, text_block
from runner.providers.body import merged, spliced, to_bytes
from runner.providers.claude import can_be_held_to_a_schema, most_output, thinking
from runner.providers.closed_schema import closed
from runner.providers.endpoint import endpoint, need_key
from runner.providers.exchange import exchange
from runner.providers.history import CallResult, Entry, History, Rules
from runner.providers.http import post
from runner.providers.messages_answer import MessagesAnswer
from runner.providers.settings import ModelSettings
from runner.providers.tool_schema import ToolList, object_schema

PUBLIC = "https://api.anthropic.com"
VERSION = "2023-06-01"
CACHE_BYTES = 4096
"""About 1,024 tokens: a shorter prompt is not cached, whatever is asked."""
NO_OUTPUT = "(no output)"
"""What a result says that is empty; one of an error may not be."""

_IDS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_EPHEMERAL = {"type": "ephemeral"}
_MARK = b',"cache_control":' + to_bytes(_EPHEMERAL)
_THINKING = ("thinking", "redacted_thinking")
_BEGINNING = to_bytes(
    {"role": "user", "content": [{"type": "text", "text": "(The conversation so far:)"}]}
)


def create(settings: ModelSettings) -> Provider:
    """A provider for a server that speaks Messages."""
    return Anthropic(settings)


class Anthropic:
    """A model behind Messages."""

    def __init__(self, settings: ModelSettings) -> None:
        self.name = settings.provider
        self._settings = settings
        self._url = endpoint(settings.base_url or PUBLIC, "/v1/messages")
        rules = Rules(self.name, settings.id, _IDS, longest_id=64, blank_text=False)
        self._history = History(rules, encode)
        self._tools = ToolList(encode_tool)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`."""
        key = need_key(self._settings, request.api_key)
        headers = {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})
        batches = post(self._url, self._body(request), headers, settings=self._settings, secret=key)
        return exchange(batches, MessagesAnswer(key))

    async def close(self) -> None:
        """See `Provider.close`. The connections belong to the event loop."""

    def _body(self, request: ModelRequest) -> bytes:
        fields = self._fields(request)
        parts = self._messages(request)
        tools = self._tools.json(request.tools) if request.tools and "tools" not in fields else b""
        system: Any = request.system_prompt.strip() and request.system_prompt
        if self._caches(request, tools, parts):
            # The tools stand before the system prompt, and a mark holds for all before it.
            if len(tools) + len(system) < CACHE_BYTES:
                pass
            elif system:
                system = [{"type": "text", "text": system, "cache_control": _EPHEMERAL}]
            else:
                tools = _marked(tools)
            parts[-1] = _marked(parts[-1])
        if system:
            fields.setdefault("system", system)
        lists = {"messages": b"[" + b",".join(parts) + b"]"}
        if tools:
            lists["tools"] = tools
        return spliced(fields, lists)

    def _fields(self, request: ModelRequest) -> dict[str, Any]:
        """All but the conversation."""
        settings = self._settings
        asked = settings.max_output_tokens
        most = asked or most_output(request.model)
        fields: dict[str, Any] = {"model": request.model, "max_tokens": most, "stream": True}
        if settings.temperature is not None:
            fields["temperature"] = settings.temperature
        fields |= thinking(request.model, settings.reasoning, most, asked is not None)
        schema = request.output_schema
        if (
            schema is not None
            and can_be_held_to_a_schema(request.model)
            and (fits := closed(schema))
        ):
            config = fields.get("output_config", {})
            fields["output_config"] = config | {"format": {"type": "json_schema", "schema": fits}}
        return merged(fields, settings.options)

    def _messages(self, request: ModelRequest) -> list[bytes]:
        """The conversation: it begins with the user, and may not end with a model's white space."""
        parts = self._history.parts(request.messages)
        entries = self._history.entries
        if entries and entries[0].role == "assistant":
            parts.insert(0, _BEGINNING)
        if entries and entries[-1].role == "assistant" and not entries[-1].results:
            last = entries[-1].content[-1]
            if last["type"] == "text" and last["text"] != last["text"].rstrip():
                trimmed = [*entries[-1].content[:-1], text_block(last["text"].rstrip())]
                parts[-1] = b",".join(map(to_bytes, encode(Entry("assistant", trimmed))))
        return parts

    def _caches(self, request: ModelRequest, tools: bytes, parts: Sequence[bytes]) -> bool:
        """Whether marks pay: the prompt is long, and another request will begin like this one."""
        entries = self._history.entries
        if self._settings.cache == "off" or not parts or not _ends_with_user(entries):
            return False
        size = len(tools) + len(request.system_prompt) + sum(map(len, parts))
        goes_on = bool(tools) or any(entry.role == "assistant" for entry in entries)
        return goes_on and size >= CACHE_BYTES


def _ends_with_user(entries: Sequence[Entry]) -> bool:
    return bool(entries) and (entries[-1].role == "user" or bool(entries[-1].results))


def _marked(part: bytes) -> bytes:
    """A list of tools, or a message, whose last block is marked: the server keeps all up to it."""
    end = b"}]}" if part.endswith(b"}]}") else b"}]"
    return part.removesuffix(end) + _MARK + end


def encode_tool(tool: ToolSchema) -> dict[str, Any]:
    """A tool as a request lists it."""
    schema = object_schema(tool.parameters)
    for name in ("allOf", "anyOf", "oneOf"):
        schema.pop(name, None)  # refused at the top; the arguments are checked against it anyway
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def encode(entry: Entry) -> Sequence[Any]:
    """The messages of an entry. Each has its content last, and the content its last block."""
    if entry.role == "user":
        return [{"role": "user", "content": [_block(block) for block in entry.content]}]
    content = [made for block in entry.content if (made := _block(block))]
    if all(block["type"] in _THINKING for block in content):
        return []  # a message may not end with thinking, and this one has nothing else
    messages = [{"role": "assistant", "content": content}]
    if entry.results:
        messages.append({"role": "user", "content": [_result(result) for result in entry.results]})
    return messages


def _block(block: Block) -> dict[str, Any] | None:
    """A block as it is sent; None for thinking that came without a signature."""
    match block["type"]:
        case "text":
            return {"type": "text", "text": block["text"]}
        case "image":
            source = {"type": "base64", "media_type": block["mime_type"], "data": block["data"]}
            return {"type": "image", "source": source}
        case "tool_call":
            call = {"type": "tool_use", "id": block["id"], "name": block["name"]}
            return call | {"input": block["arguments"]}
        case "thinking":
            signature = block.get("signature")
            if block.get("redacted"):
                return {"type": "redacted_thinking", "data": signature}
            if not signature:
                return None
            return {"type": "thinking", "thinking": block["text"], "signature": signature}
        case "provider":
            data = block["data"]
            return data if isinstance(data, dict) and "type" in data else None


def _result(result: CallResult) -> dict[str, Any]:
    content = [_block(block) for block in result.content]
    made: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.id}
    if result.is_error:
        made["is_error"] = True
    made["content"] = content or [{"type": "text", "text": NO_OUTPUT}]
    return made
