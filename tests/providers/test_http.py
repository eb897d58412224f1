"""One request and its answer, against a server that answers with given bytes."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.error import ProviderError
from runner.providers import clients, http
from runner.providers.http import post, settle
from runner.providers.settings import ModelSettings
from runner.providers.sse import Event

KEY = "sk-never-to-be-shown"
KEEP = b"connection: keep-alive"
"""The server reads another request after an answer that has this."""
STREAM = b"event: x\ndata: \xc3\xbc\n\ndata: b\n\n"
EVENTS: list[Event] = [("x", "ü"), ("", "b")]


class Server:
    """Gives each request the next answer, which is the pieces of it; the last one again and again.

    A number among the pieces is a pause in seconds; ``None`` holds the connection open.
    """

    def __init__(self, *answers: Sequence[bytes | float | None]) -> None:
        self.answers = list(answers)
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.closed_by_client = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await self.exchange(reader, writer):
                pass
        writer.close()

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(int(length)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        for piece in answer:
            if piece is None:
                self.closed_by_client += not await reader.read(1)
                return False
            if isinstance(piece, bytes):
                writer.write(piece)
                await writer.drain()
            await asyncio.sleep(piece if isinstance(piece, float) else 0)
        return KEEP in b"".join(piece for piece in answer if isinstance(piece, bytes))

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        listener = await asyncio.start_server(self.talk, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        finally:
            listener.close()
            for writer in self.writers:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()


def answer(body: bytes = STREAM, status: str = "200 OK", **headers: str) -> list[bytes]:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", KEEP.decode()]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ["\r\n".join((*lines, "", "")).encode(), body]


def model(connect: float = 5, idle: float = 5) -> ModelSettings:
    return ModelSettings("openai", "m", connect_timeout=connect, idle_timeout=idle)


async def events_of(url: str, options: ModelSettings | None = None, **other: Any) -> list[Event]:
    headers = {"authorization": f"Bearer {KEY}"}
    batches = post(url, b"{}", headers, settings=options or model(), secret=KEY, **other)
    async with contextlib.aclosing(batches):
        return [event async for batch in batches for event in batch]


def ask(*answers: Sequence[bytes | float | None], idle: float = 5) -> list[Event]:
    async def run() -> list[Event]:
        async with Server(*answers).open() as url:
            return await events_of(url, model(idle=idle))

    return asyncio.run(run())


def fault(*answers: Sequence[bytes | float | None], idle: float = 5) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(*answers, idle=idle)
    assert KEY not in str(caught.value)
    assert len(str(caught.value)) <= 300
    return caught.value


# --- what comes back ------------------------------------------------------------------------------


def test_a_stream_comes_as_its_events() -> None:
    assert ask(answer()) == EVENTS


def chunked(*chunks: bytes) -> list[bytes]:
    coded = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", coded + b"0\r\n\r\n"]


@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=6).map(sorted))
@settings(max_examples=25, deadline=None)
def test_a_stream_may_be_cut_anywhere(places: list[int]) -> None:
    pieces = [
        STREAM[a:b] for a, b in zip([0, *places], [*places, len(STREAM)], strict=True) if a < b
    ]
    assert ask(chunked(*pieces)) == EVENTS


@pytest.mark.parametrize(
    ("coding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress)],
)
def test_a_coding_that_was_not_asked_for_is_undone(
    coding: str, encode: Callable[[bytes], bytes]
) -> None:
    assert ask(answer(encode(STREAM), content_encoding=coding)) == EVENTS


def test_a_broken_coding_is_a_fault() -> None:
    assert fault(answer(b"\x1f\x8bnonsense", content_encoding="gzip")).kind == "protocol"


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b" \n"])
def test_json_in_place_of_a_stream_is_one_event(start: bytes) -> None:
    for content_type in ("application/json", "text/event-stream"):
        body = start + b'{"a":\n\n1}'
        assert ask(answer(body, content_type=content_type)) == [("", '{"a":\n\n1}')]


def test_a_page_in_place_of_a_stream_is_a_fault() -> None:
    error = fault(answer(b"<html><title>Log in</title>" + b"<p>" * 999 + b"</html>"))
    assert error.kind == "protocol"
    assert "base_url" in str(error)
    assert "Log in" in str(error)


def test_an_answer_without_a_body_has_no_events() -> None:
    assert ask(answer(b"")) == []


# --- what goes out --------------------------------------------------------------------------------


def test_a_request_says_who_sends_what() -> None:
    async def run() -> Server:
        server = Server(answer())
        async with server.open() as url:
            await events_of(url + "/v1/x?y=1")
        return server

    server = asyncio.run(run())
    head = server.heads[0].lower()
    assert head.startswith("post /v1/x?y=1 http/1.1\r\n")
    assert f"\r\nauthorization: bearer {KEY}\r\n" in head
    assert "\r\nuser-agent: pi-run/" in head
    assert "\r\ncontent-type: application/json\r\n" in head
    assert server.bodies == [b"{}"]


@pytest.mark.parametrize("value", ["key\n", "k\r\nx: y", " sk-x", "schlüssel", "k\x00"])
def test_a_key_that_no_header_can_hold_is_not_shown(value: str) -> None:
    async def run() -> None:
        batches = post("http://127.0.0.1:1", b"", {"x-key": value}, settings=model(), secret=value)
        async with contextlib.aclosing(batches):
            await anext(batches)

    with pytest.raises(ProviderError, match="x-key") as caught:
        asyncio.run(run())
    assert caught.value.kind == "auth"
    assert value not in str(caught.value)


# --- what goes wrong ------------------------------------------------------------------------------


def test_the_key_is_taken_nowhere_else() -> None:
    async def run() -> tuple[Server, ProviderError]:
        other, server = Server(answer()), Server()
        async with other.open() as elsewhere, server.open() as url:
            server.answers = [answer(b"", "307 Moved", location=f"{elsewhere}/{KEY}")]
            with pytest.raises(ProviderError) as caught:
                await events_of(url)
        return other, caught.value

    other, error = asyncio.run(run())
    assert other.heads == []
    assert (error.kind, error.status) == ("not_found", 307)
    assert "redirects to http://127.0.0.1" in str(error)
    assert KEY not in str(error)


def test_an_error_has_the_servers_words_and_wait() -> None:
    body = b'{"error": {"message": "Slow down, ' + KEY.encode() + b'"}}'
    error = fault(answer(body, "429 Too Many", retry_after="7"))
    assert (error.kind, error.status, error.retry_after) == ("rate_limit", 429, 7)
    assert str(error) == "Slow down, [key]"


def test_an_error_that_is_coded_is_read() -> None:
    body = gzip.compress(b'{"error": "Out of order"}')
    assert str(fault(answer(body, "500 Oh", content_encoding="gzip"))) == "Out of order"


def test_an_error_without_end_is_read_as_far_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_ERROR_SECONDS", 0.1)
    error = fault([b"HTTP/1.1 503 Oh\r\n\r\nLoad", b"ing", None])
    assert (error.kind, str(error)) == ("overloaded", "Loading")
    assert "x" * 200 in str(fault([b"HTTP/1.1 500 Oh\r\n\r\n", *[b"x" * 9000] * 20, None]))


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b"HTTP/1.1 200 OK\r\n"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", STREAM],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\nda"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nda"],
        [b"SSH-2.0-OpenSSH_9.6\r\n"],
        [b"\x15\x03\x01\x00\x02\x02\x50"],
    ],
)
def test_a_connection_that_breaks_is_a_fault(pieces: list[bytes]) -> None:
    assert fault(pieces).kind == "network"


@pytest.mark.parametrize(
    "pieces",
    [[None], [b"HTTP/1.1 200 OK\r\n", None], [b"HTTP/1.1 200 OK\r\n\r\ndata: a\n\n", None]],
)
def test_a_server_that_falls_silent_is_a_fault(pieces: list[bytes | None]) -> None:
    error = fault(pieces, idle=0.1)
    assert error.kind == "timeout"
    assert "0.1 s" in str(error)


def test_any_byte_shows_that_a_server_is_alive() -> None:
    pings: list[bytes | float] = [b": ping\n", 0.12] * 4
    assert ask([b"HTTP/1.1 200 OK\r\n\r\n", *pings, STREAM], idle=0.4) == EVENTS


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://user:word@127.0.0.1:1/v1"])
def test_a_server_that_is_not_there_is_named(url: str) -> None:
    with pytest.raises(ProviderError, match=r"can't connect to 127\.0\.0\.1:1: ") as caught:
        asyncio.run(events_of(url))
    assert caught.value.kind == "network"
    assert "word" not in str(caught.value)


@given(st.binary(max_size=200))
@settings(max_examples=40, deadline=None)
def test_any_bytes_for_an_answer_are_events_or_a_fault(body: bytes) -> None:
    for pieces in ([body], [b"HTTP/1.1 200 OK\r\n\r\n", body], [b"HTTP/1.1 500 Oh\r\n\r\n", body]):
        with contextlib.suppress(ProviderError):
            ask(pieces)


# --- connections ----------------------------------------------------------------------------------


def run_on(server: Server, work: Callable[[str], Any]) -> None:
    async def run() -> None:
        async with server.open() as url:
            await work(url)

    asyncio.run(run())


def test_requests_share_connections() -> None:
    server = Server(answer())

    async def work(url: str) -> None:
        for _ in range(3):
            await asyncio.gather(events_of(url), events_of(url))

    run_on(server, work)
    assert len(server.heads) == 6
    assert server.connections == 2


def test_a_stream_that_is_left_early_lets_go_of_its_connection() -> None:
    server = Server([b"HTTP/1.1 200 OK\r\n\r\ndata: a\n\n", None])

    async def work(url: str) -> None:
        batches = post(url, b"{}", {}, settings=model())
        async with contextlib.aclosing(batches):
            assert await anext(batches) == [("", "a")]
        await asyncio.sleep(0.05)

    run_on(server, work)
    assert server.closed_by_client == 1


def test_a_request_that_is_cancelled_lets_go_of_its_connection() -> None:
    server = Server([None])

    async def work(url: str) -> None:
        task = asyncio.create_task(events_of(url))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)

    run_on(server, work)
    assert server.closed_by_client == 1


@pytest.mark.parametrize(("rest", "connections"), [([b"0\r\n\r\n"], 1), ([0.5, b"0\r\n\r\n"], 2)])
def test_what_follows_the_mark_is_waited_for_briefly(rest: list[Any], connections: int) -> None:
    head = b"HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n"
    server = Server([head, b"9\r\ndata: a\n\n\r\n", *rest])

    async def work(url: str) -> None:
        for _ in range(2):
            batches = post(url, b"{}", {}, settings=model())
            async with contextlib.aclosing(batches):
                assert await anext(batches) == [("", "a")]
                await settle(batches)

    run_on(server, work)
    assert server.connections == connections


def test_certificates_are_loaded_for_no_http_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded() -> None:
        raise AssertionError("the certificates were loaded")

    monkeypatch.setattr(clients, "_tls", loaded)
    assert ask(answer()) == EVENTS


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_this_machine_is_reached_past_all_proxies(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert ask(answer()) == EVENTS


def test_other_machines_are_reached_by_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(answer())

    async def work(url: str) -> None:
        monkeypatch.setenv("HTTP_PROXY", url)
        assert await events_of("http://far.example/v1") == EVENTS

    run_on(server, work)
    assert server.heads[0].startswith("POST http://far.example/v1 HTTP/1.1")
