"""A readable account of a run, from its events: what was said, called, answered and decided.

Events in, lines out, in constant memory: what is held is the deltas of answers that have not ended.
All that models and tools said has its control codes shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runner.views.block import SHOWN, calls, compact, content, indented
from runner.views.escape import one_line, visible
from runner.views.text import duration, totals

Event = Mapping[str, Any]


class Account:
    """Turns the events of a log into lines, one by one."""

    def __init__(self, write: Callable[[str], None], *, whole: bool = False) -> None:
        """Make a view.

        Args:
            write: Gets each line, without its line break.
            whole: Whether to give long arguments and results whole.
        """
        self._write = write
        self._limit = None if whole else SHOWN
        self._open: dict[str | None, dict[int, tuple[str, list[str]]]] = {}
        """By agent: the kind and the pieces of each block of the answer that has not ended."""

    def event(self, event: Event) -> None:
        """Show an event. Types that it doesn't know are left out."""
        lines = _LINES.get(event["type"])
        if lines is not None:
            self._put(event.get("agent"), lines(self, event))

    def finish(self) -> None:
        """Show what was broken off, after the last event."""
        for agent, blocks in self._open.items():
            self._put(agent, _broken_off(blocks))
        self._open.clear()

    def _put(self, agent: str | None, lines: Iterator[str]) -> None:
        prefix = f"{one_line(agent)}: " if agent else ""
        for line in lines:
            self._write(prefix + line)

    def _run_start(self, event: Event) -> Iterator[str]:
        plan = event["plan"]
        model = plan.get("model")
        model = model if isinstance(model, dict) else {}
        named = "/".join(str(model[key]) for key in ("provider", "id") if model.get(key))
        run = [str(event[key]) for key in ("run_id", "started_at") if event.get(key)]
        yield (
            f"{one_line(event['spec']['name'])}: started"
            + (f" with {one_line(named)}" if named else "")
            + (f" ({one_line(', '.join(run))})" if run else "")
        )
        if forked := event.get("forked_from"):
            yield f"  forked from {one_line(forked['run_id'])} at turn {forked['turn']}"
        for name, value in event["inputs"].items():
            yield from indented(f"{name} = {_value(value)}", "  input ", self._limit)
        if isinstance(prompt := plan.get("system_prompt"), str) and prompt:
            yield "  system prompt:"
            yield from indented(prompt)
        if isinstance(history := plan.get("messages"), list) and history:
            yield f"  messages before the prompt: {len(history)}"

    def _run_resume(self, event: Event) -> Iterator[str]:
        self.finish()
        yield f"resumed after line {event['at_seq'] + 1}: {one_line(event['reason'])}"
        for what in ("kept", "rerun", "unknown", "not_started"):
            if event[what]:
                yield f"  calls {what.replace('_', ' ')}: {one_line(', '.join(event[what]))}"

    def _task_start(self, event: Event) -> Iterator[str]:
        again = f", iteration {event['iteration']}" if event["iteration"] > 1 else ""
        item = f", item {compact(event['item'])}" if event.get("item") is not None else ""
        yield f"task {one_line(event['task_id'])}{again}{item}"

    def _task_end(self, event: Event) -> Iterator[str]:
        task = f"task {one_line(event['task_id'])}"
        if event.get("skipped"):
            yield f"{task} skipped: {one_line(event['skipped'])}"
        else:
            yield f"{task}: {one_line(event['status'])}"
        if event["output"] is not None:
            yield from indented(compact(event["output"]), "  output: ", self._limit)
        if event.get("warning"):
            yield f"{task}: warning: {one_line(event['warning'])}"

    def _turn_start(self, event: Event) -> Iterator[str]:
        yield f"turn {event['turn']}"

    def _message_start(self, event: Event) -> Iterator[str]:
        if event["message"]["role"] == "assistant":
            self._open[event.get("agent")] = {}
        yield from ()

    def _message_update(self, event: Event) -> Iterator[str]:
        blocks = self._open.get(event.get("agent"))
        if blocks is not None:
            delta = event["delta"]
            kind, pieces = blocks.setdefault(delta["index"], (delta["kind"], []))
            if kind == "tool_call":
                pieces.append(delta.get("name", "") and f"{delta['name']} ")
            pieces.append(delta.get("text", "") or delta.get("arguments", ""))
        yield from ()

    def _message_end(self, event: Event) -> Iterator[str]:
        message = event["message"]
        if message["role"] == "assistant":
            self._open.pop(event.get("agent"), None)
            yield from self._answer(message)
        elif message["role"] != "tool_result":  # which stands with its call's end
            yield f"  {one_line(message['role'])}:"
            yield from content(message.get("content"))

    def _answer(self, message: Event) -> Iterator[str]:
        stop, usage = message["stop_reason"], message["usage"]
        why = "" if stop in ("stop", "tool_use") else f"{one_line(stop)}, "
        used = f"{usage['input']:,} tokens in, {usage['output']:,} out"
        yield f"  assistant ({why}{used}):"
        yield from content(message["content"])
        if stop in ("error", "aborted"):  # its calls are not run, so that no other line has them
            yield from calls(message["content"])
        if error := message.get("error"):
            yield f"    {one_line(error['kind'])}: {one_line(error['message'], 400)}"

    def _tool_execution_start(self, event: Event) -> Iterator[str]:
        call = f"{one_line(event['tool_name'])} ({one_line(event['tool_call_id'])})"
        yield f"  call {call}:"
        yield from indented(_value(event["arguments"]), limit=self._limit)

    def _tool_execution_update(self, event: Event) -> Iterator[str]:
        yield f"  {one_line(event['tool_name'])} … {one_line(compact(event['update']))}"

    def _tool_execution_end(self, event: Event) -> Iterator[str]:
        took = f" in {duration(event['seconds'])}" if event.get("seconds") is not None else ""
        how = "failed" if event["is_error"] else "done"
        call = f"{one_line(event['tool_name'])} ({one_line(event['tool_call_id'])})"
        yield f"  {how} {call}{took}:"
        yield from content(event["result"]["content"], limit=self._limit)
        if event["result"].get("details") is not None:
            yield from indented(
                f"details: {compact(event['result']['details'])}", limit=self._limit
            )

    def _model_retry(self, event: Event) -> Iterator[str]:
        error = one_line(event["error"], 400)
        if fallback := event.get("fallback"):
            yield f"  falling back to {one_line(fallback)}: {error}"
        else:
            yield f"  retry in {duration(event['delay'])} after attempt {event['attempt']}: {error}"

    def _hook_decision(self, event: Event) -> Iterator[str]:
        call = f" ({one_line(event['tool_call_id'])})" if event.get("tool_call_id") else ""
        reason = f": {one_line(event['reason'], 400)}" if event.get("reason") else ""
        yield f"  hook {one_line(event['hook'])}: {one_line(event['action'])}{call}{reason}"
        if "arguments" in event:
            yield from indented(_value(event["arguments"]), limit=self._limit)

    def _message_queued(self, event: Event) -> Iterator[str]:
        yield f"  queued as {event['queue']}, by {one_line(event['source'])}:"
        yield from content(event["message"].get("content"))

    def _tool_unavailable(self, event: Event) -> Iterator[str]:
        yield f"tool {one_line(event['tool'])} is not available: {one_line(event['reason'], 400)}"

    def _limit_reached(self, event: Event) -> Iterator[str]:
        yield f"limit {event['limit']} reached: {event['value']:g} of {event['allowed'] or 0:g}"

    def _expectation(self, event: Event) -> Iterator[str]:
        how = "met" if event["passed"] else "not met"
        yield f"expectation {how}: {one_line(event['kind'])}: {one_line(event['detail'], 400)}"

    def _agent_end(self, event: Event) -> Iterator[str]:
        if event["queued"]:
            yield f"  still queued: {len(event['queued'])}"

    def _run_end(self, event: Event) -> Iterator[str]:
        yield f"{one_line(event['status'])}: {totals(event)}"
        if event.get("error"):
            yield f"  {one_line(event['error'], 400)}"
        if event["output"] is not None:
            yield from indented(compact(event["output"]), "  output: ", self._limit)
        if event.get("redactions"):
            yield f"  values taken out of this log: {event['redactions']:,}"


def _value(value: Any) -> str:
    """A text as it is, with its lines; any other value as JSON."""
    return value if isinstance(value, str) else compact(value)


def _broken_off(blocks: Mapping[int, tuple[str, list[str]]]) -> Iterator[str]:
    yield "  assistant (broken off):"
    for kind, pieces in blocks.values():
        said = visible("".join(pieces))
        yield from indented(said if kind == "text" else f"{kind.replace('_', ' ')}: {said}")


_LINES: dict[str, Callable[[Account, Event], Iterator[str]]] = {
    "run_start": Account._run_start,
    "run_resume": Account._run_resume,
    "task_start": Account._task_start,
    "task_end": Account._task_end,
    "turn_start": Account._turn_start,
    "message_start": Account._message_start,
    "message_update": Account._message_update,
    "message_end": Account._message_end,
    "tool_execution_start": Account._tool_execution_start,
    "tool_execution_update": Account._tool_execution_update,
    "tool_execution_end": Account._tool_execution_end,
    "model_retry": Account._model_retry,
    "hook_decision": Account._hook_decision,
    "message_queued": Account._message_queued,
    "tool_unavailable": Account._tool_unavailable,
    "limit_reached": Account._limit_reached,
    "expectation": Account._expectation,
    "agent_end": Account._agent_end,
    "run_end": Account._run_end,
}
