"""Numbers by short keys of equal length, in a few bytes each: there may be millions of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_VALUE = struct.Struct("<Q")
_NONE, _TAKEN_OUT = 0, 2**64 - 1
_FIRST_SLOTS = 1 << 10


class Table:
    """A hash table with open addressing: each slot is a key and its number, which is kept plus 1.

    Args:
        width: Bytes of a key, of which the first eight are as good as random; ≥ 8.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._size = width + _VALUE.size
        self._slots = _FIRST_SLOTS
        self._data = bytearray(self._slots * self._size)
        self._used = 0
        """Slots with a key, those that were taken out included."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, key: bytes) -> int | None:
        """The number of a key; None where there is none."""
        number = self._number_at(self._slot_of(key))
        return None if number in (_NONE, _TAKEN_OUT) else number - 1

    def put(self, key: bytes, number: int) -> None:
        """Keep a number from 0 by a key, in place of the one before."""
        if 3 * self._used >= 2 * self._slots:
            self._grow()
        slot = self._slot_of(key)
        before = self._number_at(slot)
        self._used += before == _NONE
        self._count += before in (_NONE, _TAKEN_OUT)
        self._data[slot : slot + self._width] = key
        _VALUE.pack_into(self._data, slot + self._width, number + 1)

    def take_out(self, key: bytes) -> None:
        """Have no number by a key any more."""
        slot = self._slot_of(key)
        if self._number_at(slot) not in (_NONE, _TAKEN_OUT):
            self._count -= 1
            _VALUE.pack_into(self._data, slot + self._width, _TAKEN_OUT)

    def numbers(self) -> Iterator[int]:
        """All numbers, in any order. What is put meanwhile may be among them or not."""
        data, size, width = self._data, self._size, self._width
        for slot in range(0, len(data), size):
            (number,) = _VALUE.unpack_from(data, slot + width)
            if number not in (_NONE, _TAKEN_OUT):
                yield number - 1

    def _number_at(self, slot: int) -> int:
        number: int = _VALUE.unpack_from(self._data, slot + self._width)[0]
        return number

    def _slot_of(self, key: bytes) -> int:
        """Where a key is, or would be put."""
        data, size, width = self._data, self._size, self._width
        index = int.from_bytes(key[:8], "little") % self._slots
        while True:
            slot = index * size
            if data[slot : slot + width] == key or self._number_at(slot) == _NONE:
                return slot
            index = (index + 1) % self._slots

    def _grow(self) -> None:
        old, size, width = self._data, self._size, self._width
        self._slots *= 2
        self._data = bytearray(self._slots * size)
        self._used = self._count = 0
        for slot in range(0, len(old), size):
            (number,) = _VALUE.unpack_from(old, slot + width)
            if number not in (_NONE, _TAKEN_OUT):
                self.put(bytes(old[slot : slot + width]), number - 1)
