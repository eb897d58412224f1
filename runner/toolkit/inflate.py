"""The body of an HTTP answer, unpacked within a bound: a few bytes can stand for gigabytes."""

from __future__ import annotations

import zlib

_GZIP, _ZLIB, _RAW = 31, 15, -15
"""Window bits, by which zlib is told what it reads."""
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
        self._start = b""
        """What came of a body in one of the two formats of ``deflate``, until it is clear which."""
        self._unpack = None if coding in ("", "identity") else self._new(b"")

    def feed(self, piece: bytes) -> bool:
        """Take what came next; whether more is wanted."""
        self._packed += len(piece)
        if self._packed > self._limit + _SPARE:
            self.is_cut = True
        elif self._unpack is None:
            self._keep(piece)
        elif self._coding != "deflate" or self._packed - len(piece) >= 2:
            self._inflate(piece)
        else:
            self._start += piece
            if len(self._start) >= 2:
                self._unpack = self._new(self._start)
                self._inflate(self._start)
        return not self.is_cut

    def _keep(self, data: bytes) -> None:
        room = self._limit - len(self.data)
        self.data += data[:room]
        self.is_cut = self.is_cut or len(data) > room

    def _inflate(self, piece: bytes) -> None:
        while piece and not self.is_cut:
            assert self._unpack is not None
            try:
                got = self._unpack.decompress(piece, self._limit - len(self.data) + 1)
            except zlib.error as error:
                raise ValueError(f"the answer can't be unpacked: {error}") from None
            self._keep(got)
            piece = self._unpack.unconsumed_tail
            if self._unpack.eof:
                # Gzip may be several parts, one after the other; what else follows is no content.
                piece = self._unpack.unused_data if self._coding != "deflate" else b""
                self._unpack = self._new(piece)
                if not piece.startswith(b"\x1f\x8b"):
                    return

    def _new(self, start: bytes) -> zlib._Decompress:
        if self._coding != "deflate":
            return zlib.decompressobj(_GZIP)
        # Servers mean either of two formats by this name; a zlib stream begins like this.
        is_zlib = not start or (start[0] & 0x0F == 8 and int.from_bytes(start[:2]) % 31 == 0)
        return zlib.decompressobj(_ZLIB if is_zlib else _RAW)
