"""The ReAct loop: think, act, observe, until there is nothing more to do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Protocol

from runner.engine.hook_call import poll, run_hook
from runner.engine.limit import Reached
from runner.engine.message import AssistantMessage, Message, StopReason, text_of, tool_calls_of
from runner.engine.model_call import call_model
from runner.engine.options import Ending, limit_ending
from runner.engine.queue import MessageQueue
from runner.engine.session import Session, current
from runner.engine.tool_calls import run_tool_calls
from runner.error import PiRunError, describe, named


class Tasks(Protocol):
    """What a loop is run for. It asks for more when it has nothing left to do."""

    async def begin(self) -> Sequence[Message] | Ending:
        """The agent has started: the first prompts, or how it ends at once."""
        ...

    async def review(self) -> Sequence[Message] | Ending:
        """The agent rests, and its follow-up queue was not looked at yet.

        Gives messages that ask it to try again, none, or how the run ends now.
        """
        ...

    async def next(self) -> Sequence[Message] | Ending:
        """The agent rests, and its follow-up queue is empty: the next prompts, or how it ends."""
        ...

    async def end(self, ending: Ending) -> Ending:
        """The agent is about to end: close what is open. Gives the ending that counts."""
        ...


class NoTasks:
    """A loop that is run for its prompts alone."""

    async def begin(self) -> Sequence[Message] | Ending:
        """Nothing to add."""
        return ()

    async def review(self) -> Sequence[Message] | Ending:
        """Nothing to try again."""
        return ()

    async def next(self) -> Sequence[Message] | Ending:
        """Nothing more."""
        return Ending("ok")

    async def end(self, ending: Ending) -> Ending:
        """Nothing is open."""
        return ending


async def run_loop(
    session: Session,
    prompts: Sequence[Message],
    tasks: Tasks,
    queue: MessageQueue | None = None,
) -> Ending:
    """Run an agent from its start to its end.

    Every start has its end, whatever happens in between, and nothing is raised.

    Args:
        session: The agent.
        prompts: What it is told first; it goes on with its history where there are none.
        tasks: What it is run for.
        queue: What it is told first is taken from here, where there are no prompts.
    """
    current.set(session)
    first = len(session.history)
    session.last_answer = session.stopping = None
    session.emit({"type": "agent_start"})
    session.started = True
    session.schedule(turn=0)
    try:
        ending = await _turns(session, prompts, tasks, queue)
    except PiRunError as error:
        ending = session.aborted_as or Ending("error", describe(error))
    except asyncio.CancelledError:
        session.cancelled()
        ending = session.aborted_as or Ending("aborted")
    except Exception as error:
        ending = Ending("error", named(error), bug=error)
    _close_turn(session)
    ending = await tasks.end(ending)
    if ending.limit is not None:
        _tell_limit(session, ending.limit)
    queued = session.last_queued()
    session.emit(
        {
            "type": "agent_end",
            "stop_reason": _stop_reason(session.last_answer),
            "message_ids": [message["id"] for message in session.history[first:]],
            "queued": queued,
        }
    )
    await session.settle()
    return ending


def _stop_reason(answer: AssistantMessage | None) -> StopReason | None:
    # One that a history began with may have none.
    return answer.get("stop_reason") if answer is not None else None


async def _turns(
    session: Session, prompts: Sequence[Message], tasks: Tasks, queue: MessageQueue | None
) -> Ending:
    """The two loops: turns while there are calls or steering, follow-ups when there are none."""
    begun = await tasks.begin()
    if isinstance(begun, Ending):
        return begun
    if reached := session.reached():
        return limit_ending(reached)
    pending: Sequence[Message] = [*prompts, *begun]
    more = _asks(session, pending, queue)
    opening = True
    while True:
        while more:
            turn = await _turn(session, pending, queue, opening=opening)
            if isinstance(turn, Ending):
                return turn
            opening = False
            await poll(session, session.steering)
            more = turn is not _Next.REST or len(session.steering) > 0
            if more and (reached := session.reached()):
                return limit_ending(reached)
            pending, queue = (), None if turn is _Next.SAME else session.steering
        after = await _follow_ups(session, tasks)
        if isinstance(after, Ending):
            return after
        pending, queue = after
        more = True


def _asks(session: Session, pending: Sequence[Message], queue: MessageQueue | None) -> bool:
    """Whether there is something for the model to answer when an agent starts.

    There is nothing when it goes on after a last answer, and nobody has said anything since.
    """
    if pending or queue is not None or len(session.steering) or not session.context:
        return True
    last = session.context[-1]
    if last["role"] != "assistant" or last.get("stop_reason") == "length":
        return True
    return bool(last.get("paused") or tool_calls_of(last))


class _Next(Enum):
    """What comes after a turn, unless the run ends with it."""

    REST = auto()
    """Nothing, unless something is queued."""
    ASK = auto()
    """Another one: the model is to see the results of its calls."""
    SAME = auto()
    """Another one with no message between: the provider paused the turn."""


async def _turn(
    session: Session, pending: Sequence[Message], queue: MessageQueue | None, *, opening: bool
) -> _Next | Ending:
    """One turn. Gives what comes next, or how the run ends here."""
    _begin_turn(session)
    await session.take(pending)
    if queue is not None:
        await session.take_from(queue)
    if opening and queue is not session.steering:
        await session.take_from(session.steering)
    answer = await call_model(session)
    batch = None
    if answer["stop_reason"] not in ("error", "aborted"):
        batch = await run_tool_calls(session, answer)
    _close_turn(session)
    await session.settle()
    if (ending := _ending(session, answer)) is not None:
        return ending
    if await _stops(session, answer):
        return Ending("ok")
    if batch and batch.calls:
        return _Next.REST if batch.terminate else _Next.ASK
    return _Next.SAME if answer.get("paused") else _Next.REST


async def _follow_ups(
    session: Session, tasks: Tasks
) -> tuple[Sequence[Message], MessageQueue | None] | Ending:
    """What a resting agent does next, and the queue that it was taken from; or how it ends."""
    review = await tasks.review()
    if isinstance(review, Ending):
        return review
    if not review:
        await poll(session, session.follow_up)
        await _rest(session)
        if session.aborted_as is not None:
            return session.aborted_as
    queue = session.steering if len(session.steering) else session.follow_up
    if (review or len(queue)) and (reached := session.reached()):
        return limit_ending(reached)
    if review:
        return review, None
    if len(queue):
        return (), queue
    after = await tasks.next()
    return after if isinstance(after, Ending) else (after, None)


async def _rest(session: Session) -> None:
    """Let those who may still want something say so, where nothing is queued."""
    if session.at_rest is None or len(session.follow_up) or len(session.steering):
        return
    work = asyncio.ensure_future(session.at_rest())
    if await session.attend(work) and not work.cancelled():
        work.result()


def _begin_turn(session: Session) -> None:
    session.turn += 1
    session.turn_first = len(session.history)
    session.turn_results = []
    session.meter.add_turn()
    session.turn_open = True
    session.emit({"type": "turn_start", "turn": session.turn})


def _close_turn(session: Session) -> None:
    """End the turn, if one is open."""
    if not session.turn_open:
        return
    session.turn_open = False
    answer = session.turn_answer()
    session.emit(
        {
            "type": "turn_end",
            "turn": session.turn,
            "stop_reason": answer["stop_reason"] if answer else "error",
            "message_id": answer["id"] if answer else None,
            "tool_result_ids": session.turn_results,
        }
    )
    session.schedule(turn=session.turn)


def _ending(session: Session, answer: AssistantMessage) -> Ending | None:
    """How the run ends after this turn, if it does whatever is queued."""
    if session.aborted_as is not None:
        return session.aborted_as
    if answer["stop_reason"] == "aborted":
        return Ending("aborted", "the model's answer was aborted")
    if answer["stop_reason"] == "error":
        error = answer.get("error")
        return Ending("error", error["message"] if error else "the model failed")
    if session.stopping is not None:
        return session.stopping
    if answer["stop_reason"] == "length" and not tool_calls_of(answer):
        allowed = session.model.parameters.get("max_output_tokens")
        return limit_ending(
            Reached("output", answer["usage"]["output"], allowed, session.meter.number)
        )
    return None


async def _stops(session: Session, answer: AssistantMessage) -> bool:
    """Whether a hook ends the run here, as done."""
    turn = {
        "turn": session.turn,
        "text": text_of(answer["content"]),
        "stop_reason": answer["stop_reason"],
        "message": answer,
    }
    for hook in session.hooks["stop_after_turn"]:
        if await run_hook(session, "stop_after_turn", hook, turn):
            return True
    return False


def _tell_limit(session: Session, reached: Reached) -> None:
    """Tell a limit, once a run."""
    if not session.emitter.once((reached.limit, reached.owner)):
        return
    event: Any = {"type": "limit_reached", "limit": reached.limit}
    session.emit(event | {"value": reached.value, "allowed": reached.allowed})
