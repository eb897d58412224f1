"""What a replay came to, as text and as JSON, and the time of a log that is shown again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from runner.json_text import line
from runner.views.text import plural

SHOWN = 400
"""Characters of a value that are shown."""


class Parting(Protocol):
    """Where a run parts from its log."""

    seq: int | None
    agent: str | None
    turn: int
    type: str
    path: str
    recorded: Any
    new: Any
    cause: str


def parting_lines(parting: Parting, prompts: tuple[str, str] | None) -> list[str]:
    """The first difference, a line each for its place, both values and its cause."""
    where = f"turn {parting.turn}" + (f" of {parting.agent}" if parting.agent else "")
    place = "after the log's end" if parting.seq is None else f"seq {parting.seq}"
    at = f"{parting.type}.{parting.path}" if parting.path else parting.type
    lines = [
        f"differs at {place}, {where}: {at}",
        f"  recorded: {_shown(parting.recorded)}",
        f"  new:      {_shown(parting.new)}",
        f"  likely cause: {parting.cause}",
    ]
    if prompts is not None:
        lines.append(f"  recorded prompt: {_shown(prompts[0])}")
        lines.append(f"  new prompt:      {_shown(prompts[1])}")
    return lines


def parting_json(parting: Parting) -> dict[str, Any]:
    """The first difference as an object."""
    return {
        "seq": parting.seq,
        "agent": parting.agent,
        "turn": parting.turn,
        "type": parting.type,
        "path": parting.path,
        "recorded": parting.recorded,
        "new": parting.new,
        "cause": parting.cause,
    }


class Asked(Protocol):
    """A replay whose model was asked anew."""

    made: int
    difference: Any

    @property
    def left(self) -> int:
        """How many recorded calls were not made again."""
        ...


def asked_json(log: str, asked: Asked, result: Any) -> dict[str, Any]:
    """What a replay came to whose model was asked anew, as an object; ``result`` is the run's."""
    parting = asked.difference
    return {
        "log": log,
        "status": result.status,
        "same": parting is None,
        "difference": None if parting is None else parting_json(parting),
        "calls": {"same": asked.made, "left": asked.left},
        "text": result.text,
        "output": result.output,
        "usage": result.usage,
        "cost_usd": result.cost_usd,
        "turns": result.turns,
        "new_log": result.log,
        "error": result.error,
    }


def asked_line(log: str, asked: Asked, result: Any) -> str:
    """The same in a line."""
    left = f", {asked.left} of the log not made" if asked.left else ""
    why = f": {result.error}" if result.error else ""
    made = plural(asked.made, "call")
    return f"{log}: {made} as recorded{left}; the run ended as {result.status}{why}"


def _shown(value: Any) -> str:
    text = line(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


LONGEST_WAIT = 60.0
"""Seconds that are waited at once: a log may say any time."""


class Pace:
    """The time of a log, passing again.

    Args:
        speed: How fast, 1 as it was; 0: no time passes between events.
        wait: Waits so many seconds, and says whether to go on.
        clock: Seconds of real time.
    """

    def __init__(
        self,
        speed: float,
        wait: Callable[[float], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._speed = speed
        self._wait = wait
        self._clock = clock
        self._began = clock()
        self._t = 0.0

    def reach(self, event: Mapping[str, Any]) -> bool:
        """Wait until it is an event's time; gives whether to go on."""
        # One in canonical form has no time.
        t = max(self._t, event.get("t", 0.0))
        if self._speed:
            due = self._began + t / self._speed
            while (left := due - self._clock()) > 0:
                if not self._wait(min(left, LONGEST_WAIT)):
                    return False
        self._t = t
        return True

    def now(self) -> float:
        """The log's time, in seconds since its run's start."""
        if not self._speed:
            return self._t
        return max(self._t, (self._clock() - self._began) * self._speed)
