"""Drives a run by a log: what the model said and what tools came to is played back to the loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from runner.engine.contract import (
    Cancellation,
    Clock,
    Interrupted,
    ModelRequest,
    Provider,
    Stop,
    StreamEvent,
    Tool,
    ToolResult,
    Update,
)
from runner.engine.message import Message
from runner.engine.options import Ending
from runner.engine.session import Session, current
from runner.engine.sub_agent import AgentTool
from runner.engine.tool_outcome import UNFIT, not_run
from runner.error import ProviderError
from runner.log.ending import reason_of, recorded_ending
from runner.log.played import delta_events, fault_of, rest_events
from runner.log.survey import Call, Survey
from runner.log.tape import Line, Tape

SELF_ABORTED = "the model's answer was aborted"
"""How a run ends whose model says of itself that it was cut short."""
REST = 0.01
"""Seconds without any progress after which all agents have come to a rest: none of them waits for
anything that takes time."""
_AT_REST = ("stop_after_turn", "steering_messages", "follow_up_messages")
"""The extension points between two turns."""
UNKNOWN = (
    "The run was killed while this call was under way: whether it had its effect is unknown. "
    "Look at what is there before you call it again."
)


@dataclass(slots=True)
class NextAnswer:
    """An answer as it stands in a log."""

    deltas: list[Line] = field(default_factory=list)
    begun: bool = False
    """Whether its ``message_start`` is there."""
    end: Line | None = None
    """Its ``message_end``, or the ``model_retry`` of one that failed before it began; None where
    the run was killed before that."""
    after: Line | None = None
    """The line after that."""


class Drive:
    """A tape, and what is known of the log as a whole."""

    def __init__(self, tape: Tape, survey: Survey) -> None:
        self.tape = tape
        self.survey = survey
        self.part = 0
        """Counts the parts of the run that resumes make."""
        self.root: Session | None = None
        """The main agent's session."""
        self.timers = False
        """Whether timers run: where tools are real."""
        self.knows_context = True
        """Whether what was sent to the model can be told again."""
        self.cut_short: Ending | None = None
        """How the run was ending when it was killed, if it was."""
        self.rerun: frozenset[Call] = frozenset()
        """The calls without an end that are run again."""

    def at_end(self, agent: str | None) -> bool:
        """Whether an agent has no more lines."""
        return next(self.tape.ahead(agent), None) is None

    def abort(self, session: Session) -> None:
        """End a run, or an agent with a limit of its own, as its log says that it was."""
        ending = self._ending(session)
        (session if ending.limit is not None and session.path else self.root or session).abort(
            ending
        )

    def abort_alone(self, session: Session) -> None:
        """As `abort`, but for all other agents: they may not have come that far yet."""
        session.abort(self._ending(session))

    def _ending(self, session: Session) -> Ending:
        # One that was killed while it was ending was brought to that end when it was resumed.
        end = next((end for end in self.survey.ends[self.part :] if end is not None), None)
        ending = recorded_ending(self.tape, end, session, self.root)
        if ending is None:
            ending = self.cut_short = self.cut_short or Ending("aborted", reason_of(self.tape))
        return ending

    async def before_request(self) -> None:
        """Abort where the log has an answer for which no request was made."""
        session = current.get()
        line = self.tape.coming(session.path)
        if line is not None and is_answer(line):
            await self.abort_at_rest(session)

    async def abort_at_rest(self, session: Session) -> None:
        """As `abort`, once all other agents have come to where it found them.

        Each of them stands still there: what it was doing did not come to its end.
        """
        tape, taken = self.tape, -1
        while taken != tape.taken or tape.busy:
            taken = tape.taken
            await asyncio.sleep(REST)
        self.abort(session)

    def refusal(self, session: Session) -> list[str]:
        """Why the call that an agent just began was not run, if its tool refused its arguments."""
        line = self.tape.coming(session.path)
        if line is None or line["type"] != "tool_execution_end" or not line["is_error"]:
            return []
        head, *reasons = _text(line).split("\n- ")
        return reasons if head == UNFIT else []

    def was_not_begun(self, line: Line) -> bool:
        """Whether a line tells of a call that was not begun, since its run was stopped by then."""
        if line["type"] != "tool_execution_end" or "stopped" not in line:
            return False
        return _text(line) == not_run(line["stopped"])

    def was_stopped_at_rest(self, line: Line, agent: str | None) -> bool:
        """Whether a task ended between two turns by an abort, or since time was up.

        All other limits are reached again by themselves.
        """
        if line["type"] != "task_end" or line["status"] != "limit":
            return bool(line["type"] == "task_end" and line["status"] == "aborted")
        for one in self.tape.ahead(agent):
            if one["type"] == "limit_reached":
                return bool(one["limit"] == "seconds")
            if one["type"] == "agent_end":
                break
        # Another agent told it, as it is told once a run.
        end = self.survey.ends[self.part]
        return end is not None and end.get("error", "").startswith("the limit seconds of ")

    async def during_hook(self, point: str) -> None:
        """Abort where the log shows that it was done while a hook was under way."""
        session = current.get()
        line = self.tape.coming(session.path)
        if line is None or session.cancellation.cancelled:
            return
        if point == "before_tool_call":
            stopped = self.was_not_begun(line)
        else:
            stopped = point in _AT_REST and self.was_stopped_at_rest(line, session.path)
        if stopped:
            await self.abort_at_rest(session)
            await asyncio.Event().wait()

    # --- an answer --------------------------------------------------------------------------------

    def answer(self, agent: str | None) -> NextAnswer:
        """What the log says of an agent's next answer."""
        answer = NextAnswer()
        lines = self.tape.ahead(agent)
        for line in lines:
            match line["type"]:
                case "message_start":
                    answer.begun = True
                case "message_update":
                    answer.deltas.append(line)
                case "message_end" if line["message"]["role"] == "assistant":
                    answer.end, answer.after = line, _after(lines)
                    break
                case "model_retry":
                    answer.end, answer.after = line, _after(lines)
                    break
                case "message_queued":
                    continue
                case _:
                    break
        return answer


def is_answer(line: Line) -> bool:
    """Whether a line begins an answer."""
    return bool(line["type"] == "message_start" and line["message"].get("role") == "assistant")


def is_from_outside(line: Line) -> bool:
    """Whether a line tells of a message that neither the spec nor a hook gave."""
    return (
        line["type"] == "message_queued"
        and "agent" not in line
        and line["source"] not in ("spec", "hook")
    )


def _text(end: Line) -> str:
    """The text of a call's result."""
    return "".join(block.get("text", "") for block in end["result"]["content"])


def _after(lines: Iterator[Line]) -> Line | None:
    return next((line for line in lines if line["type"] != "message_queued"), None)


class RecordedProvider:
    """A model that says again what it said.

    Args:
        name: The provider's.
        drive: What it is driven by.
        live: Asked where the log has no more; None in a replay.
    """

    def __init__(self, name: str, drive: Drive, live: Provider | None = None) -> None:
        self.name = name
        self._drive = drive
        self._live = live

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Play the answer that was recorded; see `Provider.stream`."""
        session = current.get()
        if self._drive.at_end(session.path) and self._live is not None:
            if self._drive.tape.breaks_off_after(session.path, "model_request"):
                raise Interrupted  # that request is in the log; the one made now is to be, too
            async for event in self._live.stream(request):
                yield event
            return
        answer = self._drive.answer(session.path)
        end = answer.end
        told: dict[int, list[str]] = {}
        for line in answer.deltas:
            for event in delta_events(line["delta"], told):
                yield event
        if end is None:
            raise Interrupted(answer.begun)
        if end["type"] == "model_retry":
            raise ProviderError(
                end["error"],
                "server",
                retryable="fallback" not in end,
                retry_after=end["delay"] or None,
            )
        message = end["message"]
        for event in rest_events(message, told):
            yield event
        yield await self._stop(session, message, answer.after)

    async def _stop(self, session: Session, message: Line, after: Line | None) -> Stop:
        reason = message["stop_reason"]
        if reason == "error":
            raise fault_of(message["error"], after)
        if reason != "aborted":
            return Stop(reason, bool(message.get("paused")))
        broke_off = after is None and self._drive.survey.end is None
        if broke_off or (after is not None and after["type"] in ("model_request", "message_start")):
            # Killed there, and resumed later: the model was asked again.
            raise Interrupted(begun=True)
        end = self._drive.survey.ends[min(self._drive.part, len(self._drive.survey.ends) - 1)]
        if end is not None and end.get("error") == SELF_ABORTED:
            return Stop("aborted")
        await self._drive.abort_at_rest(session)
        await asyncio.Event().wait()
        raise AssertionError("an aborted answer is cancelled")

    async def close(self) -> None:
        """Let go of the live one."""
        if self._live is not None:
            await self._live.close()


class RecordedTool:
    """A tool that comes to what it came to; nothing is run.

    Args:
        schema: What the model sees of it: ``name``, ``description``, ``parameters``.
        drive: What it is driven by.
        live: Makes the real one, for calls that the log does not answer; None in a replay.
    """

    label: str
    timeout: float | None = None

    def __init__(
        self, schema: Mapping[str, Any], drive: Drive, live: Callable[[], Tool] | None = None
    ) -> None:
        self.name: str = schema["name"]
        self.label = self.name
        self.description: str = schema["description"]
        self.parameters: Mapping[str, Any] = schema["parameters"]
        self.execution = schema.get("execution", "parallel")
        self.idempotent = bool(schema.get("idempotent", False))
        self._drive = drive
        self._make_live = live
        self._live: Tool | None = None

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        """What the live one said, where the log has the call; else what it says."""
        session = current.get()
        if self._make_live is None or not self._drive.at_end(session.path):
            return self._drive.refusal(session)
        return self._real().check(arguments)

    def _real(self) -> Tool:
        if self._live is None:
            self._live = cast("Any", self._make_live)()
            self.timeout = self._live.timeout
        return self._live

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Give the recorded result; see `runner.engine.contract.Tool`."""
        session = current.get()
        drive, path = self._drive, session.path
        call = (path, tool_call_id)
        begun = call in drive.survey.open_calls
        if self._make_live is not None and (
            call in drive.rerun or (drive.at_end(path) and not begun)
        ):
            return await self._real().execute(tool_call_id, params, on_update, cancellation)
        try:
            while line := await drive.tape.until(path, lambda line: _is_of(line, tool_call_id)):
                if line["type"] != "tool_execution_update":
                    break
                on_update(line["update"])
        except asyncio.CancelledError:
            # Another call of the turn was the first to be stopped; this one's turn comes later.
            if _end_of(drive.tape, path, tool_call_id) is None:
                raise
        end = _end_of(drive.tape, path, tool_call_id)
        if end is None:
            return ToolResult(UNKNOWN, is_error=True)
        return await _play(drive, session, end, cancellation)


class RecordedAgent:
    """An agent as a tool: it is driven too, and stopped where its log says so."""

    def __init__(self, tool: AgentTool, drive: Drive) -> None:
        self._tool = tool
        self._drive = drive
        self.name = tool.name
        self.label = tool.label
        self.description = tool.description
        self.parameters = tool.parameters
        self.execution = tool.execution
        self.idempotent = tool.idempotent
        self.timeout = tool.timeout

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        """What the tool said, where the log has the call; else what it says."""
        session = current.get()
        if self._drive.at_end(session.path):
            return self._tool.check(arguments)
        return self._drive.refusal(session)

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Run the agent by its own lines; see `runner.engine.contract.Tool`."""
        session = current.get()
        end = _end_of(self._drive.tape, session.path, tool_call_id)
        if end is not None and "stopped" in end and not self._began(session, params):
            return await _play(self._drive, session, end, cancellation)
        result = await self._tool.execute(tool_call_id, params, on_update, cancellation)
        end = _end_of(self._drive.tape, session.path, tool_call_id)
        if end is None or "stopped" not in end:
            return result
        return await _play(self._drive, session, end, cancellation)

    def _began(self, session: Session, params: dict[str, Any]) -> bool:
        """Whether the agent of the call had begun when the call was stopped."""
        try:
            name = self._tool.bind(params).name
        except Exception:
            return False
        path = f"{session.path or 'main'}/{name}#{session.agents[name] + 1}"
        return self._drive.tape.next(path) is not None


async def _play(
    drive: Drive, session: Session, end: Line, cancellation: Cancellation
) -> ToolResult:
    """The result that a call's last line tells, stopped as it was."""
    result = ToolResult(
        end["result"]["content"],
        end["result"].get("details"),
        end["is_error"],
        bool(end.get("terminate")),
        complete=True,
    )
    stopped = end.get("stopped")
    if stopped is None:
        return result
    cancellation.cancel(stopped)
    if not stopped.startswith("timed out") and not session.cancellation.cancelled:
        try:
            await drive.abort_at_rest(session)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return result
    return result


def _is_of(line: Line, tool_call_id: str) -> bool:
    kinds = ("tool_execution_update", "tool_execution_end", "hook_decision")
    return line["type"] in kinds and line.get("tool_call_id") == tool_call_id


def _end_of(tape: Tape, agent: str | None, tool_call_id: str) -> Line | None:
    for line in tape.ahead(agent):
        if line["type"] == "tool_execution_end" and line["tool_call_id"] == tool_call_id:
            return line
    return None


class DrivenClock(Clock):
    """Time as it was: nothing is waited for, and what raced ends in its recorded order."""

    def __init__(self, drive: Drive) -> None:
        self._drive = drive

    def now(self) -> float:
        """The recorded time; once the run goes on live, real time after it."""
        if not self._live:
            return self._drive.tape.t
        return super().now() - self._offset

    _live = False
    _offset = 0.0

    def go_live(self) -> None:
        """From here on, time passes."""
        if not self._live:
            self._offset = super().now() - self._drive.survey.elapsed
            self._live = True

    async def sleep(self, seconds: float) -> None:
        """Wait, but only live."""
        if self._live:
            await super().sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        """As it is, live; recorded timers are told by the log."""
        if self._live or self._drive.timers:
            return super().call_later(seconds, callback)
        handle = super().call_later(0, lambda: None)
        handle.cancel()
        return handle

    async def turn_of(self, agent: str | None, what: str, key: str) -> None:
        """Wait for the place among what raced."""
        if what == "tool_execution_begin":
            end = _end_of(self._drive.tape, agent, key)
            if end is not None and self._drive.was_not_begun(end):
                self._drive.abort_alone(current.get())
        elif not self._drive.at_end(agent):
            await self._drive.tape.until(agent, lambda line: _is_turn(line, what, key))


def _is_turn(line: Line, what: str, key: str) -> bool:
    if what == "task_end":
        name = f"{line.get('task_id')} {line.get('iteration')}"
        return line["type"] == "task_end" and name == key
    return line["type"] in (what, "hook_decision") and line.get("tool_call_id") == key


def recorded_messages(drive: Drive, queue: str) -> Callable[[], list[Message]]:
    """A supplier that gives the messages which the log says one gave, when they are due."""

    def supply() -> list[Message]:
        found: list[Message] = []
        for line in drive.tape.ahead(current.get().path):
            if line["type"] != "message_queued" or line["queue"] != queue:
                break
            if line["source"] == "hook":
                found.append(line["message"])
        return found

    return supply
