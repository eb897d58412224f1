"""Holds a run that is driven by a log against the log, event by event."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any, Protocol, cast

from runner.engine.event import Event
from runner.engine.message import as_message
from runner.engine.session import Session, current
from runner.log.drive import Drive, is_answer, is_from_outside
from runner.log.parting import Parting, first_difference, likely_cause
from runner.log.tape import Line


class DrivenRun(Protocol):
    """What a follower needs of the run."""

    session: Any

    def abort(self, signal: int | None = None) -> None:
        """End it."""
        ...


class Follower:
    """Is asked of each event whether the log has it, and takes it from the tape.

    Args:
        drive: The log.
        go_live: Called once, with the first event that the log does not have: the run goes on
            live. None in a replay, which ends there.
        tells: Whether events that the log has are told all the same: in a fork, to its own log.
        up_to_turn: The turn of the main agent at which the tape is cut.
    """

    def __init__(
        self,
        drive: Drive,
        *,
        go_live: Callable[[Event], None] | None = None,
        tells: bool = False,
        up_to_turn: int | None = None,
    ) -> None:
        self._drive = drive
        self._go_live = go_live
        self._tells = tells
        self._up_to_turn = up_to_turn
        self._turns: dict[str | None, int] = {}
        self.run: DrivenRun | None = None
        self.on_resume: Callable[[Line], None] | None = None
        """Called where the run was resumed after it was killed, in the midst of its work."""
        self.difference: Parting | None = None
        self.past_end = False
        """Whether the run came to the end of a log that breaks off."""
        self.live = False
        """Whether the run goes on live."""

    def __call__(self, event: Event, agent: str | None) -> bool:
        """Whether an event of an agent need not be told."""
        if self.difference is not None or self.past_end:
            return True
        if self.live and event["type"] == "run_resume":
            return False  # other agents may have lines left, which are theirs
        tape = self._drive.tape
        if event["type"] == "turn_start":
            self._turns[agent] = event["turn"]
            if agent is None and event["turn"] == self._up_to_turn:
                tape.cut()
        line = self._next(event, agent)
        if line is None:
            return self._after_the_end(event, agent)
        if self._tells:
            tape.take(agent)
        else:
            found = first_difference(line, event)
            if found is not None and not self._is_unknowable(event, found[0]):
                self._part(line, event, agent, found)
                return True
            tape.take(agent)
        self._look_ahead(line, agent)
        return not self._tells

    def _is_unknowable(self, event: Event, path: str) -> bool:
        return (
            event["type"] == "model_request"
            and not self._drive.knows_context
            and path.startswith("context_")
        )

    def _next(self, event: Event, agent: str | None) -> Line | None:
        """The line that an event is held against; what resumes wrote is passed over."""
        line = self._drive.tape.next(agent)
        while line is not None and line["type"] == "run_resume" != event["type"]:
            self._drive.tape.take(agent)
            self._drive.part += 1
            if self.on_resume is not None:
                self.on_resume(line)
            line = self._drive.tape.next(agent)
        if line is not None and event["type"] == "run_resume":
            self._drive.part += 1
        return line

    def _after_the_end(self, event: Event, agent: str | None) -> bool:
        if self._go_live is not None:
            if not self.live:
                self.live = True
                self._go_live(event)
            return False
        if self._drive.survey.end is None:
            self.past_end = True
        else:
            self.difference = Parting(
                None,
                agent,
                self._turns.get(agent, 0),
                event["type"],
                "",
                None,
                {key: value for key, value in event.items() if key not in ("seq", "t")},
                "the run goes on where its log ends",
            )
        self._stop()
        return True

    def _part(
        self, line: Line, event: Event, agent: str | None, found: tuple[str, Any, Any]
    ) -> None:
        path, recorded, new = found
        self.difference = Parting(
            line.get("seq"),
            agent,
            self._turns.get(agent, 0),
            line["type"],
            path,
            recorded,
            new,
            likely_cause(line, event, path),
        )
        self._stop()

    def _stop(self) -> None:
        self._drive.tape.release()
        if self.run is not None:
            self.run.abort()

    def _look_ahead(self, line: Line, agent: str | None) -> None:
        """Do what came from outside, now that its place has come."""
        if self.run is None:
            return
        if not is_from_outside(line):
            for one in takewhile(is_from_outside, self._drive.tape.ahead(agent)):
                session = self.run.session
                target = session.steering if one["queue"] == "steering" else session.follow_up
                target.put(as_message(one["message"]), one["source"])
        following = self._drive.tape.coming(agent)
        if following is not None:
            self._stop_before(following, line, agent)

    def _stop_before(self, following: Line, line: Line, agent: str | None) -> None:
        """Abort where the next line of an agent shows that it was aborted by then."""
        drive = self._drive
        match line["type"]:
            case "model_retry":
                # No other request was made: the abort came while it was waited for.
                stopped = is_answer(following)
            case "tool_execution_start":
                # Before it was ready to be run.
                call = following.get("tool_call_id")
                stopped = drive.was_not_begun(following) and call == line["tool_call_id"]
            case "turn_end":
                # When the turn was over, unless a hook was under way that told something.
                first = next(drive.tape.ahead(agent))
                by_hook = first["type"] == "message_queued" and first["source"] == "hook"
                stopped = not by_hook and drive.was_stopped_at_rest(following, agent)
            case "message_end" if agent is None:
                # No request was made: the abort came first. (Others than the main agent look at
                # that when they are about to make it, as all of them have to come that far.)
                stopped = is_answer(following)
            case _:
                stopped = agent is None and self._is_aborted_here(following, line)
        if stopped:
            drive.abort_alone(self._session(agent))

    def _session(self, agent: str | None) -> Session:
        """That of an agent whose event this is: it is told where the agent works."""
        return cast("DrivenRun", self.run).session if agent is None else current.get()

    def _is_aborted_here(self, following: Line, line: Line) -> bool:
        """Whether the main agent's next line is its end, and its run was aborted between tasks."""
        if following["type"] != "agent_end":
            return False
        lines = self._drive.tape.ahead(None)
        next(lines)
        after = next(lines, None)
        if after is None:  # it was killed before it told that
            return bool(line.get("status") == "aborted")
        return bool(after["type"] == "run_end" and after["status"] == "aborted")
