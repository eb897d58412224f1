"""What holds of the events of every run, however it went: the promises of the loop, as a check.

Events are held against it one by one, as they happen or as they are read, in memory that grows
with what is open and not with what has passed. A run that goes on after its end, or after it was
killed, is checked across the gap.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from runner.engine.message import add_usage, no_usage
from runner.error import BUG, Status, exit_code
from runner.json_text import canonical
from runner.log.played import arguments_of
from runner.log.shape import problem

Event = Mapping[str, Any]

_HEAD = ("seq", "t", "agent", "type")
_MESSAGE_ID = re.compile(r"m([1-9]\d*)")
_SIGNALS = {
    exit_code("aborted", 2): "it was interrupted",
    exit_code("aborted", 15): "it was terminated",
}
_EMPTY_ANSWER = {"id", "role", "provider", "model"}


def broken(events: Iterable[Event]) -> list[str]:
    """All that is wrong with some events, from the first of an agent or a run to its last.

    Each is a sentence that begins with the place: the event's number, its agent and its type.
    """
    invariants = Invariants()
    wrong = [text for event in events for text in invariants.see(event)]
    return wrong + invariants.close()


class Invariants:
    """Holds the events of a run, or of an agent alone, against what holds of all of them.

    Args:
        are_read: Whether the events come from a log that is read, so that each by itself is well.
    """

    def __init__(self, *, are_read: bool = False) -> None:
        self._are_read = are_read
        self._agents: dict[str, _Agent] = {}
        self._running: set[str] = set()
        self._seq = 0
        self._is_run = False
        self._ended = False
        self._limited = False
        """Whether a limit was reached since the run began, or went on."""
        self._turns = 0
        self._calls = 0
        self._usage = no_usage()

    def see(self, event: Event) -> list[str]:
        """Take the next event; gives what it breaks."""
        path = str(event.get("agent", "main"))
        if not self._are_read and (wrong := problem(event)):
            self._seq += 1
            return [f"{self._seq - 1} {path}: {wrong}"]
        agent = self._agents.get(path)
        if agent is None:
            agent = self._agents[path] = _Agent()
        self._see_run(event, agent)
        agent.see(event)
        self._see_agents(event, path, agent)
        agent.expect(event.get("seq") == self._seq, f"its number is {event.get('seq')}")
        self._seq += 1
        place = f"{self._seq - 1} {path} {event['type']}: "
        return [place + text for text in agent.take_wrong()]

    def close(self) -> list[str]:
        """There are no more events; gives what is open and should not be."""
        wrong = []
        if self._is_run and not self._ended:
            wrong.append("at the end: main: there is no run_end")
        for path, agent in self._agents.items():
            agent.close()
            wrong += [f"at the end: {path}: {text}" for text in agent.take_wrong()]
        return wrong

    def _see_agents(self, event: Event, path: str, agent: _Agent) -> None:
        if event["type"] == "agent_start":
            self._running.add(path)
            self._hold_agents_below(path.rpartition("/")[0], agent)
        elif event["type"] == "agent_end":
            self._running.discard(path)
            below = sorted(one for one in self._running if one.startswith(path + "/"))
            agent.expect(not below, f"it ends before {', '.join(below)}")
            if self._is_run:
                agent.hold_queues(event["queued"])
        elif event["type"] in ("task_end", "tool_execution_end"):
            self._hold_agents_below(path, agent)

    def _hold_agents_below(self, path: str, agent: _Agent) -> None:
        """An agent works within a call or a task of the one above it."""
        above = self._agents.get(path)
        if above is None:
            return
        depth = path.count("/") + 1
        below = [one for one in self._running if one.startswith(path + "/")]
        direct = sorted(one for one in below if one.count("/") == depth)
        agent.expect(
            len(direct) <= above.at_work, f"{', '.join(direct)} run in {above.at_work} calls"
        )

    def _see_run(self, event: Event, agent: _Agent) -> None:
        """What holds of the run as a whole."""
        kind = event["type"]
        keys = [key for key in _HEAD if key in event]
        agent.expect(list(event)[: len(keys)] == keys, f"its keys are {', '.join(event)}")
        had_ended, self._ended = self._ended, False
        agent.expect(kind == "run_resume" or not had_ended, "it comes after the run's end")
        if kind == "run_start":
            agent.expect(self._seq == 0, "it is not the first")
            self._is_run = True
        elif kind == "run_resume":
            # After a kill the run is where it was.
            self._limited = self._limited and not had_ended
            for one in self._agents.values():
                one.waits, one.stopped_by = False, None
        elif kind == "turn_start":
            self._turns += 1
        elif kind == "tool_execution_start":
            self._calls += 1
        elif kind == "message_end" and event["message"]["role"] == "assistant":
            add_usage(self._usage, event["message"]["usage"])
        elif kind == "limit_reached":
            self._limited = True
            exact = event["limit"] != "seconds" or event["value"] == event["allowed"]
            agent.expect(exact, f"{event['value']} s are told of {event['allowed']}")
        elif kind == "run_end":
            self._ended = True
            self._see_end(event, agent)
            self._see_why(event, agent)

    def _see_end(self, end: Event, agent: _Agent) -> None:
        """Hold what the run says of itself against what it did."""
        running = ", ".join(sorted(self._running))
        agent.expect(not running, f"the run ends before {running}")
        status, code = end["status"], end["exit_code"]
        agent.expect(code in _codes(status), f"exit code {code} is none of status {status}")
        agent.expect(end["turns"] == self._turns, f"{end['turns']} turns of {self._turns}")
        agent.expect(
            end["tool_calls"] <= self._calls, f"{end['tool_calls']} tool calls of {self._calls}"
        )
        agent.expect(
            end["usage"] == self._usage, f"the usage {end['usage']} is not {self._usage} in all"
        )

    def _see_why(self, end: Event, agent: _Agent) -> None:
        """Hold what the run says of why it ended against what was told of that before."""
        status, error = end["status"], end.get("error")
        agent.expect(status != "limit" or self._limited, "no limit was reached")
        if status == "aborted":
            why = _SIGNALS.get(end["exit_code"], error)
            agent.expect(error == why, f"{end['exit_code']} means: {why}")
        by = agent.stopped_by
        agent.expect(by is None or by == error, f"its calls were stopped by: {by}")


def _codes(status: Any) -> Sequence[int]:
    """The exit codes of a run that ended with some status, of which there are no others."""
    if status not in get_args(Status):
        return ()
    if status == "aborted":
        return tuple(exit_code("aborted", signal) for signal in (None, 2, 13, 15))
    return (exit_code(status), BUG) if status == "error" else (exit_code(status),)


class _Agent:
    """What one agent has open; what doesn't fit is kept in `wrong`."""

    def __init__(self) -> None:
        self._wrong: list[str] = []
        self._running = False
        self._turn: int | None = None
        self._last_turn = 0
        self.waits = False
        """Whether a request was made of which nothing came so far."""
        self.stopped_by: str | None = None
        """What stopped its calls, but for their own time."""
        self._message: str | None = None
        self._last_id: int | None = None
        self._deltas: dict[int, list[Event]] = {}
        self._calls: list[str] = []
        """Those of the last answer, in its order; each list below has a part of them."""
        self._begun: list[str] = []
        self._done: set[str] = set()
        self._answered = 0
        self._all_calls: set[str] = set()
        self._tasks: Counter[tuple[str, int]] = Counter()
        self._queued: Counter[bytes] = Counter()
        """The messages that joined a queue and were not taken."""

    def see(self, event: Event) -> None:
        """Take the agent's next event."""
        if (check := _CHECKS.get(event["type"])) is not None:
            check(self, event)

    def expect(self, holds: object, text: str) -> None:
        """Note what doesn't hold."""
        if not holds:
            self._wrong.append(text)

    @property
    def at_work(self) -> int:
        """How many agents may work below this one: one in each call, or in each task."""
        if self._turn is not None:
            return len(self._begun) - len(self._done)
        return self._tasks.total()

    def take_wrong(self) -> list[str]:
        """What doesn't hold, since the last time."""
        if not self._wrong:
            return []
        wrong, self._wrong = self._wrong, []
        return wrong

    def close(self) -> None:
        """There are no more events."""
        self.expect(not self._running, "the agent did not end")
        opened = [f"{task} {n}" for (task, n), count in self._tasks.items() if count]
        self.expect(not opened, f"tasks are open: {', '.join(opened)}")

    def hold_queues(self, queued: Iterable[Event]) -> None:
        """Each message that was queued was taken once, or is queued still."""
        left = Counter(_without_id(one["message"]) for one in queued)
        lost, twice = self._queued - left, left - self._queued
        self.expect(not lost, f"{lost.total()} queued messages are lost")
        self.expect(not twice, f"{twice.total()} messages are queued that were taken")
        self._queued = left

    # --- its events -------------------------------------------------------------------------------

    def on_agent_start(self, event: Event) -> None:
        self.expect(not self._running, "an agent starts that is running")
        self._running = True

    def on_agent_end(self, event: Event) -> None:
        self.expect(self._running, "an agent ends that is not running")
        self.expect(self._turn is None, "an agent ends with its turn open")
        self._running = False

    def on_turn_start(self, event: Event) -> None:
        self.expect(self._running and self._turn is None, "a turn starts out of place")
        self.expect(event["turn"] == self._last_turn + 1, f"turn {event['turn']} is not the next")
        self._turn = self._last_turn = event["turn"]

    def on_turn_end(self, event: Event) -> None:
        self.expect(self._turn == event["turn"], f"turn {event['turn']} ends and is not open")
        self.expect(self._message is None, "a turn ends with a message open")
        self._expect_answered("a turn ends")
        self._turn = None

    def on_model_request(self, event: Event) -> None:
        self.expect(self._turn is not None and self._message is None, "a request out of place")
        self.expect(not self.waits, "a request is made, and nothing came of the one before")
        self._expect_answered("a request is made")
        self.waits = True

    def on_model_retry(self, event: Event) -> None:
        self.waits = False

    def on_message_start(self, event: Event) -> None:
        message = event["message"]
        self.expect(self._turn is not None and self._message is None, "a message out of place")
        found = _MESSAGE_ID.fullmatch(message["id"])
        number = int(found[1]) if found else None
        due = number if self._last_id is None else self._last_id + 1
        self.expect(number is not None and number == due, f"{message['id']} is not m{due}")
        if message["role"] == "assistant":
            self._expect_answered("an answer starts")
            self.expect(set(message) == _EMPTY_ANSWER, "an answer starts with content")
        self._message, self._last_id, self._deltas = message["id"], number, {}

    def on_message_update(self, event: Event) -> None:
        self.expect(event["message_id"] == self._message, "a delta of a message that isn't open")
        self._deltas.setdefault(event["delta"]["index"], []).append(event["delta"])

    def on_message_end(self, event: Event) -> None:
        message = event["message"]
        self.expect(message["id"] == self._message, f"{message['id']} ends and is not open")
        self._message = None
        if message["role"] == "assistant":
            self._answer(message)
        elif message["role"] == "tool_result":
            self._result(message["tool_call_id"])
        elif self._queued[key := _without_id(message)]:
            self._queued[key] -= 1

    def _answer(self, message: Event) -> None:
        self.waits = False
        whole = [block for block in message["content"] if block["type"] in _TOLD]
        runs = message["stop_reason"] not in ("error", "aborted")
        calls = [block["id"] for block in whole if block["type"] == "tool_call"]
        self._calls = calls if runs else []
        fresh = set(self._calls)
        self.expect(
            len(fresh) == len(self._calls) and not fresh & self._all_calls, "two calls have one id"
        )
        self._all_calls |= fresh
        self._begun, self._done, self._answered = [], set(), 0
        told = [_told(deltas) for _, deltas in sorted(self._deltas.items())]
        said = [_said(block) for block in whole if block.get("text") != ""]
        self.expect(not told or told == said, f"the deltas {told} are not the message {said}")
        self._deltas = {}

    def _result(self, call: str) -> None:
        due = self._calls[self._answered : self._answered + 1]
        self.expect(due == [call], f"a result of {call}, not of {due}")
        self.expect(call in self._done, f"a result of {call} before its end")
        self._answered += 1

    def _expect_answered(self, what: str) -> None:
        left = self._calls[self._answered :]
        self.expect(not left, f"{what} while {', '.join(left)} has no result")

    def on_tool_execution_start(self, event: Event) -> None:
        call = event["tool_call_id"]
        due = self._calls[len(self._begun) : len(self._begun) + 1]
        self.expect(due == [call], f"{call} starts, not {due}")
        self._begun.append(call)

    def on_tool_execution_update(self, event: Event) -> None:
        call = event["tool_call_id"]
        self.expect(call in self._begun and call not in self._done, f"{call} is not open")

    def on_tool_execution_end(self, event: Event) -> None:
        self.on_tool_execution_update(event)
        self._done.add(event["tool_call_id"])
        why = event.get("stopped")
        if why is not None and not why.startswith("timed out after "):
            self.stopped_by = why

    def on_task_start(self, event: Event) -> None:
        self.expect(self._running, "a task starts while its agent rests")
        self._tasks[event["task_id"], event["iteration"]] += 1

    def on_task_end(self, event: Event) -> None:
        task = event["task_id"], event["iteration"]
        if "skipped" not in event:
            self.expect(self._tasks[task] > 0, f"{task[0]} {task[1]} ends and is not open")
            self._tasks[task] -= 1

    def on_message_queued(self, event: Event) -> None:
        self._queued[_without_id(event["message"])] += 1


_CHECKS = {name[3:]: check for name, check in vars(_Agent).items() if name.startswith("on_")}
_TOLD = frozenset(("text", "thinking", "tool_call"))
"""The kinds of blocks that deltas tell of."""


def _without_id(message: Event) -> bytes:
    """What tells queued messages apart: they get their ids when they are taken."""
    return canonical({key: value for key, value in message.items() if key != "id"})


def _told(deltas: Sequence[Event]) -> Any:
    """What the deltas of a block say."""
    if deltas[0]["kind"] != "tool_call":
        return deltas[0]["kind"], "".join(delta["text"] for delta in deltas)
    return deltas[0].get("id"), arguments_of("".join(delta["arguments"] for delta in deltas))


def _said(block: Event) -> Any:
    """The same of a block of the whole message."""
    if block["type"] != "tool_call":
        return block["type"], block["text"]
    return block["id"], block["arguments"]
