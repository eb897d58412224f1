"""The ReAct loop: think, act, observe, until there is nothing more to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from runner.engine.limit import Reached
from runner.engine.message import AssistantMessage, Message, text_of, tool_calls_of
from runner.engine.model_call import call_model
from runner.engine.options import Ending
from runner.engine.queue import MessageQueue
from runner.engine.session import Session, current
from runner.engine.tool_call import run_tool_calls
from runner.error import PiRunError, describe


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

    ``prompts`` may be empty: it then goes on with its history. ``queue`` is where they were taken
    from, if they were, and where they go back to if the run ends before they joined the history.

    Every start has its end, whatever happens in between.
    """
    current.set(session)
    first = len(session.history)
    session.emit({"type": "agent_start"})
    session.started = True
    session.schedule(turn=0)
    try:
        ending = await _turns(session, prompts, tasks, queue)
    except PiRunError as error:
        ending = Ending("error", describe(error))
    except Exception as error:
        ending = Ending("error", f"{type(error).__name__}: {describe(error)}", bug=error)
    _close_turn(session)
    ending = await tasks.end(ending)
    if ending.limit is not None:
        _tell_limit(session, ending.limit)
    session.tell_news()
    session.emit(
        {
            "type": "agent_end",
            "stop_reason": session.last_answer["stop_reason"] if session.last_answer else None,
            "message_ids": [message["id"] for message in session.history[first:]],
            "queued": session.queued(),
        }
    )
    await session.settle()
    return ending


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
    opening = True
    while True:
        more = True
        while more:
            turn = await _turn(session, pending, queue, opening=opening)
            if isinstance(turn, Ending):
                return turn
            opening = False
            await session.poll(session.steering)
            more = turn or len(session.steering) > 0
            if more and (reached := session.reached()):
                return limit_ending(reached)
            pending, queue = session.steering.drain(), session.steering
        after = await _follow_ups(session, tasks)
        if isinstance(after, Ending):
            return after
        pending, queue = after


async def _turn(
    session: Session, pending: Sequence[Message], queue: MessageQueue | None, *, opening: bool
) -> bool | Ending:
    """One turn. Gives whether the model is to be asked again, or how the run ends here."""
    _begin_turn(session)
    await session.take(pending, queue)
    if opening:
        await session.take(session.steering.drain(), session.steering)
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
    return bool(batch and batch.calls and not batch.terminate) or bool(answer.get("paused"))


async def _follow_ups(
    session: Session, tasks: Tasks
) -> tuple[Sequence[Message], MessageQueue | None] | Ending:
    """What a resting agent does next, and the queue that it was taken from; or how it ends."""
    review = await tasks.review()
    if isinstance(review, Ending):
        return review
    if not review:
        await session.poll(session.follow_up)
        if session.at_rest is not None and not len(session.follow_up):
            await session.at_rest()
        if session.aborted_as is not None:
            return session.aborted_as
    if (review or len(session.follow_up)) and (reached := session.reached()):
        return limit_ending(reached)
    if review:
        return review, None
    if queued := session.follow_up.drain():
        return queued, session.follow_up
    after = await tasks.next()
    return after if isinstance(after, Ending) else (after, None)


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
        return limit_ending(Reached("output", answer["usage"]["output"], allowed))
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
        if await session.run_hook("stop_after_turn", hook, turn):
            return True
    return False


def limit_ending(reached: Reached) -> Ending:
    """The ending of a run that may not go on."""
    allowed = "" if reached.allowed is None else f" of {reached.allowed:g}"
    return Ending("limit", f"the limit {reached.limit}{allowed} is reached", reached)


def _tell_limit(session: Session, reached: Reached) -> None:
    """Tell a limit, once a run."""
    if not session.emitter.once((reached.limit, reached.owner)):
        return
    event: Any = {"type": "limit_reached", "limit": reached.limit}
    session.emit(event | {"value": reached.value, "allowed": reached.allowed})
