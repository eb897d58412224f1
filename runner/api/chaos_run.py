"""Runs that are made to fail, runs that go on after that, and their replays: all in memory."""

from __future__ import annotations

import asyncio
import io
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from runner.api.build import Builder, Edges
from runner.api.chaos_edges import ChaosEdges
from runner.api.chaos_point import Point
from runner.api.driven import Driven
from runner.api.going_on import GoingOn, open_calls
from runner.api.replay import Recording, follow
from runner.api.virtual_time import VirtualClock, VirtualDrivenClock, VirtualLoop
from runner.engine.emit import Emitter
from runner.engine.message import as_message
from runner.engine.plan import Plan
from runner.engine.run import Ended, Run
from runner.error import LogError, describe, named
from runner.json_text import line as as_line
from runner.json_text import parse
from runner.log.drive import Drive, is_from_outside
from runner.log.follow import Follower
from runner.log.parting import Parting
from runner.log.read import read_file
from runner.log.script import Script
from runner.log.whole import Wholeness

Line = dict[str, Any]

_FOR_EVER = 1e6
"""Virtual seconds after which a run that has not ended never will."""
_LONG = 2e4
"""Virtual seconds within which all that a run left behind has ended."""


@dataclass(slots=True)
class Ran:
    """A run that was made to fail, or went on after that."""

    lines: list[Line]
    """Its whole log."""
    edges: ChaosEdges
    end: Line = field(default_factory=dict)
    """Its ``run_end``; empty where it never came to its end."""
    broken: list[str] = field(default_factory=list)
    """What went wrong with it that its log doesn't show."""


class Stage:
    """A recorded run that can be run again, without anything real.

    Args:
        path: What its log is called.
        start: Its ``run_start``, with a ``run_id``.
        seed: Decides all that is left to chance.
    """

    def __init__(self, path: Path, start: Line, seed: int) -> None:
        self._path = path
        self._start = start
        self._seed = seed
        self._known = Recording(path, [start])
        self._loaded = self._known.loaded()
        workspace = self._known.plan.get("workspace") or "."
        self._workspace = Path(workspace).resolve()
        self._deltas = bool(self._known.plan.get("log", {}).get("deltas", True))

    def fresh(self, script: Script, point: Point | None = None) -> Ran:
        """Run it from its start, and let one thing go wrong."""
        seed = f"{self._seed} {point}"
        ran = Ran([], self._edges(script, seed, point=point))

        async def run() -> Ended:
            emitter = Emitter(clock := VirtualClock(seed), sink=_into(ran), deltas=self._deltas)
            start = {key: value for key, value in self._start.items() if key not in ("seq", "t")}
            one = Run(self._plan(ran.edges), cast("Any", start), emitter, clock)
            emitter.subscribe(_Outside(one, script, point))
            return await one.execute()

        return _staged(run, ran)

    def resumed(
        self, lines: Sequence[Line], script: Script, said: Callable[[str | None], int]
    ) -> Ran:
        """Go on in a log, as `pi-run resume` does.

        Args:
            lines: The log.
            script: What models say and tools do from there on.
            said: Tells how many answers of the script an agent has given already.
        """
        seed = f"{self._seed} {len(lines)}"
        ran = Ran(list(lines), self._edges(script, seed, said=said))

        async def run() -> Ended:
            recording = Recording(self._path, lines)
            drive = Drive(recording.tape(), recording.survey)
            rerun, unknown = open_calls(recording)
            drive.rerun = frozenset(rerun)
            plan = self._plan(Driven(drive, self._known.resolved, ran.edges))
            clock = VirtualDrivenClock(drive, seed)
            emitter = Emitter(clock, sink=_into(ran), deltas=self._deltas, first_seq=len(lines))
            going_on = GoingOn(recording, drive, plan, rerun, unknown)
            done = sum(map(is_from_outside, lines))
            ended, parting = await going_on.run(
                clock,
                emitter,
                lambda run: emitter.subscribe(_Outside(run, script, done=done)),
            )
            if parting is not None:
                ran.broken.append(f"it can't be brought to where it was: {_told(parting)}")
            return ended

        return _staged(run, ran)

    def replayed(self, lines: Sequence[Line]) -> str | None:
        """Why a log does not come out of its replay as it is; None where it does."""
        recording = Recording(self._path, lines)
        drive = Drive(recording.tape(), recording.survey)
        follower = Follower(drive)
        wrong: list[str] = []

        async def run() -> None:
            plan = self._plan(Driven(drive, self._known.resolved))
            await asyncio.wait_for(follow(recording, drive, follower, plan), _FOR_EVER)

        _in_virtual_time(run, wrong)
        if follower.difference is not None:
            return _told(follower.difference)
        wholeness = Wholeness()
        for line in lines:
            wholeness.see(line)
        if wholeness.misfit is not None:
            misfit = wholeness.misfit
            wrong.append(f"at seq {misfit.line['seq']}, {misfit.path}: {misfit.why}")
        return next(iter(wrong), None)

    def torn(self, lines: Sequence[Line], count: int) -> str | None:
        """What goes wrong when a log is read that breaks off in the middle of a line.

        Args:
            lines: The log.
            count: How many whole lines there are.
        """
        texts = [as_line(event) + "\n" for event in lines[: count + 1]]
        texts[count] = texts[count][: len(texts[count]) // 2]
        warnings: list[str] = []
        file = io.BytesIO("".join(texts).encode())
        try:
            found = [event for _, event in read_file(file, self._path, warnings.append)]
        except LogError as error:
            return f"the torn log can't be read: {error}"
        if found != list(lines[:count]) or len(warnings) != 1:
            return f"of {count} whole lines {len(found)} are read, with {len(warnings)} warnings"
        return None

    def _edges(self, script: Script, seed: str, **more: Any) -> ChaosEdges:
        return ChaosEdges(script, self._known.resolved, self._workspace, seed=seed, **more)

    def _plan(self, edges: Edges) -> Plan:
        builder = Builder(edges, self._known.environ(), self._start["run_id"])
        return builder.plan(self._loaded, self._known.inputs, literal=True)


class _Outside:
    """What comes from outside of a run, as a listener of its events: messages, and an abort.

    Args:
        run: The run.
        script: Has the messages.
        point: Where the run is aborted, if it is.
        done: How many of the messages came already.
    """

    def __init__(self, run: Run, script: Script, point: Point | None = None, done: int = 0) -> None:
        self._run = run
        self._messages = deque(script.put[done:])
        self._abort_at = point.place if point is not None and point.kind == "abort" else None
        self._put(0)

    def __call__(self, event: Any) -> None:
        if event["type"] == "model_request" and "agent" not in event:
            self._put(self._run.session.turn)
        if event["seq"] == self._abort_at:
            # As a signal does it: when what is being done has come to its next wait.
            asyncio.get_running_loop().call_soon(self._run.abort, 2)

    def _put(self, turn: int) -> None:
        while self._messages and self._messages[0][0] <= turn:
            _, queue, message = self._messages.popleft()
            session = self._run.session
            target = session.steering if queue == "steering" else session.follow_up
            target.put(as_message(message), "api")


def _into(ran: Ran) -> Callable[[Any], None]:
    """A log in memory: what is read is what would stand in its file."""
    return lambda event: ran.lines.append(parse(as_line(event)))


def _staged(run: Callable[[], Coroutine[Any, Any, Ended]], ran: Ran) -> Ran:
    """Let a run come to its end, and look at how it did."""
    ended = _in_virtual_time(lambda: _watched(run(), ran), ran.broken)
    if ended is not None:
        ran.end = cast("Line", ended.event)
        if ended.bug is not None:
            bug = ended.bug
            ran.broken.append(f"it is a bug of pi-run: {named(bug)}")
    return ran


async def _watched(run: Coroutine[Any, Any, Ended], ran: Ran) -> Ended | None:
    """Wait for a run, and for what it left behind."""
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, told: ran.broken.append(f"it is reported: {_reported(told)}")
    )
    work = asyncio.ensure_future(run)
    await asyncio.wait((work,), timeout=_FOR_EVER)
    if not work.done():
        ran.broken.append("it hangs: nothing that is under way ends")
        return None
    told = len(ran.lines)
    if left := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(left, timeout=_LONG)
        if any(not one.done() for one in left):
            ran.broken.append("something of it is under way after its end")
    if len(ran.lines) > told:
        ran.broken.append(f"a {ran.lines[told]['type']} comes after its end")
    return work.result()


def _reported(told: Mapping[str, Any]) -> str:
    error = told.get("exception")
    return str(told["message"]) + (f": {describe(error)}" if error is not None else "")


def _in_virtual_time(run: Callable[[], Coroutine[Any, Any, Any]], wrong: list[str]) -> Any:
    """Run something in a loop of its own; what it raises is told in ``wrong``."""
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(run())
    except Exception as error:
        wrong.append(named(error))
        return None


def _told(parting: Parting) -> str:
    """Where a run parts from its log, in one line."""
    agent = f" of {parting.agent}" if parting.agent else ""
    place = "after its end" if parting.seq is None else f"at seq {parting.seq}"
    return (
        f"{place}{agent}, {parting.type}.{parting.path} was {parting.recorded!r:.80} and is "
        f"{parting.new!r:.80}"
    )
