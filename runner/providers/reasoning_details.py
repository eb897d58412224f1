"""OpenRouter's ``reasoning_details``: thinking of any model, to be sent back as it came.

Source: the OpenRouter guide "Reasoning tokens", preserving reasoning blocks.
"""

from __future__ import annotations

from typing import Any

from runner.providers.blocks import as_text

_GROWING = ("text", "summary", "data")


class ReasoningDetails:
    """The details of one answer, put together from their pieces."""

    def __init__(self) -> None:
        self._items: list[tuple[dict[str, Any], dict[str, list[str]]]] = []

    def add(self, piece: dict[str, Any]) -> str:
        """Take a piece. Gives the text in it that a person can read."""
        if not self._items or not _belongs(self._items[-1][0], piece):
            self._items.append(({}, {}))
        fields, growing = self._items[-1]
        for key, value in piece.items():
            if key in _GROWING and isinstance(value, str):
                growing.setdefault(key, []).append(value)
            elif value is not None:
                fields[key] = value
        return as_text(piece.get("text")) or as_text(piece.get("summary"))

    def joined(self) -> list[dict[str, Any]]:
        """All details, each whole, in their order; an empty list where there are none."""
        return [
            fields | {key: "".join(pieces) for key, pieces in growing.items()}
            for fields, growing in self._items
        ]


def _belongs(fields: dict[str, Any], piece: dict[str, Any]) -> bool:
    return all(fields.get(key) == piece.get(key) for key in ("type", "index"))
