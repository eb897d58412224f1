"""The body of an HTTP answer, unpacked within a bound: a few bytes can stand for gigabytes."""

from __future__ import annotations

import zlib

_GZIP, _ZLIB, _RAW = 31, 15, -15
"""Window bits, by which zlib is told what it reads."""
_MAGIC = b"\x1f\x8b"
"""How a part by gzip begins."""
_SPARE = 1 << 20
"""Bytes that a packed body may have beyond the bound: most of those unpack to nothing."""


class Inflated:
    """What was unpacked so far, of at most ``limit`` bytes.

    Args:
        coding: Of the header ``Content-Encoding``, in lower case.
        limit: Bytes.

    Raises:
        ValueError: for a coding that is not known; in `feed` too, for what can't be unpacked.
    """

    def __init__(self, coding: str, limit: int) -> None:
        if coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ValueError(f"the answer is packed by {coding!r:.40}, which was not asked for")
        self.data = bytearray()
        self.is_cut = False
        """Whether there was more."""
        self._coding = coding
        self._limit = limit
        self._packed = 0
        self._rest = b""
        """What came and was not unpacked yet."""
        self._unpack: zlib._Decompress | None = None
        self._parts = 0
        """How many there were: a body by gzip may be several, one after the other."""

    def feed(self, piece: bytes) -> bool:
        """Take what came next; whether more is wanted."""
        self._packed += len(piece)
        if self._packed > self._limit + _SPARE:
            self.is_cut = True
        elif self._coding in ("", "identity"):
            self._keep(piece)
        else:
            self._rest += piece
            self._inflate()
        return not self.is_cut

    def _keep(self, data: bytes) -> None:
        room = self._limit - len(self.data)
        self.data += data[:room]
        self.is_cut = self.is_cut or len(data) > room

    def _inflate(self) -> None:
        while self._rest and not self.is_cut:
            if self._unpack is None:
                if len(self._rest) < 2:
                    return  # what it is shows in two bytes
                self._unpack = self._begin(self._rest)
            if self._unpack is None:
                self._rest = b""
                return
            try:
                got = self._unpack.decompress(self._rest, self._limit - len(self.data) + 1)
            except zlib.error as error:
                raise ValueError(f"the answer can't be unpacked: {error}") from None
            self._keep(got)
            self._rest = self._unpack.unconsumed_tail
            if self._unpack.eof:
                self._rest, self._unpack = self._unpack.unused_data, None
                self._parts += 1

    def _begin(self, start: bytes) -> zlib._Decompress | None:
        """What unpacks the part that begins like this; None for what follows the last one."""
        if self._parts and not (self._coding != "deflate" and start.startswith(_MAGIC)):
            return None
        if self._coding != "deflate":
            return zlib.decompressobj(_GZIP)
        # Servers mean either of two formats by this name; a zlib stream begins like this.
        is_zlib = start[0] & 0x0F == 8 and int.from_bytes(start[:2]) % 31 == 0
        return zlib.decompressobj(_ZLIB if is_zlib else _RAW)
