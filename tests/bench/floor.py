"""The barest loop that does pi-run's work by httpx and json, its log included: our floor."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from tests.bench import bench_tools

SYSTEM = "You are a benchmark's agent. Call the tools that you are told to call."
PROMPT = "Do the steps one after another, then say that all is done."


def described(name: str, argument: str, kind: str) -> dict[str, Any]:
    """A tool, as the model gets it."""
    parameters = {"type": "object", "properties": {argument: {"type": kind}}}
    function = {"name": name, "parameters": parameters | {"required": [argument]}}
    return {"type": "function", "function": function}


TOOLS = [
    described("echo", "text", "string"),
    described("sleep", "ms", "integer"),
    described("block", "ms", "integer"),
]


class Floor:
    """Runs as pi-run's contender does, over one client that all runs share."""

    def __init__(self, port: int, folder: Path) -> None:
        self.base = f"http://127.0.0.1:{port}/v1"
        self.folder = folder
        self.client = httpx.AsyncClient(headers={"authorization": "Bearer sk-bench"}, timeout=60)
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))

    async def one(self, model: str, number: int) -> tuple[int, int]:
        """One run; gives its turns and its deltas of text."""
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": PROMPT},
        ]
        turns = deltas = 0
        with (self.folder / f"floor-{number}.jsonl").open("w", encoding="utf-8") as log:
            while True:
                turns += 1
                text = ""
                calls: dict[int, dict[str, Any]] = {}
                async for delta in self._deltas(model, messages):
                    log.write(json.dumps({"type": "message_update", "delta": delta}) + "\n")
                    if said := delta.get("content"):
                        deltas += 1
                        text += said
                    for part in delta.get("tool_calls", ()):
                        whole = calls.setdefault(part["index"], part)
                        if whole is not part:
                            whole["function"]["arguments"] += part["function"]["arguments"]
                message: dict[str, Any] = {"role": "assistant", "content": text}
                if calls:
                    message["tool_calls"] = list(calls.values())
                messages.append(message)
                log.write(json.dumps({"type": "message_end", "message": message}) + "\n")
                if not calls:
                    return turns, deltas
                messages += await asyncio.gather(*(self._call(c, log) for c in calls.values()))
                log.flush()

    async def _deltas(
        self, model: str, messages: list[dict[str, Any]]
    ) -> AsyncIterator[dict[str, Any]]:
        body = {"model": model, "messages": messages, "tools": TOOLS, "stream": True}
        url = f"{self.base}/chat/completions"
        async with self.client.stream("POST", url, json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    for choice in json.loads(line[6:])["choices"]:
                        yield choice["delta"]

    async def _call(self, call: dict[str, Any], log: Any) -> dict[str, Any]:
        arguments = json.loads(call["function"]["arguments"])
        log.write(json.dumps({"type": "tool_execution_start", "id": call["id"]}) + "\n")
        tool = getattr(bench_tools, call["function"]["name"])
        if inspect.iscoroutinefunction(tool):
            result = await tool(**arguments)
        else:
            result = await asyncio.to_thread(tool, **arguments)
        log.write(json.dumps({"type": "tool_execution_end", "result": result}) + "\n")
        return {"role": "tool", "tool_call_id": call["id"], "content": result}
