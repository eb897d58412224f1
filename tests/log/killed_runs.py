"""Kills a run at a random moment, again and again, and goes on with it: started by a test.

Each run is a process of its own, forked from this one, which has all modules already. It counts the
functions that are called in it and kills itself, as by ``kill -9``, at one that was drawn by lot: a
moment of its work, which is the same one on any machine. Told is a line of JSON a run.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from runner.api import RunOptions, run_spec
from runner.api.replay import replay
from runner.api.resume import ResumeOptions, Resumption

TWICE = 0.3
"""How many of the runs are killed again when they go on."""


def main(folder: Path, seed: int, runs: int) -> None:
    """Kill so many runs of ``folder/spec.yaml``."""
    chance = random.Random(seed)
    first, last = count_calls(folder)
    for number in range(runs):
        place = folder / f"{seed}-{number}"
        place.mkdir()
        log = place / "log.jsonl"
        moments = [chance.randrange(first, last)]
        if chance.random() < TWICE:
            moments.append(chance.randrange(last))
        killed = forked(partial(start, log), moments[0])
        finished = [finished_calls(log)]
        for moment in [*moments[1:], None]:
            if killed and has_begun(log) and not has_ended(log):
                killed = forked(partial(resume, log), moment)
                finished.append(finished_calls(log))
        told = {"moments": moments, "finished": finished, **what_is_left(place, log)}
        print(json.dumps(told), flush=True)


def count_calls(folder: Path) -> tuple[int, int]:
    """How many functions a run calls: to its first event, and in all."""
    place = folder / "whole"
    place.mkdir()
    log, counted = place / "log.jsonl", place / "count"
    assert not forked(partial(start, log), None)
    assert replay(log).difference is None  # imports what the runs and their children need

    def count() -> None:
        calls = Calls(None)
        counts: list[int] = []
        start(log, lambda _: counts.append(calls.count))
        counted.write_text(f"{counts[0]} {calls.count}", encoding="utf-8")

    assert not forked(count, None)
    first, last = map(int, counted.read_text(encoding="utf-8").split())
    return first, last


def start(log: Path, on_event: Callable[[Any], None] | None = None) -> None:
    spec = log.parent.parent / "spec.yaml"
    options = RunOptions(log=str(log), workspace=str(log.parent))
    run_spec(spec, options=options, on_event=on_event)


def resume(log: Path) -> None:
    options = ResumeOptions(workspace=str(log.parent))
    asyncio.run(Resumption(log, options).run())


class Calls:
    """Counts the calls of functions in this process, in all threads, and kills it at one."""

    def __init__(self, moment: int | None) -> None:
        self.count = 0
        self._moment = moment
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.count += 1
            if self.count == self._moment:
                os.kill(os.getpid(), signal.SIGKILL)


def forked(work: Callable[[], None], moment: int | None) -> bool:
    """Do something in a process of its own, killed at a moment. Gives whether it was."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            if moment is not None:
                Calls(moment)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status == -signal.SIGKILL


def has_begun(log: Path) -> bool:
    """Whether the run's first line is on disk: before that, it is simply run anew."""
    return log.exists() and b"\n" in log.read_bytes()


def has_ended(log: Path) -> bool:
    """Whether there is nothing left to be done: the kill came after the run's last line."""
    last = log.read_bytes().split(b"\n")[-2]
    return bool(json.loads(last)["type"] == "run_end")


def finished_calls(log: Path) -> list[str]:
    """The words of the calls that a log has an end of, sorted."""
    words = {}
    finished = []
    whole = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    for event in map(json.loads, whole):
        call = (event.get("agent"), event.get("tool_call_id"))
        if event["type"] == "tool_execution_start":
            words[call] = f"{event.get('agent', 'main')} {event['arguments'].get('word')}"
        elif event["type"] == "tool_execution_end" and not event["is_error"]:
            finished.append(words[call])
    return sorted(finished)


def what_is_left(place: Path, log: Path) -> dict[str, Any]:
    """The ledger, and how the run ended."""
    ledger = place / "ledger.txt"
    left: dict[str, Any] = {
        "ledger": ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else [],
        "begun": has_begun(log),
    }
    if has_begun(log):
        end = json.loads(log.read_bytes().splitlines()[-1])
        difference = replay(log).difference
        left |= {"status": end.get("status"), "text": end.get("text")}
        left["difference"] = None if difference is None else str(difference)
    return left


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
