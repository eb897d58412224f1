"""What a log says of each model, tool and hook, by itself, so that a run can part from the log.

A replay takes a log line by line, and ends where it differs. Here each agent's answers are a list
that its model says one after the other, whenever it is asked, and each call has its result,
whenever it is made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.engine.contract import Stop, StreamEvent, TextDelta, UsageReport
from runner.engine.message import no_usage
from runner.error import ProviderError
from runner.json_text import canonical
from runner.log.drive import SELF_ABORTED, is_from_outside
from runner.log.played import delta_events, fault_of, rest_events
from runner.log.tape import Line

END = "(The recording ends here.)"
"""What a model says that is asked more often than it was."""

Agent = str | None
"""An agent's path; None for the main one."""


@dataclass(slots=True)
class Answer:
    """What came of one request."""

    end: int
    """Number of the line that ended it."""
    deltas: list[Line] = field(default_factory=list)
    message: Line | None = None
    """The whole message; None where the request failed before it began."""
    fault: Callable[[], ProviderError] | None = None
    """How it failed, if it did."""

    def events(self) -> list[StreamEvent]:
        """All that was streamed, but for its terminal mark."""
        told: dict[int, list[str]] = {}
        events = [event for delta in self.deltas for event in delta_events(delta, told)]
        if self.message is not None:
            events += rest_events(self.message, told)
        return events

    def stop(self) -> Stop:
        """Its terminal mark."""
        message = self.message or {}
        return Stop(message.get("stop_reason", "stop"), bool(message.get("paused")))


class LastAnswer(Answer):
    """What is said after the last recorded answer."""

    def events(self) -> list[StreamEvent]:
        """A sentence that asks for nothing."""
        return [TextDelta(0, END), UsageReport(no_usage())]


@dataclass(slots=True)
class Result:
    """What came of a call."""

    content: Any
    details: Any
    is_error: bool
    terminate: bool
    updates: list[Any]
    seconds: float


class Script:
    """A log, taken apart.

    Args:
        lines: The log.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self.answers: dict[Agent, list[Answer]] = defaultdict(list)
        self.decisions: dict[tuple[Agent, str, str], list[Line]] = defaultdict(list)
        """By agent, id of a call and extension point: what hooks decided of the call, in order."""
        self.failures: dict[tuple[Agent, str, int], Line] = {}
        """By agent, extension point and answers so far: how another hook failed."""
        self.supplied: dict[tuple[Agent, str, int], list[Any]] = defaultdict(list)
        """By agent, extension point and answers so far: the messages that hooks gave."""
        self.put: list[tuple[int, str, Any]] = []
        """The messages that came from outside, each with the main agent's turn and its queue."""
        self.stops: set[tuple[Agent, int]] = set()
        """By agent and answers so far: where agents came to rest for good."""
        self._results: dict[tuple[Agent, str], Result] = {}
        self._by_call: dict[bytes, Result] = {}
        self._updates: dict[tuple[Agent, str], list[Any]] = defaultdict(list)
        self._arguments: dict[tuple[Agent, str], bytes] = {}
        by_agent: dict[Agent, list[Line]] = defaultdict(list)
        for line in lines:
            by_agent[line.get("agent")].append(line)
        for agent, own in by_agent.items():
            self._read_answers(agent, own)
            self._read_rest(agent, own)

    def answered(self, agent: Agent, lines: int) -> int:
        """How many of an agent's answers stand in the first lines of the log."""
        return bisect_left(self.answers.get(agent, ()), lines, key=lambda answer: answer.end)

    def count(self, agent: Agent) -> int:
        """How many answers of an agent there are."""
        return len(self.answers.get(agent, ()))

    def result(self, agent: Agent, call_id: str, name: str, arguments: Any) -> Result | None:
        """What a call came to; where it was not made, what one of the same kind did."""
        found = self._results.get((agent, call_id))
        return found or self._by_call.get(canonical([name, arguments]))

    # --- reading ----------------------------------------------------------------------------------

    def _read_answers(self, agent: Agent, lines: Sequence[Line]) -> None:
        answers, deltas = self.answers[agent], list[Line]()
        begun = False
        for place, line in enumerate(lines):
            match line["type"]:
                case "message_update":
                    deltas.append(line["delta"])
                case "message_start":
                    begun = line["message"]["role"] == "assistant"
                case "message_end" if line["message"]["role"] == "assistant":
                    answer = _answer(line, deltas, _following(lines, place))
                    if answer is not None:
                        answers.append(answer)
                    deltas = []
                case "model_request":
                    begun = False
                case "model_retry" if not begun:
                    answers.append(Answer(line["seq"], fault=_early_fault(line)))

    def _read_rest(self, agent: Agent, lines: Sequence[Line]) -> None:
        turn = 0
        for line in lines:
            match line["type"]:
                case "turn_start":
                    turn = line["turn"]
                case "tool_execution_start":
                    key = agent, line["tool_call_id"]
                    self._arguments[key] = canonical([line["tool_name"], line["arguments"]])
                case "tool_execution_update":
                    self._updates[agent, line["tool_call_id"]].append(line["update"])
                case "tool_execution_end":
                    self._read_result((agent, line["tool_call_id"]), line)
                case "hook_decision":
                    self._read_decision(agent, line)
                case "message_queued":
                    self._read_queued(agent, turn, line)
                case "agent_end" if line["stop_reason"] not in ("error", "aborted"):
                    self.stops.add((agent, self.answered(agent, line["seq"])))

    def _read_result(self, key: tuple[Agent, str], line: Line) -> None:
        content = line["result"]["content"]
        details, seconds = line["result"].get("details"), line.get("seconds", 0.0)
        result = Result(
            content,
            details,
            line["is_error"],
            bool(line.get("terminate")),
            self._updates[key],
            0.0 if "stopped" in line else seconds,
        )
        self._results[key] = result
        if key in self._arguments:
            self._by_call.setdefault(self._arguments[key], result)

    def _read_decision(self, agent: Agent, line: Line) -> None:
        if "tool_call_id" in line:
            self.decisions[agent, line["tool_call_id"], line["hook"]].append(line)
        else:
            self.failures[agent, line["hook"], self.answered(agent, line["seq"])] = line

    def _read_queued(self, agent: Agent, turn: int, line: Line) -> None:
        queue, message = line["queue"], line["message"]
        if line["source"] == "hook":
            answered = self.answered(agent, line["seq"])
            self.supplied[agent, f"{queue}_messages", answered].append(message)
        elif is_from_outside(line):
            self.put.append((turn, queue, message))


def _following(lines: Sequence[Line], place: int) -> Iterator[Line]:
    rest = (lines[n] for n in range(place + 1, len(lines)))
    return (line for line in rest if line["type"] != "message_queued")


def _answer(line: Line, deltas: list[Line], after: Iterator[Line]) -> Answer | None:
    """The answer that a line ends; None where nobody let it come to its end."""
    message = line["message"]
    answer = Answer(line["seq"], deltas, message)
    if message["stop_reason"] == "error":
        following = next(after, None)
        answer.fault = lambda: fault_of(message["error"], following)
    elif message["stop_reason"] == "aborted":
        ends = (one for one in after if one["type"] == "run_end")
        if not any(end.get("error") == SELF_ABORTED for end in ends):
            return None
    return answer


def _early_fault(line: Line) -> Callable[[], ProviderError]:
    """How a request failed that had no answer."""
    return lambda: ProviderError(
        line["error"],
        "server",
        retryable="fallback" not in line,
        retry_after=line["delay"] or None,
    )
