"""Server-sent events out of bytes that are cut anywhere."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.error import ProviderError
from runner.providers import sse
from runner.providers.sse import Event, SseReader


def read(*chunks: bytes) -> list[Event]:
    reader = SseReader()
    return [*itertools.chain.from_iterable(map(reader.feed, chunks)), *reader.end()]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[start:end] for start, end in itertools.pairwise(edges)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [("", "a"), ("", "b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [("", "a"), ("", "b")]),
        (b"data: a\r\rdata: b\r\r", [("", "a"), ("", "b")]),
        (b"data: a\r\n\ndata: b\n\r\n", [("", "a"), ("", "b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("", "a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"data:a\n\ndata:  b\n\n", [("", "a"), ("", " b")]),
        (b": comment\ndata: a\n:\n\n: ping\n\n", [("", "a")]),
        (b"data: {\ndata:  1\ndata\ndata: }\n\n", [("", "{\n 1\n\n}")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [("x", "a"), ("", "b")]),
        (b"event: x\n\ndata: b\n\n", [("", "b")]),
        (b"data: a\nevent:x\n\n", [("x", "a")]),
        (b"id: 7\nretry: 10\nnonsense\ndata: a\n\n", [("", "a")]),
        (b"data: a", [("", "a")]),
        (b"data: a\n", [("", "a")]),
        (b"data\n\n", [("", "")]),
        (
            "data: a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\n\n".encode(),
            [("", "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg")],
        ),
        (b"data: \xff\xfe\n\n", [("", "\ufffd\ufffd")]),
        (b"", []),
        (b"\n\n\r\n", []),
    ],
)
def test_a_stream_gives_its_events_however_it_is_cut(stream: bytes, events: list[Event]) -> None:
    assert read(stream) == events
    assert read(*(stream[n : n + 1] for n in range(len(stream)))) == events
    for place in range(len(stream)):
        assert read(stream[:place], stream[place:]) == events


LINES = st.sampled_from(
    ["data: a", 'data:{"b": "ü🙂\u2028"}', "data", "event: e", ": c", "id: 1", "", "", "nonsense"]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(st.lists(st.tuples(LINES, ENDS)), st.lists(st.integers(0, 1 << 16), max_size=20))
def test_no_cut_changes_what_is_read(lines: list[tuple[str, str]], places: list[int]) -> None:
    stream = "".join(line + end for line, end in lines).encode()
    assert read(*cut(stream, places)) == read(stream)


@given(st.binary(), st.lists(st.integers(0, 1 << 16), max_size=20))
def test_any_bytes_can_be_read(stream: bytes, places: list[int]) -> None:
    assert read(*cut(stream, places)) == read(stream)


@pytest.mark.parametrize("line", [b"data: " + b"x" * 100, b"data: x\n" * 20, b": c\n" * 30])
def test_an_event_without_end_is_a_fault(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MOST_BYTES", 60)
    with pytest.raises(ProviderError, match="longer than"):
        read(line[:50], line[50:])
