"""Compares two logs in their canonical forms, as streams: neither is ever in memory as a whole.

Told is what differs, not what follows from it: a changed system prompt once and not by its digest
in each request, a message by its end and not by its deltas, an id by its first place.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runner.log.canonical import canonical
from runner.log.difference import ABSENT, Difference, Ignored, differences
from runner.log.read import Warn, read

Event = dict[str, Any]

_WINDOW = 100
"""Events of each log that are looked through for where they meet again."""
_TELLING = ("turn", "task_id", "iteration", "tool_name", "hook", "queue", "limit", "kind")
"""Fields that tell events of a type apart."""
_IDS = frozenset(
    (
        *("id", "message_id", "tool_call_id", "system_digest", "tools_digest"),
        *("message_ids", "tool_result_ids", "added", "dropped"),
    )
)
"""Fields of which the same value stands in many places: a change of one is told once."""
_CAUSES = {
    "system_digest": ("run_start.plan.system_prompt",),
    "tools_digest": ("run_start.plan.tools", "run_start.plan.resolved.tools"),
}
"""Digests, and what in the plan explains that they differ."""
_NO_DIFFERENCE = frozenset(("run_start.spec.sha256",))
"""What may differ between the same: a comment in a spec is no change of it."""
_CONTEXT = "model_request.context_digest"
_DELTAS = "message_update"


def compare_logs(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str],
    *,
    ignore: Iterable[str] = (),
    warn: Warn | None = None,
) -> Iterator[Difference]:
    """How two logs differ.

    Args:
        a: The first log's file.
        b: The second log's file.
        ignore: Paths that are not looked at, see `Ignored`.
        warn: Is told of torn tails.

    Raises:
        LogError: when a log can't be read, or is broken.
        UsageError: when a path to ignore is none.
    """
    ignored = Ignored(ignore)
    first = (event for _, event in read(a, warn))
    second = (event for _, event in read(b, warn))
    return compare(first, second, ignored)


def compare(
    a: Iterable[Mapping[str, Any]],
    b: Iterable[Mapping[str, Any]],
    ignored: Ignored | None = None,
) -> Iterator[Difference]:
    """How the events of two logs differ, in the order of the first."""
    return _Comparison(_Side(a), _Side(b), ignored or Ignored(())).run()


def _folded(events: Iterable[Event]) -> Iterator[Event]:
    """Events with the deltas of a message together, as one, with nothing of the others lost."""
    deltas: Event | None = None
    for event in events:
        same = deltas is not None and all(
            event.get(key) == deltas.get(key) for key in ("type", "agent", "message_id")
        )
        if same and deltas is not None:
            deltas["deltas"].append(event["delta"])
            continue
        if deltas is not None:
            yield deltas
            deltas = None
        if event["type"] == _DELTAS:
            deltas = {k: v for k, v in event.items() if k != "delta"} | {"deltas": [event["delta"]]}
        else:
            yield event
    if deltas is not None:
        yield deltas


class _Side:
    """One log's events, of which some are looked at ahead."""

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._events = _folded(canonical(events))
        self.ahead: deque[tuple[Any, Event]] = deque()
        self.turns: dict[str | None, int] = {}

    def look(self, count: int) -> int:
        """Have so many events ahead, if there are; gives how many there are."""
        while len(self.ahead) < count and (event := next(self._events, None)) is not None:
            del event["seq"]
            self.ahead.append((_signature(event), event))
        return len(self.ahead)

    def take(self) -> Event:
        """The next event."""
        event = self.ahead.popleft()[1]
        if event["type"] == "turn_start":
            self.turns[event.get("agent")] = event["turn"]
        return event


def _signature(event: Event) -> tuple[Any, ...]:
    """What two events have in common that are compared with each other."""
    message = event.get("message")
    role = message.get("role") if isinstance(message, dict) else None
    telling = (str(event.get(key)) for key in _TELLING)
    return (event["type"], event.get("agent"), role, *telling)


class _Comparison:
    """The state of a comparison."""

    def __init__(self, a: _Side, b: _Side, ignored: Ignored) -> None:
        self._a = a
        self._b = b
        self._ignored = ignored
        self._told: set[tuple[str, str]] = set()
        self._differing: set[str] = set()
        """Paths in the plan that differ."""
        self._differs = False
        self._open: dict[tuple[Any, ...], list[Difference]] = {}
        """What differs in the beginning and the deltas of messages that have not ended."""

    def run(self) -> Iterator[Difference]:
        while self._a.look(1) and self._b.look(1):
            if self._a.ahead[0][0] == self._b.ahead[0][0]:
                yield from self._pair(self._a.take(), self._b.take())
                continue
            only_a, only_b = self._meeting()
            for _ in range(only_a):
                yield from self._single(self._a, of_a=True)
            for _ in range(only_b):
                yield from self._single(self._b, of_a=False)
        while self._a.look(1):
            yield from self._single(self._a, of_a=True)
        while self._b.look(1):
            yield from self._single(self._b, of_a=False)
        for found in self._open.values():
            yield from found

    def _meeting(self) -> tuple[int, int]:
        """How many events of each side to leave out so that both go on alike."""
        in_a, in_b = self._a.look(_WINDOW), self._b.look(_WINDOW)
        a = [signature for signature, _ in self._a.ahead]
        b = [signature for signature, _ in self._b.ahead]
        for left_out in range(1, in_a + in_b - 1):
            for of_a in range(max(0, left_out - in_b + 1), min(left_out, in_a - 1) + 1):
                of_b = left_out - of_a
                if a[of_a : of_a + 2] == b[of_b : of_b + 2]:
                    return of_a, of_b
        return 1, 1

    def _pair(self, a: Event, b: Event) -> Iterator[Difference]:
        """Compare two events with each other."""
        turn = self._a.turns.get(a.get("agent"), 0)
        places = list(differences(a, b, a["type"]))
        # Last, since all else that differs explains it.
        places.sort(key=lambda place: place[0] == _CONTEXT)
        found = [
            Difference(turn, a.get("agent"), path, one, other)
            for path, one, other in places
            if self._tells(path, one, other)
        ]
        yield from self._of_message(found, a, b)

    def _single(self, side: _Side, *, of_a: bool) -> Iterator[Difference]:
        """Tell an event that only one side has."""
        event = side.take()
        turn = side.turns.get(event.get("agent"), 0)
        a, b = (event, ABSENT) if of_a else (ABSENT, event)
        self._differs = True
        found = [Difference(turn, event.get("agent"), event["type"], a, b)]
        if event["type"] in self._ignored:
            found = []
        yield from self._of_message(found, event if of_a else {}, {} if of_a else event)

    def _of_message(self, found: list[Difference], a: Event, b: Event) -> Iterator[Difference]:
        """Keep what differs before a message's end until that tells it better, or doesn't."""
        key = (a.get("agent"), b.get("agent"), _message_id(a), _message_id(b))
        kind = a.get("type") or b.get("type")
        if kind in ("message_start", _DELTAS):
            if found:
                self._open.setdefault(key, []).extend(found)
        elif kind == "message_end":
            before = self._open.pop(key, [])
            yield from found or before
        else:
            yield from found

    def _tells(self, path: str, a: Any, b: Any) -> bool:
        """Whether a difference is to be told: it is not ignored, and follows from no other."""
        if path in _NO_DIFFERENCE:
            return False
        field = path.rpartition(".")[2].partition("[")[0]
        if path == _CONTEXT:
            # What is sent is in the log: only where nothing else differs is this news.
            told = not self._differs
            self._differs = True
            return told and path not in self._ignored
        self._differs = True
        if path.startswith("run_start.plan"):
            self._differing.add(path)
        if any(cause.startswith(_CAUSES.get(field, ())) for cause in self._differing):
            return False
        if field in _IDS:
            change = (str(a), str(b))
            if change in self._told:
                return False
            self._told.add(change)
        return path not in self._ignored


def _message_id(event: Event) -> Any:
    message = event.get("message")
    return message.get("id") if isinstance(message, dict) else event.get("message_id")
