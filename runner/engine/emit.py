"""Where every event of a run passes: redacted, numbered, handed to the log and to listeners."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any, cast

from runner.engine.contract import Clock, Redactor
from runner.engine.event import Event

Listener = Callable[[Event], Awaitable[None] | None]
"""Gets each event, in the loop's thread. Must not change it.

If it raises, that is reported and the event goes on to the others. What it gives to be awaited is
awaited before the loop goes on.
"""


class Emitter:
    """Numbers the events of a run and its sub-agents.

    Args:
        clock: For ``t``.
        sink: The log: gets each event before all listeners. If it raises, ``on_sink_error`` is
            told, once.
        redactor: Takes out of events what no one is to read.
        deltas: Whether ``message_update`` events are emitted at all.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        sink: Callable[[Event], None] | None = None,
        redactor: Redactor | None = None,
        deltas: bool = True,
        first_seq: int = 0,
        elapsed: float = 0.0,
    ) -> None:
        self._clock = clock
        self._started = clock.now() - elapsed
        self._sink = sink
        self._listeners: tuple[Listener, ...] = ()
        self._owed: deque[Awaitable[None]] = deque()
        self._settling: asyncio.Task[None] | None = None
        self._streams: dict[str, dict[int, str]] = {}
        self._told_once: set[Hashable] = set()
        self.redactor = redactor
        self.deltas = deltas
        self.recorded: Callable[[Event, str | None], bool] | None = None
        """Says of each event, and its agent's path, whether a log has it already: it is then
        neither numbered nor handed to anyone. For replays."""
        self.redactions = 0
        """How many values were taken out of events."""
        self.seq = first_seq
        """The next event's number."""
        self.on_sink_error: Callable[[Exception], None] | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the run's start."""
        return self._clock.now() - self._started

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; gives back what takes it off."""
        # An object of its own, since the same listener may be added twice.
        own = partial(listener)
        self._listeners = (*self._listeners, own)

        def unsubscribe() -> None:
            self._listeners = tuple(one for one in self._listeners if one is not own)

        return unsubscribe

    def emit(self, event: Event, path: str | None = None) -> Event | None:
        """Hand an event to all, and give it as they get it; None for a delta that is held back.

        ``path`` is that of the sub-agent that it comes from.
        """
        is_delta = event["type"] == "message_update"
        if is_delta and not (self.deltas and (self._sink or self._listeners or self.recorded)):
            return None
        if self.recorded is not None and self.recorded(event, path):
            return event
        if self.redactor is not None:
            # What else is redacted, such as digests, is in no log and doesn't count.
            before = self.redactor.count
            shown = self._redact_delta(event, path) if is_delta else self._redact(event, path)
            self.redactions += self.redactor.count - before
            if shown is None:
                return None
            event = shown
        return self._deliver(event, path)

    def redacted(self, event: Any) -> Any:
        """An event as it may be told; what is taken out of it counts."""
        if self.redactor is None:
            return event
        before = self.redactor.count
        shown = self.redactor.value(event)
        self.redactions += self.redactor.count - before
        return shown

    def once(self, what: Hashable) -> bool:
        """Whether something that is told once a run, by whichever agent, was not told yet."""
        if what in self._told_once:
            return False
        self._told_once.add(what)
        return True

    def begin_again(self) -> None:
        """The run goes on after its end: what is told once a run may be told again."""
        self._told_once.clear()

    async def settle(self) -> None:
        """Wait for what listeners gave to be awaited, one after the other.

        Those who wait may be cancelled; a listener is not.
        """
        while self.owes:
            await asyncio.wait((self.settling(),))

    def settling(self) -> asyncio.Future[None]:
        """What awaits it, however many wait for that."""
        if self._settling is None or self._settling.done():
            self._settling = asyncio.ensure_future(self._settle())
        return self._settling

    @property
    def owes(self) -> bool:
        """Whether there is something to `settle`."""
        return bool(self._owed) or (self._settling is not None and not self._settling.done())

    async def _settle(self) -> None:
        while self._owed:
            try:
                await self._owed.popleft()
            except asyncio.CancelledError as error:
                if not cast("asyncio.Task[None]", asyncio.current_task()).cancelling():
                    _report(error)
            except Exception as error:
                _report(error)

    def _deliver(self, event: Event, path: str | None) -> Event:
        head: dict[str, Any] = {"seq": self.seq, "t": round(self._clock.now() - self._started, 3)}
        if path is not None:
            head["agent"] = path
        head.update(event)
        stamped = cast("Event", head)
        self.seq += 1
        if self._sink is not None:
            try:
                self._sink(stamped)
            except Exception as error:
                if self.once(self._sink) and self.on_sink_error is not None:
                    self.on_sink_error(error)
        for listener in self._listeners:
            try:
                owed = listener(stamped)
            except Exception as error:
                _report(error)
            else:
                if owed is not None and inspect.isawaitable(owed):
                    self._owed.append(owed)
        return stamped

    def _redact(self, event: Event, path: str | None) -> Event:
        if event["type"] == "message_end":
            self._flush_deltas(event["message"]["id"], path)
        shown: Event = cast("Redactor", self.redactor).value(event)
        return shown

    def _redact_delta(self, event: Any, path: str | None) -> Any:
        """A delta, redacted in place; None where all of it is held back."""
        delta, message_id = event["delta"], event["message_id"]
        stream = f"{path}:{message_id}" if path else message_id
        index = delta["index"]
        field = "arguments" if delta["kind"] == "tool_call" else "text"
        kinds = self._streams.get(stream)
        if kinds is None:
            kinds = self._streams[stream] = {}
        kinds[index] = delta["kind"]
        redactor = cast("Redactor", self.redactor)
        shown = redactor.delta((stream, index), delta[field])
        delta[field] = shown
        if "id" not in delta:
            return event if shown else None
        shown = redactor.value({"type": "tool_call", "id": delta["id"], "name": delta["name"]})
        delta["id"], delta["name"] = shown["id"], shown["name"]
        return event

    def _flush_deltas(self, message_id: str, path: str | None) -> None:
        """Tell what was held back of a message's deltas, now that it is whole."""
        stream = f"{path}:{message_id}" if path else message_id
        for index, kind in self._streams.pop(stream, {}).items():
            if rest := cast("Redactor", self.redactor).rest((stream, index)):
                field = "arguments" if kind == "tool_call" else "text"
                delta: Any = {"kind": kind, "index": index, field: rest}
                self._deliver(
                    {"type": "message_update", "message_id": message_id, "delta": delta}, path
                )


def _report(error: BaseException) -> None:
    """Report what a listener raised by asyncio's own means: the run goes on."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": "A listener of a run's events raised", "exception": error}
    )
