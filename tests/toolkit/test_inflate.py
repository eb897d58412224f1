"""Packed bodies, within bounds."""

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.toolkit.inflate import Inflated


def raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "identity": lambda data: data,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw": raw,
    "parts": lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:]),
}
CODINGS = {"raw": "deflate", "parts": "gzip"}


@given(st.sampled_from(sorted(PACKERS)), st.binary(max_size=300), st.integers(1, 50))
def test_any_body_is_unpacked_in_any_pieces(name: str, data: bytes, size: int) -> None:
    packed = PACKERS[name](data)
    inflated = Inflated(CODINGS.get(name, name), 300)
    for at in range(0, len(packed), size):
        inflated.feed(packed[at : at + size])
    assert bytes(inflated.data) == data
    assert not inflated.is_cut


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_bomb_is_never_unpacked_whole(coding: str) -> None:
    bomb = PACKERS[coding](bytes(50_000_000))
    inflated = Inflated(coding, 1000)
    assert not inflated.feed(bomb)
    assert len(inflated.data) == 1000
    assert inflated.is_cut


def test_parts_that_unpack_to_nothing_come_to_an_end() -> None:
    inflated, nothing = Inflated("gzip", 1000), gzip.compress(b"")
    fed = 0
    while inflated.feed(nothing * 1000):
        fed += 1
        assert fed < 1000
    assert not inflated.data


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress"])
def test_other_codings_are_refused(coding: str) -> None:
    with pytest.raises(ValueError, match="not asked for"):
        Inflated(coding, 10)


@given(st.sampled_from(["gzip", "deflate"]), st.binary(max_size=100))
def test_what_is_not_packed_is_told(coding: str, data: bytes) -> None:
    told = ""
    try:
        Inflated(coding, 100).feed(data)
    except ValueError as error:
        told = str(error)
    assert not told or "can't be unpacked" in told
