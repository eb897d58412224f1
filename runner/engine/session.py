"""Everything of one agent that its loop, its model calls and its tool calls share."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextvars import ContextVar
from typing import Any, cast

from runner.engine.contract import Cancellation, Clock, Tool, ToolSchema
from runner.engine.digest import ContextDigest
from runner.engine.emit import Emitter
from runner.engine.event import Event, Queued
from runner.engine.hook import Hook
from runner.engine.limit import Meter, Reached
from runner.engine.message import AssistantMessage, Message, as_message, user_message
from runner.engine.options import AgentOptions, Ending, limit_ending
from runner.engine.queue import MessageQueue, MessageQueues, without_id
from runner.engine.work import Attendance, outlast


class Session:
    """The state of one agent.

    Args:
        options: What it is.
        emitter: Takes its events.
        meter: Counts what it uses.
        clock: Time and chance.
        path: Where it stands among the agents of a run; None for the main one.
    """

    def __init__(
        self,
        options: AgentOptions,
        emitter: Emitter,
        meter: Meter,
        clock: Clock,
        path: str | None = None,
    ) -> None:
        self.options = options
        self.emitter = emitter
        self.meter = meter
        self.clock = clock
        self.path = path
        self.model = options.model
        self.system_prompt = options.system_prompt
        self.tools: dict[str, Tool] = {tool.name: tool for tool in options.tools}
        self.hooks: dict[str, list[Hook]] = options.hooks.by_point()
        self.scheduled = list(options.scheduled)
        self.queues = MessageQueues(options.steering_mode, options.follow_up_mode)
        self.steering = self.queues.steering
        self.follow_up = self.queues.follow_up
        self.cancellation = Cancellation()
        self.aborted_as: Ending | None = None
        """How an abort ends the run."""
        self.stopping: Ending | None = None
        """Set where a tool call or a hook ends the run after this turn."""
        self.ending: Ending | None = None
        """How the last run ended."""
        self.started = False
        """Whether ``agent_start`` is out, and ``agent_end`` is not."""
        self.turn = 0
        self.turn_open = False
        self.turn_first = 0
        """Where the turn's messages begin in the history."""
        self.turn_results: list[str] = []
        self.streaming: Callable[[], AssistantMessage] | None = None
        """Gives the answer that is being streamed, as far as it has come."""
        self.pending_calls: set[str] = set()
        self.call_ids: set[str] = set()
        """The ids of all tool calls in the history."""
        self.calls_made = 0
        """How many calls the model made in this run."""
        self.requests: dict[int, int] = {}
        """How many requests were made of each model, by its place (0: the main model)."""
        self.agents: Counter[str] = Counter()
        """How many sub-agents of each name it had."""
        self.digest = ContextDigest()
        self.last_answer: AssistantMessage | None = None
        self.history: list[Message] = []
        self.context: list[Message] = []
        """The part of the history that a model reads, unless a hook decides otherwise."""
        self.at_rest: Callable[[], Awaitable[None]] | None = None
        """Awaited when the agent rests and nothing is queued: a person may queue something."""
        self.replaced: dict[str, Any] = {}
        """By id: content that a message gets instead of its own, when a run is forked."""
        self._last_id = 0
        self._last_call: bytes | None = None
        self._call_repeats = 0
        for message in options.messages:
            self._begin_with(message)

    def _begin_with(self, message: Message) -> None:
        """Take a message of the history that was before the start."""
        message = as_message(message)
        given = str(message.get("id") or "")
        if given.startswith("m") and given[1:].isdigit():
            self._last_id = max(self._last_id, int(given[1:]))
        elif not given:
            message = cast("Message", {**message, "id": self.next_id()})
        self.remember(message)

    def adopt(self, options: AgentOptions) -> None:
        """Be another agent from here on, with the same history and queues."""
        self.options = options
        self.model, self.system_prompt = options.model, options.system_prompt
        self.tools = {tool.name: tool for tool in options.tools}
        self.hooks = options.hooks.by_point()
        self.meter.limits = options.limits
        self.meter.calls_refused = 0

    # --- events -----------------------------------------------------------------------------------

    def emit(self, event: Event) -> None:
        """Hand an event to all, after what was queued since the last one."""
        while self.started and self.queues.has_news:
            for queue, source, message in self.queues.news():
                self._tell_queued(queue, source, message)
        self.emitter.emit(event, self.path)

    def last_queued(self) -> list[Queued]:
        """Tell what was queued last; what is in the queues now that the agent rests."""
        news, queued = self.queues.last_news()
        self.started = False
        for queue, source, message in news:
            self._tell_queued(queue, source, message)
        return queued

    def _tell_queued(self, queue: Any, source: str, message: Message) -> None:
        event: Event = {
            "type": "message_queued",
            "queue": queue,
            "source": source,
            "message": without_id(message),
        }
        self.emitter.emit(event, self.path)

    async def settle(self) -> None:
        """Wait for listeners that want to be waited for."""
        while self.emitter.owes:
            await outlast(self.emitter.settling(), self.cancelled)

    # --- the history ------------------------------------------------------------------------------

    def next_id(self) -> str:
        """The id of the next message."""
        self._last_id += 1
        return f"m{self._last_id}"

    def remember(self, message: Message) -> None:
        """Add a whole message to the history, and to what the model reads."""
        self.history.append(message)
        if message["role"] == "assistant":
            self.last_answer = message
            if message.get("stop_reason") in ("error", "aborted"):
                return
            ids = [block["id"] for block in message["content"] if block["type"] == "tool_call"]
            self.call_ids.update(ids)
        if message["role"] != "custom":
            self.context.append(message)

    def add(self, message: Message) -> str:
        """Give a message its id and its pair of events; it joins the history. Gives the id."""
        message = cast("Message", {**message, "id": self.next_id()})
        if message["id"] in self.replaced:
            message["content"] = self.replaced[message["id"]]
        self.emit({"type": "message_start", "message": cast("dict[str, Any]", message)})
        self.remember(message)
        self.emit({"type": "message_end", "message": message})
        return message["id"]

    async def take(self, messages: Iterable[Message]) -> None:
        """Add messages one by one."""
        for message in messages:
            self.add(message)
            await self.settle()

    async def take_from(self, queue: MessageQueue) -> None:
        """Add what a queue gives, one by one. After an abort the rest stays in the queue."""
        if self.cancellation.cancelled:
            return
        taken = deque(queue.drain())
        try:
            while taken and not self.cancellation.cancelled:
                self.add(taken[0])
                taken.popleft()
                await self.settle()
        finally:
            queue.put_back(taken)

    def replace_history(self, messages: Iterable[Message]) -> None:
        """Begin with another history. Ids go on counting."""
        self.history, self.context, self.last_answer = [], [], None
        for message in messages:
            self._begin_with(message)

    def turn_answer(self) -> AssistantMessage | None:
        """The last answer of this turn."""
        for message in reversed(self.history[self.turn_first :]):
            if message["role"] == "assistant":
                return cast("AssistantMessage", message)
        return None

    # --- scheduled steering -----------------------------------------------------------------------

    def schedule(self, *, turn: int | None = None, tool: str | None = None) -> None:
        """Queue what is scheduled for this point."""
        if not self.scheduled:
            return
        due = [
            one
            for one in self.scheduled
            if (turn is not None and one.after_turn == turn)
            or (tool is not None and one.after_tool == tool)
        ]
        for one in due:
            self.scheduled.remove(one)
            self.steering.put(user_message(one.text), "spec")

    # --- tools and limits -------------------------------------------------------------------------

    def schemas(self) -> list[ToolSchema]:
        """The tools as the model sees them."""
        return [ToolSchema(t.name, t.description, t.parameters) for t in self.tools.values()]

    def call_ended(self, call: bytes) -> None:
        """Count a call, given as one byte string with its result, against ``repeats``."""
        self._call_repeats = self._call_repeats + 1 if call == self._last_call else 1
        self._last_call = call

    def reached(self) -> Reached | None:
        """The limit that forbids another model call."""
        allowed = self.options.limits.repeats
        if allowed is not None and self._call_repeats >= allowed:
            return Reached("repeats", self._call_repeats, allowed, self.meter.number)
        return self.meter.reached()

    # --- stopping ---------------------------------------------------------------------------------

    def begin_anew(self) -> None:
        """Work again, with nothing of the limits used."""
        self.begin()
        self.meter = Meter(self.options.limits)
        self._last_call, self._call_repeats = None, 0

    def begin(self) -> None:
        """Forget how the agent was stopped before: it is to work again."""
        self.cancellation = Cancellation()
        self.aborted_as = self.stopping = None

    def abort(self, ending: Ending) -> None:
        """Stop the stream and the tools that are running, and end."""
        if self.aborted_as is None:
            self.aborted_as = ending
            self.cancellation.cancel(ending.error or "the run was aborted")

    def cancelled(self) -> None:
        """Abort, since the task in which the agent runs is cancelled."""
        self.abort(Ending("aborted", "it was cancelled"))

    def limit_time(self, spent: float) -> asyncio.TimerHandle | None:
        """Abort when the agent's time is up, of which some was spent already."""
        seconds = self.meter.limits.seconds
        if seconds is None:
            return None
        # The value is the limit itself: the exact time would differ from run to run.
        ending = limit_ending(Reached("seconds", seconds, seconds, self.meter.number))
        return self.clock.call_later(max(0.0, seconds - spent), lambda: self.abort(ending))

    @property
    def interrupted(self) -> bool:
        """Whether the calls of this turn that have not begun are to be skipped."""
        return self.options.interrupt and len(self.steering) > 0

    # --- waiting ----------------------------------------------------------------------------------

    async def attend(
        self,
        work: asyncio.Task[Any],
        cancellation: Cancellation | None = None,
        *,
        patient: bool = False,
        agents: Collection[object] = (),
    ) -> bool:
        """Wait for a task. An abort stops it; if that does not end it soon, it is left behind.

        Args:
            work: The task.
            cancellation: Stops it instead of the agent's own.
            patient: Whether a task that began after the abort has a grace time to do its work.
            agents: The agents that run in it, which come to their own ends: it is not left behind
                while there are any.

        Returns:
            Whether it is done.
        """
        attendance = Attendance(work, self.options.grace, lambda: len(agents) > 0)
        return await attendance.last(
            cancellation or self.cancellation, self.cancelled, patient=patient
        )


current: ContextVar[Session] = ContextVar("current")
"""The session whose loop is running here, for tools that are agents, and for replays."""

agents_below: ContextVar[set[object]] = ContextVar("agents_below")
"""The agents that run in the tool call that is under way here."""
