"""The calls of a log by what they ask for, for a run whose model is asked anew.

Such a run makes calls of its own, in its own order and with ids of its own. What one comes to is
what the same call came to in the log: that of the same agent, tool and arguments, the first time
the first, the second time the second, and so on.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.engine.contract import Cancellation, Tool, ToolResult, Update
from runner.engine.session import current
from runner.engine.tool_calls import CUT
from runner.engine.tool_outcome import ENDING, SKIPPED, UNFIT
from runner.json_text import canonical
from runner.log.drive import UNKNOWN, Drive, RecordedTool
from runner.log.tape import Line

Key = tuple[str, str, bytes]

_COMPARED = 500
"""Characters of a call's arguments that are looked at for the nearest one."""
_CANDIDATES = 1000
"""Calls that are looked at for the nearest one."""
_NO_RESULTS = (CUT, ENDING, SKIPPED, UNKNOWN, "Not run: the run's limit of ")
"""Begin results that tell of the run and not of the tool."""


@dataclass(slots=True)
class RecordedCall:
    """A call as it stands in a log."""

    start: Line
    turn: int
    decisions: deque[Line] = field(default_factory=deque)
    """What hooks decided of it, in order; each is taken once."""
    updates: list[Any] = field(default_factory=list)
    end: Line = field(default_factory=dict)
    taken: bool = False
    """Whether it was made again."""

    @property
    def text(self) -> str:
        """The text of its result."""
        return "".join(block.get("text", "") for block in self.end["result"]["content"])

    @property
    def refusal(self) -> list[str]:
        """Why its tool refused its arguments; nothing where it took them."""
        head, *reasons = self.text.split("\n- ")
        return reasons if self.end["is_error"] and head == UNFIT else []


class RecordedCalls:
    """All calls of a log that came to something.

    Args:
        lines: The log's.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self._left: dict[Key, list[RecordedCall]] = defaultdict(list)
        self._all: list[RecordedCall] = []
        self._taken: dict[tuple[str | None, str], RecordedCall] = {}
        self._last: dict[str | None, RecordedCall | None] = {}
        self._read(lines)

    def _read(self, lines: Iterable[Line]) -> None:
        turns: dict[str | None, int] = {}
        open_calls: dict[tuple[str | None, str], RecordedCall] = {}
        for line in lines:
            agent, kind = line.get("agent"), line["type"]
            if kind == "turn_start":
                turns[agent] = line["turn"]
            key = agent, line.get("tool_call_id", "")
            if kind == "tool_execution_start":
                open_calls[key] = RecordedCall(line, turns.get(agent, 0))
            elif (call := open_calls.get(key)) is None:
                continue
            elif kind == "hook_decision":
                call.decisions.append(line)
            elif kind == "tool_execution_update":
                call.updates.append(line["update"])
            elif kind == "tool_execution_end":
                call.end = line
                self._keep(open_calls.pop(key))

    def _keep(self, call: RecordedCall) -> None:
        """Keep a call, but one whose result tells of the run and not of the tool."""
        stopped = call.end.get("stopped", "timed out")
        if call.end["is_error"] and call.text.startswith(_NO_RESULTS):
            return
        if stopped.startswith("timed out"):
            self._all.append(call)
            start = call.start
            self._left[_key(start.get("agent"), start["tool_name"], start["arguments"])].append(
                call
            )

    @property
    def left(self) -> int:
        """How many calls were not made again."""
        return sum(map(len, self._left.values()))

    # --- one call ---------------------------------------------------------------------------------

    def take(
        self, agent: str | None, tool_call_id: str, name: str, arguments: Any
    ) -> RecordedCall | None:
        """The recorded call that a call is which an agent just began; None: the log has none."""
        same = self._left.get(_key(agent, name, arguments), [])
        # Of agents that do the same, each has its own calls first.
        own = (place for place, call in enumerate(same) if call.start.get("agent") == agent)
        found = same.pop(next(own, 0)) if same else None
        self._last[agent] = found
        if found is not None:
            found.taken = True
            self._taken[agent, tool_call_id] = found
        return found

    def of(self, agent: str | None, tool_call_id: str) -> RecordedCall | None:
        """The recorded call that a call of an agent is."""
        return self._taken.get((agent, tool_call_id))

    def last(self, agent: str | None) -> RecordedCall | None:
        """The recorded call that the one is which an agent began last."""
        return self._last.get(agent)

    def times(self, agent: str | None, name: str, arguments: Any) -> int:
        """How often the log has a call."""
        key = _key(agent, name, arguments)
        return sum(
            _key(call.start.get("agent"), call.start["tool_name"], call.start["arguments"]) == key
            for call in self._all
        )

    def nearest(self, name: str, arguments: Any) -> RecordedCall | None:
        """The recorded call that is most like one, of the same tool where there is one."""
        of_tool = [call for call in self._all if call.start["tool_name"] == name]
        # Of those that are alike, one that may still come.
        known = sorted((of_tool or self._all)[-_CANDIDATES:], key=lambda call: call.taken)
        wanted = _shown(name, arguments)
        texts = [_shown(call.start["tool_name"], call.start["arguments"]) for call in known]
        best = difflib.get_close_matches(wanted, texts, n=1, cutoff=0.0)
        return known[texts.index(best[0])] if best else None


def _key(agent: str | None, name: str, arguments: Any) -> Key:
    """What a call is told by. Agents of one name are alike, whichever was the first."""
    return re.sub(r"#[0-9]+", "", agent or ""), name, canonical(arguments)


def _shown(name: str, arguments: Any) -> str:
    return f"{name} {canonical(arguments).decode(errors='replace')}"[:_COMPARED]


class FoundTool(RecordedTool):
    """A tool that comes to what the same call came to in a log; else it is run, if it may be.

    Args:
        schema: What the model sees of it.
        drive: Of a tape with nothing on it.
        calls: Those of the log.
        live: Makes the real one, for calls that the log has not; None where none is run.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        drive: Drive,
        calls: RecordedCalls,
        live: Callable[[], Tool] | None = None,
    ) -> None:
        super().__init__(schema, drive, live)
        self._calls = calls

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        """What the tool said of the recorded call; of another, what it says."""
        found = self._calls.last(current.get().path)
        if found is not None:
            return found.refusal
        return self._real().check(arguments) if self._make_live is not None else ()

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Give the recorded result; see `runner.engine.contract.Tool`."""
        found = self._calls.of(current.get().path, tool_call_id)
        if found is None:
            return await self._real().execute(tool_call_id, params, on_update, cancellation)
        for update in found.updates:
            on_update(update)
        result, end = found.end["result"], found.end
        terminate = bool(end.get("terminate"))
        return ToolResult(result["content"], result.get("details"), end["is_error"], terminate)
