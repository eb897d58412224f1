"""A recorded run once more for each point where it can fail, in memory and with nothing real."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from runner.api.chaos_point import Point, all_points
from runner.api.chaos_run import Line, Ran, Stage
from runner.api.options import Control, RunOptions, RunResult
from runner.api.prepared import prepare
from runner.api.replay import Recording, start_of
from runner.api.runs import run
from runner.error import LogError
from runner.json_text import line
from runner.log.ends import ends
from runner.log.invariants import broken
from runner.log.script import Script

_KEPT = ("tool_called", "tool_not_called", "that")
"""Kinds of expectations that can hold whatever a model says."""
_NAMES_TEXT = re.compile(r"\bresult\b(?!\s*\.\s*(?!text\b|output\b)\w)")
"""In a condition: what may be about what a model said."""
_COMPARED = ("status", "exit_code", "text", "output")


@dataclass(slots=True)
class Outcome:
    """What came of one point."""

    point: Point
    status: str | None
    """How the run ended; None where it did not."""
    exit_code: int | None
    error: str | None
    """Why it did not end as ``ok``."""
    broken: list[str]
    """What does not hold; empty where the run survived."""
    lines: list[Line]
    """Its log; where what doesn't hold was found after it went on, that of the whole."""


class Chaos:
    """A log, and the runs that are made of it.

    Args:
        log: The log's file.
        seed: Decides all that is left to chance.

    Raises:
        LogError: where it can't be read.
    """

    def __init__(self, log: str | Path, seed: int = 0) -> None:
        recording = Recording(log)
        lines = list(recording.lines())
        self.warnings = recording.warnings
        self.recorded = recording.survey.end
        """The recording's ``run_end``; None where it has none."""
        self._seed = seed
        start: Line = {"seq": 0, "t": 0.0, **start_of(recording)}
        start["plan"] = _without_texts(recording.plan)
        start.setdefault("run_id", "chaos")
        self._stage = Stage(recording.path, start, seed)
        self._control = self._stage.fresh(Script(lines))
        self._script = Script(self._control.lines)
        self._missed = set(_missed(self._control.lines))
        self._killed_last: tuple[int, Ran, list[str]] | None = None
        """After how many lines the run was killed last, and what came of it: a torn line more
        makes no difference to it, once the log is read."""

    @property
    def control(self) -> Outcome:
        """The run with nothing that goes wrong: what all others are held against."""
        wrong = [*self._wrong(self._control), *sorted(self._missed)]
        return _outcome(Point("model", "nothing", 0), self._control, wrong)

    def points(self) -> list[Point]:
        """All points at which the run can fail."""
        lines = self._control.lines
        types = [one["type"] for one in lines]
        at_once = _written_at_once(lines)
        found = all_points(self._control.edges.reached, types)
        return [one for one in found if one.kind != "crash" or one.place not in at_once]

    def run(self, point: Point) -> Outcome:
        """Make the run fail at a point, see how it ends, and let it go on.

        A run that was killed or aborted goes on, and has to come to the undisturbed end. Any other
        is killed once more, somewhere, and has to come to its own end again.
        """
        if point.kind == "crash":
            return self._crash(point)
        ran = self._stage.fresh(self._script, point)
        wrong = self._wrong(ran)
        if wrong:
            return _outcome(point, ran, wrong)
        at_once = _written_at_once(ran.lines)
        places = [n for n in range(1, len(ran.lines)) if n - 1 not in at_once]
        place = random.Random(f"{self._seed} {point}").choice(places)
        if point.kind == "abort" and ran.end["status"] == "aborted":
            return self._after_abort(point, ran, max(place, point.place + 1))
        wrong = self._wrong_after(after := self._killed(ran, place), place, ran)
        where = f"killed after line {place - 1} and resumed"
        return _outcome(point, ran, [f"{where}: {text}" for text in wrong], after)

    def _after_abort(self, point: Point, ran: Ran, place: int) -> Outcome:
        """Let a run go on that was aborted; and one that was killed while it was ending."""
        for count, where in (len(ran.lines), "resumed"), (place, f"killed after line {place - 1}"):
            lines = ran.lines[:count]
            after = self._stage.resumed(lines, self._script, Script(lines).count)
            if wrong := self._wrong_after(after, count, self._control, aborted=True):
                return _outcome(point, ran, [f"{where}: {text}" for text in wrong], after)
        return _outcome(point, ran, [])

    def _killed(self, ran: Ran, place: int) -> Ran:
        """A run that was killed after some lines, and goes on as it did."""
        own = Script(ran.lines)
        return self._stage.resumed(ran.lines[:place], own, lambda agent: own.answered(agent, place))

    def _crash(self, point: Point) -> Outcome:
        count = point.place + 1
        if self._killed_last is None or self._killed_last[0] != count:
            after = self._killed(self._control, count)
            wrong = self._wrong_after(after, count, self._control)
            self._killed_last = count, after, wrong
        _, after, wrong = self._killed_last
        torn = self._stage.torn(self._control.lines, count) if point.what != "killed" else None
        return _outcome(point, after, [torn, *wrong] if torn is not None else wrong)

    def _wrong(self, ran: Ran, *, but: str | None = None) -> list[str]:
        """What does not hold of a run by itself; expectations of one kind are left out."""
        wrong = ran.broken + broken(ran.lines)
        if wrong:
            return wrong
        differs = self._stage.replayed(ran.lines)
        wrong = [f"its replay differs: {differs}"] if differs is not None else []
        return wrong + [text for text in _missed(ran.lines, but) if text not in self._missed]

    def _comparable(self, ran: Ran, after: Ran) -> tuple[str, ...]:
        """What an aborted run that went on has in common with one that was not disturbed.

        A turn that was aborted counts for its limits, and what was queued meanwhile is taken in
        another turn. A model may be asked once more than it was, where a call or a hook that
        would have ended the run was stopped.
        """
        if ran.end["status"] != "ok" or after.end["status"] == "limit" or after.edges.ran_out:
            return ()
        queued = any(one["type"] == "message_queued" for one in ran.lines)
        texts = () if queued else ("text", "output")
        return texts if _missed(after.lines) else ("status", "exit_code", *texts)

    def _wrong_after(self, after: Ran, count: int, ran: Ran, *, aborted: bool = False) -> list[str]:
        """What does not hold of a run that went on after some lines, and was to end as another."""
        # An aborted turn is one more, which conditions may count.
        wrong = self._wrong(after, but="that" if aborted else None)
        finished = {
            (one.get("agent"), one["tool_call_id"])
            for one in after.lines[:count]
            if one["type"] == "tool_execution_end"
        }
        for agent, call, *_ in after.edges.reached.calls:
            if (agent, call) in finished:
                wrong.append(f"{call} of {agent or 'main'} is run again, though it had ended")
        compared: tuple[str, ...] = _COMPARED
        if ran.end["status"] == "limit":
            compared = ()  # a call that was cut short has another result, and time has passed
        elif aborted:
            compared = self._comparable(ran, after)
        for key in compared if not wrong else ():
            there, wanted = after.end.get(key), ran.end.get(key)
            if there != wanted:
                wrong.append(f"its {key} is {there!r:.80}, not {wanted!r:.80}")
        return wrong


def _outcome(point: Point, ran: Ran, wrong: list[str], after: Ran | None = None) -> Outcome:
    lines = after.lines if after is not None and wrong else ran.lines
    end = ran.end
    return Outcome(point, end.get("status"), end.get("exit_code"), end.get("error"), wrong, lines)


def _written_at_once(lines: Sequence[Line]) -> set[int]:
    """The places of lines that the next one is written with: messages that a hook gave at once."""
    given = [one["type"] == "message_queued" and one["source"] == "hook" for one in lines]
    return {place for place, pair in enumerate(pairwise(given)) if all(pair)}


def _missed(lines: Iterable[Line], but: str | None = None) -> list[str]:
    """The expectations that were not met, but for one kind."""
    return [
        f"an expectation of {one['task_id']} is not met: {one['kind']}: {one['detail']}"
        for one in lines
        if one["type"] == "expectation" and not one["passed"] and one["kind"] != but
    ]


def _without_texts(plan: Mapping[str, Any]) -> Line:
    """A plan without the expectations that are about what a model says."""
    made = {**plan, "expect": _kept(plan.get("expect", ()))}
    follow_ups = plan.get("follow_ups", {})
    tasks = [{**one, "expect": _kept(one.get("expect", ()))} for one in follow_ups.get("tasks", ())]
    if tasks:
        made["follow_ups"] = {**follow_ups, "tasks": tasks}
    resolved = plan.get("resolved", {})
    agents = {path: _without_texts(one) for path, one in resolved.get("agents", {}).items()}
    return {**made, "resolved": {**resolved, "agents": agents}}


def _kept(expectations: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [_asked(one) for one in expectations if _is_kept(one)]


def _asked(expectation: Mapping[str, Any]) -> Mapping[str, Any]:
    """One that asks for calls, also met by those that were not run.

    A model that is told so calls again, which a recorded one can't.
    """
    called = expectation.get("tool_called")
    if called is None:
        return expectation
    called = {"name": called} if isinstance(called, str) else called
    return {**expectation, "tool_called": {**called, "refused": True}}


def _is_kept(expectation: Mapping[str, Any]) -> bool:
    kind = next((key for key, value in expectation.items() if value is not None), None)
    if kind == "that":
        return _NAMES_TEXT.search(str(expectation["that"])) is None
    return kind in _KEPT


async def record(path: str, options: RunOptions, control: Control | None = None) -> RunResult:
    """Run a spec, for a log that can be run again.

    Raises:
        SpecError: with all that is wrong with the spec; nothing was run.
        UsageError: if it can't be run like that; nothing was run.
        LogError: if its log can't be begun.
    """
    return await run(prepare(path, replace(options, frozen=True)), control=control)


def is_log(path: str) -> bool:
    """Whether a file is a log of pi-run, and no spec; also one that is broken, by its name."""
    if path.endswith(".jsonl"):
        return True
    try:
        with Path(path).open("rb") as file:
            return ends(file.fileno()).first is not None
    except (OSError, ValueError):
        return False


class Keeper:
    """Keeps the logs of runs that were made to fail.

    Args:
        folder: Where; it is made.
        keeps_all: Whether those that survived are kept too.
    """

    def __init__(self, folder: str, *, keeps_all: bool = False) -> None:
        self._folder = Path(folder)
        self._keeps_all = keeps_all
        self._count = 0

    def keep(self, outcome: Outcome) -> str | None:
        """Write the log of a point, if it is one to be kept; gives its path.

        Raises:
            LogError: where it can't be written.
        """
        self._count += 1
        if not outcome.broken and not self._keeps_all:
            return None
        words = re.sub(r"\W+", "-", f"{outcome.point.kind} {outcome.point.what}")
        path = self._folder / f"{self._count:04}-{words}.jsonl"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(map(_text, outcome.lines)), encoding="utf-8")
        except OSError as error:
            raise LogError(f"{path}: can't be written: {error.strerror or error}") from None
        return str(path)


def _text(event: Line) -> str:
    return line(event) + "\n"
