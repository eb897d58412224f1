"""Connections to real servers, as httpx uses them: with TLS, kept, and given back."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable

import httpx
import pytest
import trustme

from runner.providers.transport import MOST_WAITING_BYTES, Transport

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(65536):
        writer.write(ANSWER)


async def served(
    talk: Talk,
    use: Callable[[httpx.AsyncClient, int], Awaitable[None]],
    *,
    server: ssl.SSLContext | None = None,
    client: ssl.SSLContext | None = None,
) -> None:
    talks: set[asyncio.Task[None] | None] = set()

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        with contextlib.suppress(OSError):
            await talk(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    listener = await asyncio.start_server(closing, "127.0.0.1", 0, ssl=server)
    transport = Transport(client, keep=2, keep_seconds=30)
    async with listener, httpx.AsyncClient(transport=transport, trust_env=False) as http:
        await use(http, listener.sockets[0].getsockname()[1])
    await asyncio.gather(*filter(None, talks))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def contexts(authority: trustme.CA, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


def test_tls_is_spoken_where_the_certificate_is_right(authority: trustme.CA) -> None:
    server, client = contexts(authority, "localhost")

    async def use(http: httpx.AsyncClient, port: int) -> None:
        for _ in range(2):
            got = await http.post(f"https://localhost:{port}/", content=b"hi")
            assert got.text == "ok"

    asyncio.run(served(answer, use, server=server, client=client))


def test_a_certificate_for_another_name_is_refused(authority: trustme.CA) -> None:
    server, client = contexts(authority, "example.org")

    async def use(http: httpx.AsyncClient, port: int) -> None:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await http.post(f"https://localhost:{port}/", content=b"the key")

    asyncio.run(served(answer, use, server=server, client=client))


def test_one_connection_serves_one_request_after_the_other() -> None:
    talks = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal talks
        talks += 1
        await answer(reader, writer)

    async def use(http: httpx.AsyncClient, port: int) -> None:
        for _ in range(5):
            assert (await http.get(f"http://127.0.0.1:{port}/")).text == "ok"
        assert talks == 1
        await asyncio.gather(*(http.get(f"http://127.0.0.1:{port}/") for _ in range(4)))
        assert talks == 4

    asyncio.run(served(talk, use))


def test_an_answer_that_was_not_read_whole_ends_its_connection() -> None:
    talks = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal talks
        talks += 1
        await reader.read(65536)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        await reader.read(1)

    async def use(http: httpx.AsyncClient, port: int) -> None:
        for _ in range(2):
            async with http.stream("GET", f"http://127.0.0.1:{port}/") as got:
                assert await anext(got.aiter_raw()) == b"half"
        assert talks == 2

    asyncio.run(served(talk, use))


def test_what_nobody_takes_is_not_read_from_the_server() -> None:
    sent = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.read(65536)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        block = b"x" * 65536
        while not writer.is_closing():
            writer.write(block)
            await writer.drain()
            sent += len(block)

    async def use(http: httpx.AsyncClient, port: int) -> None:
        async with http.stream("GET", f"http://127.0.0.1:{port}/") as got:
            before = -1
            while before != sent:
                before = sent
                await asyncio.sleep(0.1)
            # What the sockets of both sides hold besides is the system's, a few MiB.
            assert sent < MOST_WAITING_BYTES + 16 * 1024 * 1024
            taken = 0
            async for piece in got.aiter_raw():
                taken += len(piece)
                if taken > before + MOST_WAITING_BYTES:
                    break

    asyncio.run(served(talk, use))


def test_a_scheme_other_than_http_is_refused() -> None:
    async def use(http: httpx.AsyncClient, port: int) -> None:
        with pytest.raises(httpx.UnsupportedProtocol):
            await http.get(f"ftp://127.0.0.1:{port}/")

    asyncio.run(served(answer, use))
