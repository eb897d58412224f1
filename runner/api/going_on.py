"""A log driven to where its run broke off, and the run from there on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from runner.api.replay import Recording, adopting, later_plan, resume_of, start_of
from runner.engine.emit import Emitter
from runner.engine.event import Event, RunResume
from runner.engine.plan import Plan
from runner.engine.run import Ended, Run
from runner.log.drive import Drive, DrivenClock
from runner.log.follow import Follower
from runner.log.parting import Parting
from runner.log.survey import Call, Survey

Open = Literal["error", "rerun", "stop"]


@dataclass(slots=True)
class GoingOn:
    """A run that goes on where its log ends."""

    recording: Recording
    drive: Drive
    plan: Plan
    """What the log is driven by."""
    rerun: list[Call] = field(default_factory=list)
    """The calls that were under way and are run again."""
    unknown: list[Call] = field(default_factory=list)
    """The calls that were under way and are answered as unknown."""
    new_plan: Plan | None = None
    """What the run goes on by, where it is another."""
    new_json: dict[str, Any] | None = None
    """The same as it is told."""

    async def run(
        self, clock: DrivenClock, emitter: Emitter, ready: Callable[[Run], object]
    ) -> tuple[Ended, Parting | None]:
        """Drive it by its log, and go on to its end.

        Args:
            clock: Time, as it was and from there on.
            emitter: Takes what the log has not.
            ready: Is called with the run, just before it begins.

        Returns:
            How it ended, and where it parts from its log: there it was stopped.
        """
        run = Run(self.plan, start_of(self.recording), emitter, clock)
        run.session.replaced.update(self.recording.replaced())

        def go_live(event: Event) -> None:
            clock.go_live()
            if self.new_plan is not None:
                run.adopt(self.new_plan)
            if event["type"] != "run_resume":
                emitter.emit(self._event())
            run.limit_time()

        follower = Follower(self.drive, go_live=go_live)
        emitter.recorded = follower
        follower.run, self.drive.root = run, run.session
        follower.on_resume = adopting(self.recording, run, self.plan)
        ready(run)
        whole = copy.deepcopy(self.recording.survey)
        unsubscribe = emitter.subscribe(lambda event: whole.see(cast("Any", event)))
        ended = await run.execute()
        while not follower.live and follower.difference is None:
            line = self.drive.tape.next(None)
            if line is None:
                ended = await run.go_on(self._event(), self.new_plan)
                break
            ended = await run.go_on(resume_of(line), later_plan(self.recording, self.plan, line))
        unsubscribe()
        cut_short = self.drive.cut_short is not None and follower.difference is None
        if cut_short and ended.event["status"] == "aborted":
            # It was killed while it was ending, and ended now: only from here does it go on.
            ended = await run.go_on(_resume_event(whole, [], [*whole.open_calls]))
        return ended, follower.difference

    def _event(self) -> RunResume:
        event = _resume_event(self.recording.survey, self.rerun, self.unknown)
        if self.new_json is not None:
            event["plan"] = self.new_json
        return event


def _resume_event(known: Survey, rerun: list[Call], unknown: list[Call]) -> RunResume:
    told = known.going_on()
    return {
        "type": "run_resume",
        "at_seq": told["at_seq"],
        "reason": told["reason"],
        "kept": told["kept"],
        "rerun": [call for _, call in rerun],
        "unknown": [call for _, call in unknown],
        "not_started": told["not_started"],
    }


def open_calls(recording: Recording, wanted: Open | None = None) -> tuple[list[Call], list[Call]]:
    """The calls that were under way: those that are run again, and those that are not.

    Args:
        recording: The log.
        wanted: What becomes of all of them; None: those of idempotent tools are run again, once.
    """
    idempotent = set(_idempotent(recording.plan))
    rerun: list[Call] = []
    unknown: list[Call] = []
    for call, line in recording.survey.open_calls.items():
        again = line["tool_name"] in idempotent and call not in recording.survey.rerun
        if wanted is not None:
            again = wanted == "rerun"
        (rerun if again else unknown).append(call)
    return rerun, unknown


def _idempotent(plan: Mapping[str, Any]) -> Iterator[str]:
    """The names of all tools of a plan, and of the specs that it uses, that are idempotent."""
    resolved = plan.get("resolved", {})
    yield from (tool["name"] for tool in resolved.get("tools", ()) if tool.get("idempotent"))
    for agent in resolved.get("agents", {}).values():
        yield from _idempotent(agent)
