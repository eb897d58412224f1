"""What a replay came to, as text and as JSON."""

from __future__ import annotations

from typing import Any, Protocol

from runner.json_text import line

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


def _shown(value: Any) -> str:
    text = line(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
