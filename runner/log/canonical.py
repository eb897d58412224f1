"""The canonical form of a log: the same bytes for every run that did the same things.

Left out is what differs from run to run (`runner.engine.event.VOLATILE`, ``t``, ``spec.path``).
Put in order is what happened at the same time:

- calls of one turn that were open together: their starts first, as they came (the model's order),
  then for each call, in that order, its lines and those of the agent that worked for it;
- tasks that were open together (a ``for_each``): each whole, in the order in which they began
  (the items' order), with the lines of its agent inside.

Calls or tasks that follow one another stand in the order in which they ran. All this can be told
from the events alone, so one filter serves both a log that is written and one that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from runner.engine.event import VOLATILE

Event = dict[str, Any]
Emit = Callable[[Event], None]

# A turn goes on, or ends, only when all its calls are done. That a call is open at one of these
# is the mark of a log that a crash broke off.
_AFTER_CALLS = frozenset(
    (
        "agent_end",
        "message_end",
        "message_start",
        "model_request",
        "run_end",
        "task_end",
        "task_start",
        "turn_end",
        "turn_start",
    )
)
_COUNTED = frozenset(("seq", "t"))
_NOTHING: frozenset[str] = frozenset()


class Canonical:
    """A filter: events go in as they happen, canonical events come out as soon as they can."""

    def __init__(self) -> None:
        self._out: list[Event] = []
        self._root = _Lane(self._emit)
        self._lanes = {"": self._root, "main": self._root}
        self._task_ended_in: _Lane | None = None
        self._seq: int | None = None
        self._ended = False

    def feed(self, event: Mapping[str, Any]) -> list[Event]:
        """Take the next event; gives those whose place is now known."""
        kind = event["type"]
        if self._seq is None:
            self._seq = event.get("seq", 0)
        if self._task_ended_in and kind != "expectation":
            # Only now is it clear that all expectations of the task have come.
            self._task_ended_in.next_task()
            self._task_ended_in = None
        if kind == "run_resume" and self._ended:
            # Where the run was killed instead, all that was open goes on.
            self._release()
        self._ended = kind == "run_end"
        lane = self._lane(event)
        lane.take(dict(event))
        if kind == "task_end":
            self._task_ended_in = lane
        out, self._out = self._out, []
        return out

    def finish(self) -> list[Event]:
        """What was still held, after the last event."""
        self._release()
        out, self._out = self._out, []
        return out

    def _release(self) -> None:
        """Let go of everything: what is open here was broken off."""
        for lane in reversed(list(self._lanes.values())):
            lane.release()

    def _lane(self, event: Mapping[str, Any]) -> _Lane:
        path = event.get("agent", "")
        lane = self._lanes.get(path)
        if lane is not None and (lane is self._root or event["type"] != "agent_start"):
            return lane
        above, _, name = path.rpartition("/")
        place = self._lanes.get(above, self._root).place_of(name, event)
        if lane is None:
            lane = self._lanes[path] = _Lane(place)
        lane.emit = place
        return lane

    def _emit(self, event: Event) -> None:
        volatile = VOLATILE.get(event["type"], _NOTHING)
        kept: Event = {"seq": self._seq}
        kept.update((k, v) for k, v in event.items() if k not in _COUNTED and k not in volatile)
        if event["type"] == "run_start" and isinstance(spec := kept.get("spec"), dict):
            kept["spec"] = {k: v for k, v in spec.items() if k != "path"}
        self._seq = (self._seq or 0) + 1
        self._out.append(kept)


def canonical(events: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    """The canonical form of a log's events. Holds no more than what was open at the same time."""
    form = Canonical()
    for event in events:
        yield from form.feed(event)
    yield from form.finish()


class _Slot:
    """A call or a task, and its lines while others come before them."""

    __slots__ = ("_emit", "_held", "_live", "ended", "has_agent", "name")

    def __init__(self, name: str, emit: Emit, *, live: bool) -> None:
        self.name = name
        self.ended = False
        self.has_agent = False
        self._emit = emit
        self._live = live
        self._held: list[Event] = []

    def put(self, event: Event) -> None:
        if self._live:
            self._emit(event)
        else:
            self._held.append(event)

    def release(self) -> None:
        self._live = True
        for event in self._held:
            self._emit(event)
        self._held.clear()


class _Lane:
    """One agent's lines: what of them goes on at once, and what waits for its place."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self._calls: dict[str, _Slot] = {}
        self._open_calls = 0
        self._tasks: dict[tuple[Any, Any], _Slot] = {}
        self._last_task: _Slot | None = None
        self._loose: list[Event] = []  # belongs to none of what is open
        self._numbers: dict[str, set[int]] = {}  # of the agents below, by name
        self._works_for: dict[str, tuple[Any, Any]] = {}  # the agents below: their first task

    def take(self, event: Event) -> None:
        """Take one of the agent's own lines."""
        kind = event["type"]
        if self._calls and kind in _AFTER_CALLS:
            self._release_calls()
        if kind == "tool_execution_start":
            self._calls[event["tool_call_id"]] = _Slot(event["tool_name"], self._pass, live=False)
            self._open_calls += 1
            self.emit(event)
        elif slot := self._calls.get(event.get("tool_call_id", "")):
            self._take_of_call(slot, event)
        elif kind in ("task_start", "task_end"):
            self._take_of_task(event)
        elif kind == "expectation" and self._last_task:
            self._last_task.put(event)
        elif self._calls or len(self._tasks) > 1 or self._loose:
            self._loose.append(event)
        else:
            self.emit(event)

    def next_task(self) -> None:
        """Go on to the first task that has not ended, after one did."""
        self._last_task = None
        while self._tasks and (first := next(iter(self._tasks.values()))).ended:
            first.release()
            del self._tasks[next(iter(self._tasks))]
        if self._tasks:
            next(iter(self._tasks.values())).release()
        else:
            self._release_loose()

    def place_of(self, name: str, event: Mapping[str, Any]) -> Emit:
        """Where the lines of an agent below go, by its path's last part and its first line."""
        slot = self._named(event) or self._same(name) or self._likely(name)
        if slot is None:
            return self._pass
        slot.has_agent = True
        for key, task in self._tasks.items():
            if task is slot:
                self._works_for[name] = key
        return slot.put

    def release(self) -> None:
        """Let go of all that is held."""
        self._release_calls()
        for slot in self._tasks.values():
            slot.release()
        self._tasks.clear()
        self._last_task = None
        self._release_loose()

    def _pass(self, event: Event) -> None:
        self.emit(event)

    def _take_of_call(self, slot: _Slot, event: Event) -> None:
        slot.put(event)
        if event["type"] == "tool_execution_end" and not slot.ended:
            slot.ended = True
            self._open_calls -= 1
            if self._open_calls == 0:
                self._release_calls()

    def _take_of_task(self, event: Event) -> None:
        key = (event["task_id"], event["iteration"])
        slot = self._tasks.get(key)
        if slot is None:
            slot = _Slot(event["task_id"], self._pass, live=not self._tasks)
            self._tasks[key] = slot
        slot.put(event)
        if event["type"] == "task_end":
            slot.ended = True
            self._last_task = slot

    def _named(self, event: Mapping[str, Any]) -> _Slot | None:
        """The call or task for which an agent says that it works."""
        if call := self._calls.get(event.get("tool_call_id", "")):
            return call
        return self._tasks.get((event.get("task_id"), event.get("iteration")))

    def _same(self, name: str) -> _Slot | None:
        """The task that an agent had when it began before: it takes it up again after a resume."""
        return self._tasks.get(self._works_for.get(name, ("", 0)))

    def _likely(self, path: str) -> _Slot | None:
        """The open call or task that an agent works for, told by its number.

        Agents are numbered in the order of what they work for, though they may begin in another.
        """
        taken = set(self._works_for.values())
        tasks = [slot for key, slot in self._tasks.items() if key not in taken]
        slots = self._calls.values() or tasks
        waiting = [slot for slot in slots if not (slot.ended or slot.has_agent)]
        name, _, digits = path.partition("#")
        number = int(digits) if digits.isdecimal() else 1
        seen = self._numbers.setdefault(name, set())
        before = number - 1 - sum(other < number for other in seen)
        seen.add(number)
        waiting = [slot for slot in waiting if slot.name == name] or waiting
        return waiting[max(0, min(before, len(waiting) - 1))] if waiting else None

    def _release_calls(self) -> None:
        for slot in self._calls.values():
            slot.release()
        self._calls.clear()
        self._open_calls = 0
        if len(self._tasks) <= 1:
            self._release_loose()

    def _release_loose(self) -> None:
        loose, self._loose = self._loose, []
        for event in loose:
            self.emit(event)
