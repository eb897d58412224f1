from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.server import feed as feed_module
from runner.server.feed import Feed, Reader, frames_of


def _frames(lines: list[str], first: int = 0) -> bytes:
    return frames_of([line.encode() for line in lines], first)


async def _rest(reader: Reader) -> bytes:
    got = b""
    while data := await reader.read():
        got += data
    return got


_batches = st.lists(st.lists(st.text("aé漢", max_size=40), min_size=1, max_size=6), max_size=12)


@settings(deadline=None, max_examples=60)
@given(batches=_batches, tail=st.integers(0, 200), starts=st.lists(st.integers(0, 80), max_size=4))
def test_each_reader_gets_each_line_once_wherever_it_begins(
    batches: list[list[str]], tail: int, starts: list[int], tmp_path_factory: object
) -> None:
    folder = tmp_path_factory.mktemp("feed")  # type: ignore[attr-defined]
    asyncio.run(_read_all(folder / "log.jsonl", batches, tail, starts))


async def _read_all(path: Path, batches: list[list[str]], tail: int, starts: list[int]) -> None:
    before, feed_module.TAIL = feed_module.TAIL, tail
    try:
        feed, lines = Feed(path), [line for batch in batches for line in batch]
        following, got = Reader(feed), b""
        late = [(start, Reader(feed, start)) for start in starts if start <= len(lines)]
        with path.open("w", encoding="utf-8") as file:
            for batch in batches:
                text = "".join(f"{line}\n" for line in batch)
                file.write(text)
                file.flush()
                feed.append(text)
                got += await _rest(following)
                assert got == _frames(lines[: feed.count])
        for start, reader in late[::2]:
            assert await _rest(reader) == _frames(lines[start:], start)
        feed.end()
        assert await _rest(following) == b""
        for start, reader in late[1::2]:
            assert await _rest(reader) == _frames(lines[start:], start)
    finally:
        feed_module.TAIL = before


def test_what_is_held_is_bounded(tmp_path: Path) -> None:
    async def hold() -> int:
        path = tmp_path / "log.jsonl"
        feed = Feed(path)
        with path.open("w", encoding="utf-8") as file:
            for _ in range(2000):
                text = "x" * 1000 + "\n"
                file.write(text)
                feed.append(text)
        return sum(len(piece.frames) for piece in feed._tail)

    assert asyncio.run(hold()) <= feed_module.TAIL


def test_a_line_that_is_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = ["x" * (feed_module.BLOCK * 5), "y"]
    path.write_text("".join(f"{line}\n" for line in lines) + "torn", encoding="utf-8")
    feed = Feed(path, ended=True)
    assert asyncio.run(_rest(Reader(feed))) == _frames(lines)
    assert asyncio.run(_rest(Reader(feed, 1))) == _frames(lines[1:], 1)
    assert asyncio.run(_rest(Reader(feed, 2))) == b""
    assert asyncio.run(_rest(Reader(feed, 9))) == b""
