"""Where a run can fail: the points of a recorded run, and those of them that are tried."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

Kind = Literal["model", "tool", "hook", "crash", "abort"]
KINDS: tuple[Kind, ...] = get_args(Kind)

ALWAYS = "network down"
"""What befalls every request of a model call, and not the first alone."""
_FAULTS = ("overloaded", "network", "bad_request", ALWAYS)
UNTERMINATED = "no terminal mark"


@dataclass(slots=True, frozen=True)
class Point:
    """One thing that goes wrong in a run."""

    kind: Kind
    what: str
    """What happens there, in a few words."""
    place: int
    """Model: the number of its agent's model call; hook: of its call; both from 1. Crash and abort:
    the number of the last line before it. Tool: the number of its ``tool_execution_start``."""
    agent: str | None = None
    """The path of the agent that it befalls; None for the main one."""
    name: str = ""
    """Tool: its name; hook: its path in the spec; crash and abort: the type of that line."""
    call: str = ""
    """Tool: the id of the call."""
    deltas: int = 0
    """Model: how many deltas come before it is cut."""

    @property
    def where(self) -> str:
        """The place in a few words."""
        match self.kind:
            case "model":
                place = f"model call {self.place}"
            case "tool":
                place = f"{self.name} ({self.call})"
            case "hook":
                place = f"{self.name}, call {self.place}"
            case _:
                return f"after line {self.place}, {self.name}"
        return f"{place} of {self.agent}" if self.agent else place


@dataclass(slots=True)
class Reached:
    """What a run came to that can fail."""

    requests: list[tuple[str | None, int, int]] = field(default_factory=list)
    """Agent, number from 1 and count of stream events of each answer."""
    calls: list[tuple[str | None, str, str, bool]] = field(default_factory=list)
    """Agent, id, tool and whether that is a program, of each call that was run."""
    hooks: list[tuple[str | None, str, int]] = field(default_factory=list)
    """Agent, path in the spec and number from 1 of each call of a hook."""


def all_points(reached: Reached, types: Sequence[str]) -> Iterator[Point]:
    """All points of a run whose log has lines of these types, in the order of what they befall."""
    for agent, number, deltas in reached.requests:
        for what in _FAULTS:
            yield Point("model", what, number, agent)
        for count in sorted({1, (deltas + 1) // 2} if deltas else ()):
            yield Point("model", f"cut after {count} of {deltas}", number, agent, deltas=count)
        yield Point("model", UNTERMINATED, number, agent)
        yield Point("model", "length", number, agent)
    for place, (agent, call, name, is_program) in enumerate(reached.calls, 1):
        for what in ("error", "exception", "timeout", "stuck", *(["nonzero"] * is_program)):
            yield Point("tool", what, place, agent, name, call)
    for agent, path, number in reached.hooks:
        yield Point("hook", "raises", number, agent, path)
    # Before its first line there is no log, and after its last one the run is over.
    for line, name in enumerate(types[:-1]):
        for what in ("killed", *(["killed in a line"] if line else [])):
            yield Point("crash", what, line, name=name)
        yield Point("abort", "aborted", line, name=name)


def chosen(points: Sequence[Point], count: int, seed: int) -> list[Point]:
    """As many points as are asked for, chosen by a seed, in their order."""
    if len(points) <= count:
        return list(points)
    places = sorted(random.Random(seed).sample(range(len(points)), count))
    return [points[place] for place in places]
