"""The events of a log as a page needs them: what is said twice once, and no more than fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runner import json_text

Event = Mapping[str, Any]

LONGEST = 200_000
"""Characters of one text."""
LONGEST_IMAGE = 4 << 20
"""Characters of one image, in base64: some 3 MB of it."""
LARGE = 48 << 20
"""Characters of JSON after which texts are cut to `SHORT`."""
SHORT = 2_000
"""Characters of one text of a large log."""
MOST = 192 << 20
"""Characters of JSON after which only the run's end is still taken."""
_UPDATES = 50
"""Updates of one call that are kept."""


class Slim:
    """Makes the events of one log fit for a page, in memory that doesn't grow with the log."""

    def __init__(self) -> None:
        self.size = 0
        """Characters of JSON so far."""
        self.cut = 0
        """How many texts and images were cut."""
        self.left_out = 0
        """How many events the page has no room for."""
        self._answers: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
        self._results: dict[tuple[str, str], Any] = {}
        self._updates: dict[tuple[str, str], int] = {}

    def lines(self, events: Iterable[Event]) -> Iterator[str]:
        """Each event that a page needs, as JSON."""
        for event in events:
            for kept in self._kept(event):
                if self.size > MOST and kept["type"] != "run_end":
                    self.left_out += 1
                    continue
                line = json_text.line(self._fit(kept))
                self.size += len(line)
                yield line
        for (agent, message_id), blocks in self._answers.items():
            # The log breaks off in these answers: their pieces are all there is.
            for delta in blocks.values():
                of_agent = {"agent": agent} if agent else {}
                event = {"type": "message_update", "message_id": message_id, "delta": delta}
                yield json_text.line(self._fit({**of_agent, **event}))

    def values(self, values: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Other objects, as JSON that is cut in the same way."""
        for value in values:
            if self.size > MOST:
                self.left_out += 1
                continue
            line = json_text.line(self._fit(value))
            self.size += len(line)
            yield line

    def notices(self) -> list[str]:
        """What is not in the page, as sentences."""
        told = []
        if self.cut:
            were = "text or image was" if self.cut == 1 else "texts and images were"
            told.append(f"{self.cut:,} {were} cut; the log has them whole")
        if self.left_out:
            told.append(
                f"the log is too large for a page: its last {self.left_out:,} events are left out; "
                "show a part of it, as with --turn 1..50"
            )
        return told

    def _kept(self, event: Event) -> Iterator[Event]:
        """An event, unless others say the same."""
        kind = event["type"]
        if kind == "message_update":
            self._hold(event)
        elif kind == "message_start":
            # All but answers are told whole by their end.
            if event["message"].get("role") == "assistant":
                yield event
        elif kind == "message_end":
            yield self._ended(event)
        elif kind == "tool_execution_update":
            if self._updates_of(event) <= _UPDATES:
                yield event
        else:
            if kind == "tool_execution_end":
                key = _key(event, "tool_call_id")
                self._results[key] = event["result"].get("content")
                self._updates.pop(key, None)
            elif kind == "turn_end":
                self._forget(event.get("agent", ""))
            yield event

    def _hold(self, event: Event) -> None:
        """Keep a piece of an answer until that has ended."""
        delta = event["delta"]
        blocks = self._answers.setdefault(_key(event, "message_id"), {})
        held = blocks.setdefault(delta["index"], {**delta, "text": "", "arguments": ""})
        for field in ("text", "arguments"):
            if len(held[field]) <= LONGEST:
                held[field] += delta.get(field, "")

    def _ended(self, event: Event) -> Event:
        message = event["message"]
        agent = event.get("agent", "")
        self._answers.pop((agent, message["id"]), None)
        if message["role"] != "tool_result":
            return event
        content = self._results.pop((agent, message["tool_call_id"]), None)
        if content is None or content != message["content"]:
            return event
        short = {key: value for key, value in message.items() if key not in ("content", "details")}
        return {**event, "message": short}

    def _updates_of(self, event: Event) -> int:
        key = _key(event, "tool_call_id")
        self._updates[key] = self._updates.get(key, 0) + 1
        return self._updates[key]

    def _forget(self, agent: str) -> None:
        for key in [key for key in self._results if key[0] == agent]:
            del self._results[key]

    def _fit(self, event: Event) -> Event:
        longest = LONGEST if self.size <= LARGE else SHORT
        fitted: Event = self._cut(event, longest)
        return fitted

    def _cut(self, value: Any, longest: int) -> Any:
        """A value whose texts have at most so many characters."""
        if isinstance(value, str):
            if len(value) <= longest:
                return value
            self.cut += 1
            return f"{value[:longest]}… ({len(value) - longest:,} more characters in the log)"
        if isinstance(value, Mapping):
            if value.get("type") == "image" and isinstance(value.get("data"), str):
                return self._cut_image(value)
            return {key: self._cut(item, longest) for key, item in value.items()}
        if isinstance(value, list):
            return [self._cut(item, longest) for item in value]
        return value

    def _cut_image(self, block: Mapping[str, Any]) -> Mapping[str, Any]:
        """An image block; of one that is too large, what it is."""
        # A part of an image is none.
        if len(block["data"]) <= LONGEST_IMAGE and self.size <= LARGE:
            return block
        self.cut += 1
        return {**block, "data": ""}


def _key(event: Event, name: str) -> tuple[str, str]:
    return event.get("agent", ""), event[name]
