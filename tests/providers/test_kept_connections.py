"""Connections that a server promised to keep, and did not."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from runner.error import ProviderError
from runner.providers.http import post
from runner.providers.settings import ModelSettings

ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9\r\n\r\ndata: a\n\n"
)


class Server:
    """Answers so many requests on a connection, then closes it when the next one has come."""

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.connections = 0
        self.requests = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError):
            for answered in range(self.answers + 1):
                await reader.readuntil(b"\r\n\r\n{}")
                self.requests += 1
                if answered < self.answers:
                    writer.write(ANSWER)
                    await writer.drain()
        writer.close()

    async def end(self) -> None:
        for writer in self.writers:
            writer.close()
            await writer.wait_closed()


def ask(server: Server, times: int) -> list[str]:
    async def run() -> list[str]:
        listener = await asyncio.start_server(server.talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
        got = []
        try:
            for _ in range(times):
                batches = post(url, b"{}", {}, settings=ModelSettings("openai", "m"))
                async with contextlib.aclosing(batches):
                    got += [data async for batch in batches for _, data in batch]
        finally:
            listener.close()
            await server.end()
        return got

    return asyncio.run(run())


def test_a_request_that_met_a_closed_connection_goes_over_a_new_one() -> None:
    server = Server(answers=1)
    assert ask(server, times=3) == ["a", "a", "a"]
    assert (server.connections, server.requests) == (3, 5)


def test_a_new_connection_that_is_closed_is_a_fault() -> None:
    server = Server(answers=0)
    with pytest.raises(ProviderError, match="broke") as caught:
        ask(server, times=1)
    assert caught.value.kind == "network"
    assert (server.connections, server.requests) == (1, 1)
