"""One model call: the context, the request, its stream, and what is done when it fails."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

from runner.engine.answer import Answer
from runner.engine.contract import Interrupted, Model, ModelRequest, Stop, TextDelta
from runner.engine.digest import digest_of, tools_as_json
from runner.engine.event import Event
from runner.engine.hook_call import run_hook
from runner.engine.message import (
    ROLES,
    AssistantMessage,
    ErrorInfo,
    Message,
    as_message,
    tool_calls_of,
)
from runner.engine.session import Session
from runner.error import HookError, PiRunError, ProviderError, RunError, describe, named

FIRST_DELAY = 0.5
"""Seconds before the second request of a call; doubled for each one after it."""
ERROR_TEXT = 300
"""Characters that are kept of a provider's own words."""

UNBROKEN = 100
"""Events of a stream after which all else has its turn: one that always has more to give need not
wait for anything, and the run's time would never be up."""


async def call_model(session: Session) -> AssistantMessage:
    """Ask the model, and the fallback models after it, until there is an answer.

    Always gives a whole message that has had its events: a fault and an abort are answers with
    the stop reason ``error`` or ``aborted``.

    Raises:
        PiRunError: if a hook of the context or the key failed, or the context is not JSON.
    """
    context = await _context_unless_aborted(session)
    if context is None:
        return _ModelCall(session, 0, session.model, (), 1).end(aborted=True)
    models = [session.model, *session.options.fallback]
    attempt = 0
    for place, model in enumerate(models):
        own_attempt = 0
        while own_attempt < model.retry.attempts:
            attempt, own_attempt = attempt + 1, own_attempt + 1
            call = _ModelCall(session, place, model, context, attempt)
            error = await call.run()
            if error is None:
                return call.end()
            if isinstance(error, Interrupted):
                session.requests[place] -= 1
                if call.begun or error.begun:
                    call.end(aborted=True)
                own_attempt -= 1
                continue
            delay = _delay(error, model, own_attempt)
            fallback = models[place + 1] if delay is None and place + 1 < len(models) else None
            if delay is None and fallback is None:
                return call.end(error)
            if call.begun:
                call.end(error)
            session.emit(_retry_event(attempt, delay or 0.0, error, fallback))
            if fallback is not None:
                break
            if await _wait(session, error, delay or 0.0):
                return _ModelCall(session, place, model, context, attempt).end(aborted=True)
    raise AssertionError("a model call ends in its loop")


class _ModelCall:
    """One attempt: a request and its answer."""

    def __init__(
        self, session: Session, place: int, model: Model, context: Sequence[Message], attempt: int
    ) -> None:
        self._session = session
        self._place = place
        self._model = model
        self._context = context
        self._attempt = attempt
        self._answer = Answer(model.provider.name, model.id, session)
        self._aborted = False
        self._sent = False
        self._over = False
        """Whether nobody waits for its answer any more."""

    @property
    def begun(self) -> bool:
        """Whether the answer's ``message_start`` is out."""
        return bool(self._answer.id)

    async def run(self) -> ProviderError | Interrupted | None:
        """Make the request and stream its answer. Gives the fault, if it is one.

        Raises:
            PiRunError: if a hook failed, or the request can't be told.
        """
        session = self._session
        work = asyncio.ensure_future(self._request())
        session.streaming = self._answer.so_far
        done = await session.attend(work)
        session.streaming = None
        self._over = True
        if done and not work.cancelled():
            error = work.exception()
            if error is None:
                return None
            if not session.cancellation.cancelled:
                if isinstance(error, ProviderError | Interrupted):
                    return error
                if self.begun:
                    self.end(ProviderError(describe(error), "protocol"))
                raise error
        elif not session.cancellation.cancelled:
            return ProviderError("the provider cancelled its own stream", "protocol")
        self._aborted = True
        # An answer that nobody let come to its end is one that was not asked for.
        if self._sent:
            session.requests[self._place] -= 1
        return None

    async def _request(self) -> None:
        session, model, answer = self._session, self._model, self._answer
        request = ModelRequest(
            messages=self._context,
            system_prompt=session.system_prompt,
            tools=session.schemas(),
            model=model.id,
            api_key=await _api_key(session, model),
            number=session.requests.get(self._place, 0),
            output_schema=session.options.output_schema,
        )
        if session.cancellation.cancelled:
            return
        told = _request_event(session, model, request, self._attempt)
        session.requests[self._place] = request.number + 1
        self._sent = True
        session.emit(told)
        try:
            async with aclosing(cast("Any", model.provider.stream(request))) as stream:
                await self._read(stream)
        except (PiRunError, Interrupted):
            # After the terminal mark only its cleanup failed: the answer is whole.
            if answer.stop is None:
                raise
        except Exception as error:  # a provider is a plug-in: what it lets out is its fault
            if answer.stop is None:
                raise ProviderError(named(error), "protocol", retryable=False) from error

    async def _read(self, stream: Any) -> None:
        """Take the stream's events as they come, until its terminal mark."""
        session, answer = self._session, self._answer
        emit, emitter = session.emit, session.emitter
        unbroken = 0
        async for event in stream:
            unbroken += 1
            if unbroken == UNBROKEN:
                unbroken = 0
                await asyncio.sleep(0)
            if self._over:
                return
            if type(event) is Stop:
                answer.stop = event
                return
            delta = answer.text(event) if type(event) is TextDelta else answer.feed(event)
            if delta is None:
                continue
            if not answer.id:
                self._start()
            emit({"type": "message_update", "message_id": answer.id, "delta": delta})
            if emitter.owes:
                await emitter.settle()
        raise ProviderError("the stream ended without its terminal mark", "protocol")

    def _start(self) -> None:
        answer = self._answer
        answer.id = self._session.next_id()
        start = {"id": answer.id, "role": "assistant"}
        start |= {"provider": answer.provider, "model": answer.model}
        self._session.emit({"type": "message_start", "message": start})

    def end(self, error: ProviderError | None = None, *, aborted: bool = False) -> AssistantMessage:
        """Close the answer with its ``message_end``; it joins the history."""
        session, answer = self._session, self._answer
        if not answer.id:
            self._start()
        message = answer.message(_error_info(error), aborted or self._aborted)
        price = self._model.price
        cost = price.cost(message["usage"]) if price is not None else None
        session.meter.add_usage(message["usage"], cost)
        session.remember(message)
        if message["stop_reason"] not in ("error", "aborted"):
            session.calls_made += len(tool_calls_of(message))
        session.emit({"type": "message_end", "message": message})
        return message


async def _context_unless_aborted(session: Session) -> Sequence[Message] | None:
    try:
        context = () if session.cancellation.cancelled else await _context(session)
    except HookError:
        if not session.cancellation.cancelled:
            raise
    return None if session.cancellation.cancelled else context


async def _context(session: Session) -> Sequence[Message]:
    """What the model is to read: the history, as the hooks want it."""
    transforms, converts = session.hooks["transform_context"], session.hooks["convert_to_llm"]
    if not transforms and not converts:
        return session.context
    messages: list[Message] = [m for m in session.history if not _failed(m)]
    for point, hooks in (("transform_context", transforms), ("convert_to_llm", converts)):
        for hook in hooks:
            # A list of its own, so that one that fails half-way has changed nothing.
            given = await run_hook(session, point, hook, list(messages), read=_messages)
            messages = messages if given is None else given
    return [m for m in messages if m["role"] != "custom"]


def _messages(given: Any) -> list[Message] | None:
    """What a hook of the context gave, as messages."""
    if given is None:
        return None
    if not isinstance(given, list | tuple):
        raise TypeError(f"a list of messages is needed, not {given!r:.80}")
    return [m if _is_known(m) else as_message(m) for m in given]


def _is_known(message: Any) -> bool:
    """Whether something is a message that may have been in a history, and can stay as it is."""
    return isinstance(message, dict) and "id" in message and message.get("role") in ROLES


def _failed(message: Message) -> bool:
    return message.get("stop_reason") in ("error", "aborted")


async def _api_key(session: Session, model: Model) -> str | None:
    for hook in session.hooks["api_key"]:
        key = await run_hook(session, "api_key", hook, model.provider.name, model.id)
        if key is not None:
            return str(key)
    if model.api_key is None:
        return None
    try:
        given = model.api_key()
        return await given if inspect.isawaitable(given) else given
    except ProviderError:
        raise
    except Exception as error:
        raise ProviderError(f"there is no key: {describe(error)}", "auth") from error


def _request_event(session: Session, model: Model, request: ModelRequest, attempt: int) -> Event:
    redactor = session.emitter.redactor
    parameters: dict[str, Any] = dict(model.parameters)
    if request.output_schema is not None:
        parameters["output_schema"] = request.output_schema
    rest: Any = {
        "model": model.id,
        "parameters": parameters,
        "provider": model.provider.name,
        "system": request.system_prompt,
        "tools": tools_as_json(request.tools),
    }
    if redactor is not None:
        # As the log's plan tells them, so that a replay by that plan comes to the same.
        rest = redactor.value({"type": "run_start", "plan": rest})["plan"]
    try:
        digest = session.digest.of(request.messages, rest, redactor)
    except (TypeError, ValueError) as error:
        raise RunError(f"what the model is to read is not JSON: {describe(error)}") from error
    return {
        "type": "model_request",
        "model": model.id,
        "provider": model.provider.name,
        "attempt": attempt,
        "context_digest": digest,
        "system_digest": digest_of(rest["system"]),
        "tools_digest": digest_of(rest["tools"]),
        "context_change": session.digest.change(request.messages),
    }


def _delay(error: ProviderError, model: Model, attempt: int) -> float | None:
    """Seconds to wait before the same model is asked again; None where it is not."""
    if not error.retryable or attempt >= model.retry.attempts:
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= model.retry.max_delay else None
    return float(min(model.retry.max_delay, FIRST_DELAY * 2 ** (attempt - 1)))


async def _wait(session: Session, error: ProviderError, delay: float) -> bool:
    """Wait before the next attempt; True where an abort came first.

    Of our own delay a random part is left out, so that many clients don't come back at once; what
    a server asked for is kept to.
    """
    if error.retry_after is None:
        delay *= 0.5 + 0.5 * session.clock.random()
    await session.attend(asyncio.ensure_future(session.clock.sleep(delay)))
    return session.cancellation.cancelled


def _retry_event(attempt: int, delay: float, error: ProviderError, fallback: Model | None) -> Event:
    event: dict[str, Any] = {
        "type": "model_retry",
        "attempt": attempt,
        "delay": delay,
        "error": describe(error)[:ERROR_TEXT],
    }
    if fallback is not None:
        event["fallback"] = f"{fallback.provider.name}/{fallback.id}"
    return cast("Event", event)


def _error_info(error: ProviderError | None) -> ErrorInfo | None:
    if error is None:
        return None
    info: ErrorInfo = {"message": describe(error)[:ERROR_TEXT], "kind": error.kind}
    if error.status is not None:
        info["status"] = error.status
    return info
