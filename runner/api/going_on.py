"""A log driven to where its run broke off, and the run from there on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from runner.api.replay import Recording, adopting, later_plan, resume_of, start_of
from runner.engine.emit import Emitter
from runner.engine.event import Event, RunResume
from runner.engine.plan import Plan
from runner.engine.run import Ended, Run
from runner.log.drive import Drive, DrivenClock
from runner.log.follow import Follower
from runner.log.parting import Parting
from runner.log.survey import Call

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
        ended = await run.execute()
        while not follower.live and follower.difference is None:
            line = self.drive.tape.next(None)
            if line is None:
                ended = await run.go_on(self._event(), self.new_plan)
                break
            ended = await run.go_on(resume_of(line), later_plan(self.recording, self.plan, line))
        return ended, follower.difference

    def _event(self) -> RunResume:
        survey = self.recording.survey
        end = survey.end
        event: RunResume = {
            "type": "run_resume",
            "at_seq": survey.lines - 1,
            "reason": "killed" if end is None else end["status"],
            "kept": survey.finished,
            "rerun": [call for _, call in self.rerun],
            "unknown": [call for _, call in self.unknown],
            "not_started": survey.not_started if end is None else [],
        }
        if self.new_json is not None:
            event["plan"] = self.new_json
        return event


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
