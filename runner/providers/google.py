"""``streamGenerateContent``: the format of Google's Gemini.

Source: the Gemini API reference, "Generating content", and its guide "Function calling".
"""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from runner.engine.contract import ModelRequest, Provider, StreamEvent, ToolSchema
from runner.engine.message import Block, text_of
from runner.providers.body import merged, spliced, to_bytes
from runner.providers.endpoint import endpoint, need_key
from runner.providers.exchange import exchange
from runner.providers.gemini import (
    SKIP_SIGNATURE,
    can_call_and_fit_a_schema,
    thinking_config,
    wants_signatures,
)
from runner.providers.gemini_answer import GeminiAnswer
from runner.providers.gemini_schema import reduced
from runner.providers.history import CallResult, Entry, History, Rules
from runner.providers.http import post
from runner.providers.settings import ModelSettings
from runner.providers.tool_schema import ToolList

PUBLIC = "https://generativelanguage.googleapis.com"

_IDS = re.compile(r"[!-~]{1,64}")
_VERSION = re.compile(r"/v\d+((alpha|beta)\d*)?/?$")
_BEGINNING = to_bytes({"role": "user", "parts": [{"text": "(The conversation so far:)"}]})


def create(settings: ModelSettings) -> Provider:
    """A provider for a server that speaks Gemini's format."""
    return Google(settings)


class Google:
    """A model behind ``streamGenerateContent``."""

    def __init__(self, settings: ModelSettings) -> None:
        self.name = settings.provider
        self._settings = settings
        self._url = address(settings.base_url or PUBLIC, settings.id)
        signed = wants_signatures(settings.id)
        self._history = History(
            Rules(self.name, settings.id, _IDS, longest_id=64),
            functools.partial(encode, signed=signed),
        )
        self._tools = ToolList(encode_tool)

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`."""
        key = need_key(self._settings, request.api_key)
        headers = {"x-goog-api-key": key} if key else {}
        batches = post(self._url, self._body(request), headers, settings=self._settings, secret=key)
        return exchange(batches, GeminiAnswer(key))

    async def close(self) -> None:
        """See `Provider.close`. The connections belong to the event loop."""

    def _body(self, request: ModelRequest) -> bytes:
        fields: dict[str, Any] = {}
        if request.system_prompt:
            fields["systemInstruction"] = {"parts": [{"text": request.system_prompt}]}
        if generation := self._generation(request):
            fields["generationConfig"] = generation
        fields = merged(fields, self._settings.options)
        parts = self._history.parts(request.messages)
        if self._history.entries and self._history.entries[0].role == "assistant":
            parts.insert(0, _BEGINNING)
        lists = {"contents": b"[" + b",".join(parts) + b"]"}
        if request.tools and "tools" not in fields:
            lists["tools"] = b'[{"functionDeclarations":' + self._tools.json(request.tools) + b"}]"
        return spliced(fields, lists)

    def _generation(self, request: ModelRequest) -> dict[str, Any]:
        settings = self._settings
        made: dict[str, Any] = {}
        if settings.temperature is not None:
            made["temperature"] = settings.temperature
        if settings.max_output_tokens is not None:
            made["maxOutputTokens"] = settings.max_output_tokens
        if thinking := thinking_config(request.model, settings.reasoning):
            made["thinkingConfig"] = thinking
        schema = request.output_schema
        if schema is not None and (not request.tools or can_call_and_fit_a_schema(request.model)):
            made["responseMimeType"] = "application/json"
            made |= _schema(schema, "responseSchema", "responseJsonSchema")
        return made


def address(base_url: str, model: str) -> str:
    """Where a model streams. A base may end with a version of the API, or not."""
    name = model if model.startswith(("models/", "tunedModels/")) else f"models/{model}"
    path = f"/{quote(name)}:streamGenerateContent"
    if not _VERSION.search(urlsplit(base_url.strip()).path):
        path = f"/v1beta{path}"
    url = endpoint(base_url, path)
    return url if "alt=sse" in url else f"{url}{'&' if '?' in url else '?'}alt=sse"


def encode_tool(tool: ToolSchema) -> dict[str, Any]:
    """A tool as a request lists it. One without parameters may not say that it has an object."""
    made: dict[str, Any] = {"name": tool.name, "description": tool.description or tool.name}
    if not tool.parameters.keys() <= {"$schema", "additionalProperties", "title", "type"} and (
        tool.parameters.get("properties") != {}
    ):
        made |= _schema(tool.parameters, "parameters", "parametersJsonSchema")
    return made


def _schema(schema: Mapping[str, Any], name: str, whole_name: str) -> dict[str, Any]:
    """A schema in the words that every server of this format knows, or else in JSON Schema's."""
    if (few := reduced(schema)) is not None:
        return {name: few}
    return {whole_name: {key: value for key, value in schema.items() if key != "$schema"}}


def encode(entry: Entry, signed: bool) -> Sequence[Any]:
    """The contents of an entry.

    Args:
        entry: The entry.
        signed: Whether the first call must have a signature, even if another model made it.
    """
    if entry.role == "user":
        return [{"role": "user", "parts": [_part(block) for block in entry.content]}]
    parts = [made for block in entry.content if (made := _part(block))]
    first = next((part for part in parts if "functionCall" in part), None)
    if signed and first:
        first.setdefault("thoughtSignature", SKIP_SIGNATURE)
    contents = [{"role": "model", "parts": parts}] if parts else []
    if entry.results:
        contents += _results(entry.results)
    return contents


def _part(block: Block) -> dict[str, Any] | None:
    """A block as it is sent; None for thinking that came without a signature."""
    match block["type"]:
        case "text":
            return _signed({"text": block["text"]}, block)
        case "image":
            return {"inlineData": {"mimeType": block["mime_type"], "data": block["data"]}}
        case "tool_call":
            call = {"id": block["id"], "name": block["name"], "args": block["arguments"]}
            return _signed({"functionCall": call}, block)
        case "thinking":
            if not block.get("signature"):
                return None
            return _signed({"text": block["text"], "thought": True}, block)
        case "provider":
            return block["data"] if isinstance(block["data"], dict) else None


def _signed(part: dict[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    if signature := block.get("signature"):
        part["thoughtSignature"] = signature
    return part


def _results(results: Sequence[CallResult]) -> Iterator[dict[str, Any]]:
    """One content with all responses, and one with their images, which responses can't have."""
    yield {"role": "user", "parts": [_response(result) for result in results]}
    images: list[dict[str, Any] | None] = []
    for result in results:
        found = [_part(block) for block in result.content if block["type"] == "image"]
        if found:
            images += [{"text": f"The image of {result.name}:"}, *found]
    if images:
        yield {"role": "user", "parts": images}


def _response(result: CallResult) -> dict[str, Any]:
    said = "error" if result.is_error else "output"
    response = {said: text_of(result.content)}
    return {"functionResponse": {"id": result.id, "name": result.name, "response": response}}
