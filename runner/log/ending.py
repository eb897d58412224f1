"""Why an agent was stopped, told from what its log says after that."""

from __future__ import annotations

from runner.engine.limit import Reached
from runner.engine.options import Ending, limit_ending
from runner.engine.session import Session
from runner.log.tape import Line, Tape


def recorded_ending(
    tape: Tape, end: Line | None, session: Session, root: Session | None
) -> Ending | None:
    """How an agent, or its whole run, ended where it was stopped. None: it was killed before.

    Args:
        tape: The log.
        end: The run's ``run_end``; None where it was killed.
        session: The agent.
        root: The main agent.
    """
    return _of_agent(tape, session) or _of_run(end) or _of_killed(tape, session, root)


def reason_of(tape: Tape) -> str:
    """Why a run was stopped that was killed before it told that, as far as any call says it."""
    for line in tape.rest():
        reason = line.get("stopped")
        if reason is not None and not reason.startswith("timed out"):
            return str(reason)
    return "it was cancelled"


def _of_agent(tape: Tape, session: Session) -> Ending | None:
    """The time limit of an agent of its own, where that ended it."""
    for line in tape.ahead(session.path):
        if line["type"] == "agent_end":
            return None
        if line["type"] == "limit_reached" and line.get("limit") == "seconds":
            value, allowed = line["value"], line["allowed"]
            return limit_ending(Reached("seconds", value, allowed, session.meter.number))
    return None


def _of_run(end: Line | None) -> Ending | None:
    if end is None or end["status"] not in ("aborted", "error", "limit"):
        return None
    code = end["exit_code"]
    signal = code - 128 if end["status"] == "aborted" and code > 128 else None
    return Ending(end["status"], end.get("error"), signal=signal)


def _of_killed(tape: Tape, session: Session, root: Session | None) -> Ending | None:
    """What an agent was stopped by whose run was killed before it told that."""
    timed = _time_limit(session) or (_time_limit(root) if root is not None else None)
    for line in tape.ahead(session.path):
        reason = line.get("stopped")
        if timed is not None and (reason == timed.error or line.get("status") == "limit"):
            return timed
        if line["type"] == "task_end":
            break
    return None


def _time_limit(session: Session) -> Ending | None:
    """How an agent ends whose time is up."""
    seconds = session.meter.limits.seconds
    if seconds is None:
        return None
    return limit_ending(Reached("seconds", seconds, seconds, session.meter.number))
