"""The pieces that every answer is put together from, whatever its format calls them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Hashable, Iterator
from typing import Any

from runner.engine.contract import BlockEnd, StreamEvent, ToolCallDelta, ToolCallStart
from runner.engine.message import Usage
from runner.providers.body import whole


class Blocks:
    """Gives each block of an answer its index, in the order in which the blocks begin."""

    __slots__ = ("_halves", "_indexes", "count")

    def __init__(self) -> None:
        self.count = 0
        """How many blocks there are."""
        self._indexes: dict[Hashable, int] = {}
        self._halves: dict[int, str] = {}

    def open(self, key: Hashable) -> int:
        """A new block. A block that had this key before is not found by it any more."""
        index = self._indexes[key] = self.count
        self.count += 1
        return index

    def find(self, key: Hashable) -> int | None:
        """The index of the newest block with a key."""
        return self._indexes.get(key)

    def of(self, key: Hashable) -> int:
        """The index of the block with a key, which is opened where there is none."""
        index = self._indexes.get(key)
        return self.open(key) if index is None else index

    def close(self, key: Hashable) -> None:
        """Forget a key: what comes with it again is another block."""
        self._indexes.pop(key, None)

    def joined(self, index: int, text: str) -> str:
        """What can be given out of a block's text now that this piece of it came.

        A piece may end in the middle of a surrogate pair; its half waits for the other.
        """
        if self._halves and (half := self._halves.pop(index, "")):
            text = whole(half + text[:1]) + text[1:]
        if "\ud800" <= text[-1:] <= "\udbff":
            self._halves[index] = text[-1]
            return text[:-1]
        return text


class Call:
    """A tool call while it comes in.

    Its start is given out with its first arguments, since until then its name may still grow.
    """

    __slots__ = ("_whole", "id", "index", "name", "pieces", "size", "started")

    def __init__(self, index: int, id: str, name: str) -> None:
        self.index = index
        self.id = id
        self.name = name
        self.pieces: list[str] = []
        self.size = 0
        self.started = False
        self._whole: str | None = None

    def text(self) -> str:
        """The arguments so far."""
        return "".join(self.pieces)

    def start(self) -> Iterator[StreamEvent]:
        """Its beginning, where that is still to be given out."""
        if not self.started:
            self.started = True
            yield ToolCallStart(self.index, self.id, self.name)

    def add(self, arguments: str) -> Iterator[StreamEvent]:
        """A piece of its arguments; not one that repeats all that came before."""
        if arguments and not self.repeats(arguments):
            yield from self.start()
            self.pieces.append(arguments)
            self.size += len(arguments)
            yield ToolCallDelta(self.index, arguments)

    def complete(self, arguments: str) -> Iterator[StreamEvent]:
        """All of its arguments, of which some or all may have come already.

        They hold where the pieces said something else.
        """
        text = self.text()
        if arguments.startswith(text):
            yield from self.add(arguments[len(text) :])
        elif arguments:
            self._whole = arguments

    def end(self, signature: str | None = None) -> Iterator[StreamEvent]:
        """Its end, where there is something to say of it."""
        yield from self.start()
        arguments: dict[str, Any] | str | None = meant(self.text())
        if self._whole is not None:
            value = loads(self._whole)
            arguments = meant(self._whole) or (value if isinstance(value, dict) else self._whole)
        if arguments is not None or signature is not None:
            yield BlockEnd(self.index, signature=signature, arguments=arguments)

    def is_whole(self) -> bool:
        """Whether the arguments so far are an object."""
        return bool(self.pieces) and self.pieces[-1].rstrip()[-1:] == "}" and is_object(self.text())

    def repeats(self, arguments: str) -> bool:
        """Whether a piece says again what the arguments so far say."""
        # A whole object in one piece, after some of one: rare enough to be looked at closely.
        if not self.size or arguments[:1] != "{" or arguments[-1:] != "}":
            return False
        text = self.text()
        return text == arguments if not is_object(text) else loads(text) == loads(arguments)


def loads(text: str) -> Any:
    """A JSON value; None where it is not JSON."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    return None


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    return text.lstrip()[:1] == "{" and isinstance(loads(text), dict)


def meant(text: str) -> dict[str, Any] | None:
    """The arguments that a text stands for where it is not what it looks like.

    Nothing and ``null`` mean no arguments; some models encode an object twice.
    """
    text = text.strip()
    if text in ("", "null"):
        return {}
    if text[0] == '"' and isinstance(inner := loads(text), str):
        value = loads(inner)
        return value if isinstance(value, dict) else None
    return None


# --- JSON of servers, which may be anything -------------------------------------------------------


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """The value if it is a number of tokens, else 0."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e15 else 0


def usage(read: int, written: int, cache_read: int, cache_write: int, reasoning: int) -> Usage:
    """A usage, from a count of what was read that includes the cache's part."""
    return {
        "input": max(0, read - cache_read - cache_write),
        "output": written,
        "cache_read": cache_read,
        "cache_write": cache_write,
        "reasoning": reasoning,
    }
