"""An agent as a Python program uses it: prompt it, steer it, watch it, stop it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from runner.engine.contract import Cancellation, Clock, Model, Tool
from runner.engine.emit import Emitter, Listener
from runner.engine.limit import Meter
from runner.engine.loop import NoTasks, run_loop
from runner.engine.message import AssistantMessage, Message, as_message
from runner.engine.options import AgentOptions, Ending
from runner.engine.queue import MessageQueue
from runner.engine.session import Session
from runner.engine.work import outlast

Prompt = str | Mapping[str, Any]
"""A text, ``{role, text}``, or a message in the log's form."""


class AgentState:
    """What an agent is and does right now. Read it at any time; write it while it rests."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def messages(self) -> list[Message]:
        """The history, the agent's own list: read it, and set another to change it."""
        return self._session.history

    @messages.setter
    def messages(self, messages: Sequence[Message]) -> None:
        self._session.replace_history(messages)

    @property
    def tools(self) -> list[Tool]:
        """The tools that the model has."""
        return list(self._session.tools.values())

    @tools.setter
    def tools(self, tools: Sequence[Tool]) -> None:
        self._session.tools = {tool.name: tool for tool in tools}

    @property
    def model(self) -> Model:
        """The model that is asked first."""
        return self._session.model

    @model.setter
    def model(self, model: Model) -> None:
        self._session.model = model
        # They are counted for each model, by its place: nobody asked this one yet.
        self._session.requests.pop(0, None)

    @property
    def system_prompt(self) -> str:
        """The system prompt."""
        return self._session.system_prompt

    @system_prompt.setter
    def system_prompt(self, text: str) -> None:
        self._session.system_prompt = text

    @property
    def is_streaming(self) -> bool:
        """Whether an answer is being streamed."""
        return self._session.streaming is not None

    @property
    def streaming_message(self) -> AssistantMessage | None:
        """The answer that is being streamed, as far as it has come."""
        return self._session.streaming() if self._session.streaming is not None else None

    @property
    def pending_tool_calls(self) -> frozenset[str]:
        """Ids of the calls that have no result yet."""
        return frozenset(self._session.pending_calls)

    @property
    def error(self) -> str | None:
        """Why the last run did not end well, in one line."""
        ending = self._session.ending
        return None if ending is None else ending.error


class Agent:
    """A model, its tools and its history, with a queue to steer it and one for follow-ups.

    `prompt` and `continue_` run in the event loop that calls them, one at a time. `steer`,
    `follow_up` and `abort` may be called from any thread.
    """

    def __init__(self, options: AgentOptions, *, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._emitter = Emitter(self._clock)
        self._session = Session(options, self._emitter, Meter(options.limits), self._clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None
        self._idle: asyncio.Future[None] | None = None
        """There while the agent runs, done when it rests."""
        self.state = AgentState(self._session)
        """What the agent is and does right now."""

    async def prompt(self, prompt: Prompt | Sequence[Prompt]) -> AssistantMessage | None:
        """Say something, and wait until the agent rests again. Gives its last answer.

        A fault of the model or of a hook does not raise: it is the answer's stop reason, and
        `AgentState.error`.

        Raises:
            RuntimeError: if the agent is running: steer it, or queue a follow-up.
            ValueError: for what is no message.
        """
        several = [prompt] if isinstance(prompt, str | Mapping) else prompt
        prompts = [as_message(one) for one in several]
        if not prompts:
            raise ValueError("a prompt needs at least one message")
        return await self._run(prompts, None)

    async def continue_(self) -> AssistantMessage | None:
        """Go on from the history as it is, or with what is queued: steering before follow-ups.

        Raises:
            RuntimeError: if the agent is running, or there is nothing to go on with.
        """
        session = self._session
        self._refuse_while_running()
        if not session.context:
            raise RuntimeError("there is no message to go on from; prompt the agent")
        if session.context[-1]["role"] != "assistant":
            return await self._run([], None)
        for queue in (session.steering, session.follow_up):
            if len(queue):
                return await self._run([], queue)
        raise RuntimeError("the agent has answered and nothing is queued; prompt it")

    def steer(self, message: Prompt) -> None:
        """Queue a message for the next turn of the run in progress."""
        self._session.steering.put(as_message(message), "api")

    def follow_up(self, message: Prompt) -> None:
        """Queue a message for when the agent would stop."""
        self._session.follow_up.put(as_message(message), "api")

    def abort(self) -> None:
        """Stop the stream and the tools that are running. Nothing happens if none is."""
        loop = self._loop
        if loop is None:
            return
        stop = partial(self._abort, self._session.cancellation)
        if threading.get_ident() == self._thread:
            stop()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing runs
                loop.call_soon_threadsafe(stop)

    def _abort(self, run: Cancellation) -> None:
        # From another thread, a run may have ended, and the next begun, before this is called.
        if run is self._session.cancellation:
            self._session.abort(Ending("aborted", "it was aborted"))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have a function called with each event; gives back what ends that."""
        return self._emitter.subscribe(listener)

    async def wait_for_idle(self) -> None:
        """Wait until the agent rests."""
        while self._idle is not None:
            await asyncio.wait((self._idle,))

    def reset(self) -> None:
        """Forget the history and both queues.

        Raises:
            RuntimeError: if the agent is running.
        """
        self._refuse_while_running()
        self._session.replace_history(())
        self._session.queues.clear()
        self._session.ending = None

    def _refuse_while_running(self) -> None:
        if self._idle is not None:
            raise RuntimeError("the agent is running; use steer() or follow_up(), or abort()")

    async def _run(
        self, prompts: Sequence[Message], queue: MessageQueue | None
    ) -> AssistantMessage | None:
        self._refuse_while_running()
        session, loop = self._session, asyncio.get_running_loop()
        session.begin_anew()
        self._emitter.begin_again()
        self._loop, self._thread = loop, threading.get_ident()
        self._idle = loop.create_future()
        timer = session.limit_time(0.0)
        # A task of its own: when the caller is cancelled, the run still comes to its end.
        running = asyncio.ensure_future(run_loop(session, prompts, NoTasks(), queue))
        cancelled = False

        def cancel() -> None:
            nonlocal cancelled
            cancelled = True
            session.cancelled()

        try:
            await outlast(running, cancel)
            session.ending = running.result()
        finally:
            if timer is not None:
                timer.cancel()
            self._idle.set_result(None)
            self._loop = self._idle = None
        if cancelled:
            raise asyncio.CancelledError
        return session.last_answer
