"""One agent of a log, line by line, and what of its spec its lines show to be exercised."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runner.api.coverage_calls import Call, tell_call
from runner.api.coverage_items import (
    ASKED,
    FAILED,
    FALSE,
    FITTED,
    FULL,
    GAVE,
    HELD,
    MET,
    NO_ITEM,
    ONE_ITEM,
    RAN,
    SEVERAL,
    TAKEN,
    TRUE,
    Json,
    expectation_of,
    hook_of,
    tasks_of,
)
from runner.api.coverage_scope import Scope, stop_answers
from runner.engine.message import text_of

_CONTEXT = ("transform_context", "convert_to_llm")
# After these a run would have gone on, so that all that is asked at a turn's end was asked.
_AT_A_TURNS_END = ("turns", "tool_calls", "tokens", "cost_usd", "repeats")


class AgentCoverage:
    """One agent of a log, as far as its lines were read."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._is_over = False
        """Whether it came to its end."""
        self._calls: dict[str, Call] = {}
        self._place = 0
        """Of the model that is asked: 0 is the first, then the fallbacks."""
        self._point: tuple[str, Any] = ("turn", 0)
        """What happened last of what messages are queued at."""
        self._queued: set[str] = set()
        self._waiting: dict[str, list[str]] = {}
        """By text: the PATHs of the spec's messages that are in a queue."""
        self._tasks: set[int] = set()
        """Those that are open."""
        self._items: dict[int, int] = {}
        """Of tasks with items: the last item that was begun."""
        self._until: int | None = None
        """The task whose condition was met, unless it begins again."""
        self._next_task = 0
        self._status = "ok"
        """Of the last task that ended."""
        self._answer: Json = {}
        """The last one of its model."""
        self._at_end = False
        """Whether a turn has ended, and what the run does after it is not known yet."""
        self._unread = False
        """Whether that turn had results that the model was to read."""
        self._terminates = True
        """Whether all its calls said that the model need not be asked again."""
        self._rested = False
        self._held: list[tuple[str, str]] = []
        """The expectations that are held next: their PATHs and kinds."""

    def see(self, event: Json) -> None:
        """Take one of the agent's lines."""
        if handle := _HANDLERS.get(event["type"]):
            handle(self, event)

    def broken_off(self) -> None:
        """The run was killed or stopped, and goes on."""
        self._calls.clear()
        self._at_end, self._until = False, None

    def is_busy_with(self, path: str) -> bool:
        """Whether what stands at a PATH is at work, as far as that is known."""
        if path.startswith("tools["):
            return any(self.scope.tools.get(call.name) == path for call in self._calls.values())
        found = re.fullmatch(r"follow_ups\.tasks\[(\d+)\]", path)
        return found is not None and int(found[1]) in self._tasks

    def _hit_all(self, point: str, part: str) -> None:
        for n in range(len(self._hooks(point))):
            self.scope.hit(f"hooks.{point}[{n}]", part)

    def _hooks(self, point: str) -> Any:
        return (self.scope.spec.get("hooks") or {}).get(point) or ()

    # --- the model and its calls ------------------------------------------------------------------

    def _model_request(self, event: Json) -> None:
        if event["attempt"] == 1:
            self._place = 0
        for point in _CONTEXT:
            self._hit_all(point, ASKED)
        if self._place:
            self.scope.hit(f"model.fallback[{self._place - 1}]", ASKED)

    def _model_retry(self, event: Json) -> None:
        self._place += "fallback" in event

    def _tool_execution_start(self, event: Json) -> None:
        self._calls[event["tool_call_id"]] = Call(event["tool_name"], event["arguments"])

    def _hook_decision(self, event: Json) -> None:
        point = event["hook"]
        if point != "before_tool_call":
            self._hit_all(point, ASKED)
        elif call := self._calls.get(event.get("tool_call_id", "")):
            call.decide(event)

    def _tool_execution_end(self, event: Json) -> None:
        self._point = ("tool", event["tool_name"])
        self._terminates = self._terminates and bool(event.get("terminate"))
        if call := self._calls.pop(event["tool_call_id"], None):
            path = self.scope.tools.get(call.name)
            tell_call(self.scope.spec, call, event, path, self.scope.hit)

    # --- turns ------------------------------------------------------------------------------------

    def _agent_start(self, event: Json) -> None:
        self._point, self._is_over = ("turn", 0), False

    def _turn_start(self, event: Json) -> None:
        self._goes_on()
        self._terminates = True

    def _turn_end(self, event: Json) -> None:
        self._point = ("turn", event["turn"])
        results = bool(event["tool_result_ids"])
        reason = event["stop_reason"]
        self._at_end = reason in ("stop", "tool_use") or (reason == "length" and results)
        self._unread, self._rested = results and not self._terminates, False

    def _goes_on(self) -> None:
        """The run goes on after a turn: no hook stopped it, and all were asked."""
        if not self._at_end:
            return
        self._at_end = False
        for part in (ASKED, FALSE):
            self._hit_all("stop_after_turn", part)
        self._hit_all("steering_messages", ASKED)
        if self._rested:
            self._hit_all("follow_up_messages", ASKED)

    def _limit_reached(self, event: Json) -> None:
        self._until = None
        if event["limit"] in _AT_A_TURNS_END:
            self._goes_on()

    def _agent_end(self, event: Json) -> None:
        self._close_tasks()
        if self._at_end and self._status == "ok":
            remaining = self._next_task < len(tasks_of(self.scope.spec))
            self._ends(stopped=self._unread or bool(event["queued"]) or remaining)
        self._at_end = False
        self._hold("expect", self.scope.spec.get("expect") if self._status == "ok" else ())

    def _ends(self, *, stopped: bool) -> None:
        """The run ends as done after a turn.

        Args:
            stopped: Whether there was more to do, so that it was a hook that ended it.
        """
        entries = self._hooks("stop_after_turn")
        answers = stop_answers(entries, self._point[1], self._answer, self.scope.names)
        for n, part in enumerate(answers):
            self.scope.hit(f"hooks.stop_after_turn[{n}]", part)
        conditions = [hook_of(entry)[0] == "when" for entry in entries]
        if not answers and stopped:
            for part in (ASKED, TRUE):
                self._hit_all("stop_after_turn", part)
        elif all(conditions) and TRUE not in answers and len(answers) == len(entries):
            self._hit_all("steering_messages", ASKED)
            self._hit_all("follow_up_messages", ASKED)

    # --- queues -----------------------------------------------------------------------------------

    def _message_queued(self, event: Json) -> None:
        queue, source = event["queue"], event["source"]
        if source == "hook":
            for part in (ASKED, GAVE):
                self._hit_all(f"{queue}_messages", part)
            self._rested = self._rested or queue == "follow_up"
        if source != "spec":
            return
        path = self._next_message("steering" if queue == "steering" else "follow_ups")
        if path is not None:
            self._queued.add(path)
            text = text_of(event["message"].get("content", ()))
            self._waiting.setdefault(text, []).append(path)

    def _next_message(self, key: str) -> str | None:
        """The PATH of the spec's message that is queued here."""
        for n, message in enumerate((self.scope.spec.get(key) or {}).get("messages") or ()):
            path = f"{key}.messages[{n}]"
            due = key == "follow_ups" or self._point in (
                ("turn", message.get("after_turn")),
                ("tool", message.get("after_tool")),
            )
            if due and path not in self._queued:
                return path
        return None

    def _message_end(self, event: Json) -> None:
        message = event["message"]
        if message["role"] == "assistant":
            self._answer = message
        if message["role"] != "user" or not self._waiting:
            return
        text = text_of(message["content"])
        if paths := self._waiting.get(text):
            self.scope.hit(paths.pop(0), TAKEN)
            if not paths:
                del self._waiting[text]

    # --- tasks ------------------------------------------------------------------------------------

    def _index(self, event: Json) -> int | None:
        tasks = tasks_of(self.scope.spec)
        return next((n for n, task in enumerate(tasks) if task["id"] == event["task_id"]), None)

    def _task_start(self, event: Json) -> None:
        n = self._index(event)
        if n is None:
            return
        if self._until == n:
            self._until = None
        if self._items.keys() - {n} or self._until is not None:
            self._close_tasks()
        self._goes_on()
        self._tasks.add(n)
        self._next_task = max(self._next_task, n + 1)
        for part in (RAN, TRUE):
            self.scope.hit(f"follow_ups.tasks[{n}]", part)
        if "item" in event:
            self._items[n] = max(self._items.get(n, 0), event["iteration"])
            if self._items[n] > 1:
                self.scope.hit(f"follow_ups.tasks[{n}]", SEVERAL)

    def _task_end(self, event: Json) -> None:
        n, status = self._index(event), event["status"]
        if status == "skipped":
            self._skipped(n, str(event.get("skipped", "")))
            return
        self._status = status
        self._rested = self._rested or status == "ok"
        if n is None:
            if status == "ok":
                self.scope.hit("output", FITTED)
            return
        path, task = f"follow_ups.tasks[{n}]", tasks_of(self.scope.spec)[n]
        self._tasks.discard(n)
        if status != "ok":
            self._items.pop(n, None)
        if status == "error":
            self.scope.hit(path, FAILED)
        elif "warning" in event:
            self.scope.hit(path, FULL)
        elif status == "ok" and task.get("repeat") is not None:
            self._until = n
        self._hold(f"{path}.expect", task.get("expect") if status == "ok" else ())

    def _skipped(self, n: int | None, reason: str) -> None:
        self._close_tasks()
        self._goes_on()
        if n is None:
            return
        self._next_task = max(self._next_task, n + 1)
        path = f"follow_ups.tasks[{n}]"
        for part in (TRUE, NO_ITEM) if reason == "there is no item" else (FALSE,):
            self.scope.hit(path, part)

    def _close_tasks(self) -> None:
        """What was begun before is over, and will not begin again."""
        if self._until is not None:
            self.scope.hit(f"follow_ups.tasks[{self._until}]", MET)
            self._until = None
        for n, count in self._items.items():
            if count == 1:
                self.scope.hit(f"follow_ups.tasks[{n}]", ONE_ITEM)
        self._items.clear()

    # --- expectations -----------------------------------------------------------------------------

    def _hold(self, path: str, entries: Any) -> None:
        """Expectations are held next."""
        kinds = [expectation_of(entry)[0] for entry in entries or ()]
        self._held = [(f"{path}[{n}]", kind) for n, kind in enumerate(kinds)]
        self._is_over = path == "expect"

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to be expected of it."""
        return self._is_over and not self._held and not self._waiting

    def _expectation(self, event: Json) -> None:
        while self._held:
            path, kind = self._held.pop(0)
            if kind != event["kind"]:
                continue
            self.scope.hit(path, HELD)
            if (item := self.scope.items.get(path)) is not None:
                item.outcomes["passed" if event["passed"] else "failed"] = True
            return


_HANDLERS: dict[str, Callable[[AgentCoverage, Json], None]] = {
    "agent_end": AgentCoverage._agent_end,
    "agent_start": AgentCoverage._agent_start,
    "expectation": AgentCoverage._expectation,
    "hook_decision": AgentCoverage._hook_decision,
    "limit_reached": AgentCoverage._limit_reached,
    "message_end": AgentCoverage._message_end,
    "message_queued": AgentCoverage._message_queued,
    "model_request": AgentCoverage._model_request,
    "model_retry": AgentCoverage._model_retry,
    "task_end": AgentCoverage._task_end,
    "task_start": AgentCoverage._task_start,
    "tool_execution_end": AgentCoverage._tool_execution_end,
    "tool_execution_start": AgentCoverage._tool_execution_start,
    "turn_end": AgentCoverage._turn_end,
    "turn_start": AgentCoverage._turn_start,
}
