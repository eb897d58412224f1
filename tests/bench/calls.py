"""Counts the calls that a run makes, whether of Python or of C: no load of a machine changes them.

    python -m tests.bench.calls MODEL PORT FOLDER [PLANT]        prints their number

PLANT names a fault of the kind that a guard has to see: ``delta`` copies each event once more,
``history`` copies all messages so far at each turn's end.
"""

from __future__ import annotations

import asyncio
import copy
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.bench.contender import PiRun

Event = dict[str, Any]


def planted(name: str) -> Callable[[Event], None]:
    """A listener that has the fault."""
    messages: list[Any] = []

    def history(event: Event) -> None:
        if event["type"] == "message_end":
            messages.append(event["message"])
        elif event["type"] == "turn_end":
            copy.deepcopy(messages)

    def delta(event: Event) -> None:
        copy.deepcopy(event)

    return {"history": history, "delta": delta, "": lambda event: None}[name]


async def count(model: str, port: int, folder: Path, plant: str) -> int:
    """The number of calls in a run, after a small one in which all is loaded."""
    contender = PiRun(port, folder, planted(plant))
    await contender.one("turns-1", -1)
    calls = 0

    def see(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(see)
    await contender.one(model, 0)
    sys.setprofile(None)
    return calls


if __name__ == "__main__":
    model, port, folder, *plant = sys.argv[1:]
    print(asyncio.run(count(model, int(port), Path(folder), (*plant, "")[0])))
