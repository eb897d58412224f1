"""Finds the tool call that a piece of a Chat Completions stream belongs to.

By the format, a piece has its call's index, and the first one its id and name. Servers give all
calls the same index, or the same id, or neither; others repeat id and name with each piece.
"""

from __future__ import annotations

import json
from typing import Any

from runner.engine.contract import StreamEvent
from runner.providers.blocks import Blocks, Call, as_object, as_text


class ChatCalls:
    """The tool calls of one answer."""

    def __init__(self, blocks: Blocks) -> None:
        self.calls: list[Call] = []
        """In the order in which they began."""
        self.signatures: dict[int, str] = {}
        """What a gateway wants back with a call, as JSON, by the index of the call's block."""
        self._blocks = blocks
        self._at: dict[int, Call] = {}

    def begins(self, piece: dict[str, Any]) -> bool:
        """Whether a piece begins a call."""
        return self._found(piece) is None

    def add(self, piece: dict[str, Any]) -> list[StreamEvent]:
        """What a piece says."""
        id, name, arguments, index = _told(piece)
        call = self._found(piece)
        if call is None:
            call = Call(self._blocks.open(len(self.calls)), id, name)
            self.calls.append(call)
        elif not call.started:
            call.id, call.name = _grown(call.id, id), _grown(call.name, name)
        if index is not None:
            self._at[index] = call
        if extra := piece.get("extra_content"):
            self.signatures[call.index] = json.dumps(extra)
        return list(call.add(arguments))

    def _found(self, piece: dict[str, Any]) -> Call | None:
        id, name, arguments, index = _told(piece)
        call = self._known(index, id, name)
        if call and _is_other(call, index is not None, id, name, arguments):
            return None
        return call

    def _known(self, index: int | None, id: str, name: str) -> Call | None:
        if index is not None and (index in self._at or name):
            return self._at.get(index)
        if id:
            same = next((call for call in self.calls if call.id == id), None)
            if same or name:
                return same
        return self.calls[-1] if self.calls else None


def _told(piece: dict[str, Any]) -> tuple[str, str, str, int | None]:
    """Id, name, arguments and index of a piece."""
    function = as_object(piece.get("function"))
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    index = piece.get("index")
    return (
        as_text(piece.get("id")),
        as_text(function.get("name")),
        arguments,
        index if type(index) is int else None,
    )


def _is_other(call: Call, indexed: bool, id: str, name: str, arguments: str) -> bool:
    """Whether a piece that seems to belong to a call begins another one.

    A call whose arguments are whole is one that can be followed by another.
    """
    if id and call.id and id != call.id:
        return bool(name) or call.is_whole()
    if not name:
        return False
    if not call.size:
        return not indexed and not id and name != call.name
    if not call.is_whole():
        return False
    return name != call.name or (bool(arguments) and not call.repeats(arguments))


def _grown(known: str, piece: str) -> str:
    """An id or a name after one more piece, which is the rest of it, or all of it again."""
    return piece if piece.startswith(known) else known if known.endswith(piece) else known + piece
