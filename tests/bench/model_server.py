"""A model server that costs next to nothing: it says what the name of the model asks for.

    python -m tests.bench.model_server            prints its port, and serves until it is killed

``turns-N`` calls ``echo`` N times, then answers; ``stream-N`` answers in N deltas; ``sleep-N`` and
``block-N`` call that tool N times in one turn, then answer. Chat completions, streamed, each event
in an HTTP chunk of its own, as servers send them. An answer is encoded once.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
from typing import Any

MODEL = re.compile(rb'"model":\s*"(turns|stream|sleep|block)-(\d+)"')
RESULT = re.compile(rb'"role":\s*"tool"')
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One event of a chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    said = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return chunk(b"data: " + json.dumps(said).encode() + b"\n\n")


def call(index: int, name: str, arguments: dict[str, Any], number: int) -> list[bytes]:
    """A call whose arguments come in three deltas."""
    text = json.dumps(arguments)
    third = -(-len(text) // 3)
    head = {"name": name, "arguments": ""}
    first = {"index": index, "id": f"call_{number}_{index}", "type": "function", "function": head}
    parts = [
        {"index": index, "function": {"arguments": text[at : at + third]}}
        for at in range(0, len(text), third)
    ]
    return [event({"tool_calls": [part]}) for part in (first, *parts)]


@functools.cache
def answer(kind: str, number: int, results: int) -> bytes:
    """The whole answer, after so many results."""
    calls = 1 if kind == "turns" else number
    if kind == "stream":
        events = [event({"content": f"{index % 1000:03d} "}) for index in range(number)]
    elif results >= (number if kind == "turns" else calls):
        events = [event({"content": "All "}), event({"content": "done."})]
    elif kind == "turns":
        events = call(0, "echo", {"text": f"step {results} " + "x" * 100}, results)
    else:
        events = [one for index in range(calls) for one in call(index, kind, {"ms": 50}, 0)]
    finish = "tool_calls" if b"tool_calls" in events[0] else "stop"
    ends = [event({}, finish), chunk(b"data: [DONE]\n\n"), b"0\r\n\r\n"]
    return HEAD + b"".join(events + ends)


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request after the other."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            asked = MODEL.search(body)
            if asked is None:
                raise ValueError("the request names no model that this server knows")
            results = len(RESULT.findall(body))
            writer.write(answer(asked[1].decode(), int(asked[2]), results))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    """Serve on a free port of this machine."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
