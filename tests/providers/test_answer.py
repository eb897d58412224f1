"""An HTTP/1.1 answer, in pieces of any size."""

from __future__ import annotations

import contextlib
import itertools

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.providers.answer import MOST_HEAD_BYTES, AnswerReader

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def read(data: bytes, cuts: tuple[int, ...] = ()) -> AnswerReader:
    answer = AnswerReader()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(places):
        answer.feed(data[start:end])
    return answer


def chunked(pieces: list[bytes]) -> bytes:
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece)
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nX-Trailer: 1\r\n\r\n"


PIECES = st.lists(st.binary(max_size=40), max_size=8)
CUTS = st.lists(st.integers(0, 400), max_size=12).map(tuple)


@given(PIECES, CUTS)
def test_chunks_are_one_body_however_they_are_cut(
    pieces: list[bytes], cuts: tuple[int, ...]
) -> None:
    answer = read(chunked(pieces), cuts)
    assert b"".join(answer.pieces) == b"".join(pieces)
    assert (answer.status, answer.done, answer.keep) == (200, True, True)
    assert [name for name, _ in answer.headers] == [b"Content-Type", b"Transfer-Encoding"]


@given(PIECES, CUTS)
def test_a_body_of_a_known_length_ends_there(pieces: list[bytes], cuts: tuple[int, ...]) -> None:
    body = b"".join(pieces)
    answer = read(HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body), cuts)
    assert b"".join(answer.pieces) == body
    assert (answer.done, answer.keep) == (True, True)


@given(PIECES, CUTS)
def test_a_body_of_unknown_length_ends_with_the_connection(
    pieces: list[bytes], cuts: tuple[int, ...]
) -> None:
    body = b"".join(pieces)
    answer = read(HEAD + b"\r\n" + body, cuts)
    assert b"".join(answer.pieces) == body
    assert not answer.done
    answer.end()
    assert (answer.done, answer.keep) == (True, False)


@given(st.binary(max_size=200), CUTS)
def test_bytes_that_are_no_answer_are_a_fault_or_wait_for_more(
    data: bytes, cuts: tuple[int, ...]
) -> None:
    with contextlib.suppress(httpx.RemoteProtocolError):
        answer = read(data, cuts)
        answer.end()
        assert answer.status >= 200


def test_an_interim_answer_is_passed_over() -> None:
    answer = read(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + chunked([b"a"]))
    assert (answer.status, answer.pieces) == (200, [b"a"])
    assert (b"Link", b"x") not in answer.headers


def test_lines_may_end_at_a_line_feed() -> None:
    answer = read(b"HTTP/1.1 200 OK\nContent-Length: 1\n\na")
    assert (answer.pieces, answer.done) == ([b"a"], True)


@pytest.mark.parametrize("more", [b"x", b"HTTP/1.1 500 Second\r\nContent-Length: 1\r\n\r\nb"])
@pytest.mark.parametrize("at_once", [True, False])
def test_what_nobody_asked_for_ends_the_use_of_a_connection(more: bytes, at_once: bool) -> None:
    whole = HEAD + b"Content-Length: 1\r\n\r\na"
    answer = read(whole + more, () if at_once else (len(whole),))
    assert (answer.status, answer.pieces, answer.done, answer.keep) == (200, [b"a"], True, False)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not HTTP/1.1"),
        (HEAD + b"Content-Length: many\r\n\r\n", "Content-Length"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk size"),
        (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", "Content-Length"),
        (b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "other than HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * MOST_HEAD_BYTES, "no end"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, says: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError, match=says):
        read(data)


@pytest.mark.parametrize("data", [b"", HEAD, chunked([b"abc"])[:-1]])
def test_an_answer_that_is_cut_off_is_a_fault(data: bytes) -> None:
    answer = read(data)
    with pytest.raises(httpx.RemoteProtocolError, match="closed"):
        answer.end()
