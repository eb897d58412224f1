"""A run as plain lines, for pipes and CI logs: one line an occurrence, no colour, no cursor.

Events in, lines out. What models and tools said comes shortened to one line, control codes shown;
``verbose`` gives it whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from runner.engine.message import Usage, text_of
from runner.views.escape import one_line, visible

Event = Mapping[str, Any]


def plural(count: int, noun: str) -> str:
    """``1 turn``, ``2 turns``, ``1,234 tokens``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def duration(seconds: float) -> str:
    """``0.02 s``, ``12.3 s``, ``2 min 5 s``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def dollars(cost: float) -> str:
    """``$0.0012``, ``$3.40``."""
    return f"${cost:.4f}" if cost < 1 else f"${cost:,.2f}"


def tokens(usage: Usage) -> int:
    """All tokens of a usage that were paid for: read, cached or not, and written."""
    return usage["input"] + usage["output"] + usage["cache_read"] + usage["cache_write"]


def totals(end: Event) -> str:
    """What a run took, from its ``run_end`` or anything else with the same fields."""
    parts = [plural(end["turns"], "turn"), plural(end["tool_calls"], "tool call")]
    if used := tokens(end["usage"]):
        parts.append(plural(used, "token"))
    if end.get("cost_usd"):
        parts.append(dollars(end["cost_usd"]))
    if end.get("seconds") is not None:
        parts.append(duration(end["seconds"]))
    return ", ".join(parts)


def arguments(value: Any) -> str:
    """A call's arguments as compact JSON on one line, or the raw text where they are none."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text)


class TextView:
    """Turns events into lines, one by one, with no more memory than the calls that are open."""

    def __init__(self, write: Callable[[str], None], *, verbose: bool = False) -> None:
        """Make a view.

        Args:
            write: Gets each line, without its line break.
            verbose: Whether to give texts, thinking and results whole, and to tell of requests.
        """
        self._write = write
        self._verbose = verbose
        self._calls: dict[tuple[str, str], int] = {}
        self._count = 0

    def event(self, event: Event) -> None:
        """Show an event. Types that it doesn't know are left out."""
        lines = _LINES.get(event["type"])
        if lines is None:
            return
        prefix = f"{event['agent']}: " if "agent" in event else ""
        for line in lines(self, event):
            self._write(prefix + line)

    def _number(self, event: Event) -> str:
        """A short number for a call, the same at its start and its end."""
        key = (event.get("agent", ""), event["tool_call_id"])
        if event["type"] == "tool_execution_end":
            return f"[{self._calls.pop(key, 0)}]"
        if key not in self._calls:
            self._count += 1
            self._calls[key] = self._count
        return f"[{self._calls[key]}]"

    def _whole(self, text: str) -> Iterator[str]:
        for line in visible(text).splitlines():
            yield f"    {line}"

    def _run_start(self, event: Event) -> Iterator[str]:
        model = event["plan"].get("model") or {}
        named = "/".join(str(model[key]) for key in ("provider", "id") if model.get(key))
        yield f"{event['spec']['name']}: started" + (f" with {one_line(named)}" if named else "")

    def _run_resume(self, event: Event) -> Iterator[str]:
        yield f"resumed at line {event['at_seq']}: {one_line(event['reason'])}"

    def _turn_start(self, event: Event) -> Iterator[str]:
        yield f"turn {event['turn']}"

    def _task_start(self, event: Event) -> Iterator[str]:
        # A run that has no tasks but its prompt has one task, of which there is nothing to tell.
        if event["task_id"] != "main":
            again = f", iteration {event['iteration']}" if event["iteration"] > 1 else ""
            item = f", item {arguments(event['item'])}" if event.get("item") is not None else ""
            yield f"task {event['task_id']}{again}{item}"

    def _task_end(self, event: Event) -> Iterator[str]:
        if event.get("skipped"):
            yield f"task {event['task_id']} skipped: {one_line(event['skipped'])}"
        elif event["status"] != "ok" and event["task_id"] != "main":
            yield f"task {event['task_id']}: {event['status']}"
        if event.get("warning"):
            yield f"task {event['task_id']}: warning: {one_line(event['warning'])}"

    def _message_end(self, event: Event) -> Iterator[str]:
        message = event["message"]
        if message["role"] != "assistant":
            return
        content = message["content"]
        if self._verbose:
            yield from self._answer(message)
        elif (text := text_of(content)) and any(b["type"] == "tool_call" for b in content):
            yield f"  {one_line(text)}"

    def _answer(self, message: Mapping[str, Any]) -> Iterator[str]:
        thinking = "".join(b["text"] for b in message["content"] if b["type"] == "thinking")
        if thinking:
            yield "  thinking:"
            yield from self._whole(thinking)
        if text := text_of(message["content"]):
            yield "  answer:"
            yield from self._whole(text)
        usage = message["usage"]
        yield f"  {message['stop_reason']}: {usage['input']} tokens in, {usage['output']} out"

    def _tool_execution_start(self, event: Event) -> Iterator[str]:
        call = f"{one_line(event['tool_name'], 64)} {arguments(event['arguments'])}"
        yield f"  {self._number(event)} {call}"

    def _tool_execution_update(self, event: Event) -> Iterator[str]:
        if self._verbose:
            yield f"  {self._number(event)} … {arguments(event['update'])}"

    def _tool_execution_end(self, event: Event) -> Iterator[str]:
        text = text_of(event["result"]["content"])
        took = f" in {duration(event['seconds'])}" if event.get("seconds") is not None else ""
        name = f"{self._number(event)} {one_line(event['tool_name'], 64)}"
        if event["is_error"]:
            yield f"  {name} failed{took}: {one_line(text)}"
        else:
            yield f"  {name} done{took}"
        if self._verbose:
            yield from self._whole(text)

    def _model_request(self, event: Event) -> Iterator[str]:
        if self._verbose:
            attempt = f", attempt {event['attempt']}" if event["attempt"] > 1 else ""
            yield f"  asking {event['provider']}/{event['model']}{attempt}"

    def _model_retry(self, event: Event) -> Iterator[str]:
        if fallback := event.get("fallback"):
            yield f"  falling back to {one_line(fallback)}: {one_line(event['error'])}"
        else:
            yield f"  retry in {duration(event['delay'])}: {one_line(event['error'])}"

    def _hook_decision(self, event: Event) -> Iterator[str]:
        reason = f": {one_line(event['reason'])}" if event.get("reason") else ""
        changed = f": {arguments(event['arguments'])}" if "arguments" in event else ""
        yield f"  hook {event['hook']}: {event['action']}{reason or changed}"

    def _message_queued(self, event: Event) -> Iterator[str]:
        if event["source"] != "spec" or self._verbose:
            text = text_of(event["message"]["content"])
            yield f"  queued ({event['queue']}, {event['source']}): {one_line(text)}"

    def _tool_unavailable(self, event: Event) -> Iterator[str]:
        yield f"tool {event['tool']} is not available: {one_line(event['reason'])}"

    def _limit_reached(self, event: Event) -> Iterator[str]:
        yield f"limit {event['limit']} reached: {event['value']:g} of {event['allowed'] or 0:g}"

    def _expectation(self, event: Event) -> Iterator[str]:
        if event["passed"] and self._verbose:
            yield f"expected and found: {event['kind']} {one_line(event['detail'])}"

    def _run_end(self, event: Event) -> Iterator[str]:
        yield f"{event['status']}: {totals(event)}"


_LINES: dict[str, Callable[[TextView, Event], Iterator[str]]] = {
    "run_start": TextView._run_start,
    "run_resume": TextView._run_resume,
    "turn_start": TextView._turn_start,
    "task_start": TextView._task_start,
    "task_end": TextView._task_end,
    "message_end": TextView._message_end,
    "tool_execution_start": TextView._tool_execution_start,
    "tool_execution_update": TextView._tool_execution_update,
    "tool_execution_end": TextView._tool_execution_end,
    "model_request": TextView._model_request,
    "model_retry": TextView._model_retry,
    "hook_decision": TextView._hook_decision,
    "message_queued": TextView._message_queued,
    "tool_unavailable": TextView._tool_unavailable,
    "limit_reached": TextView._limit_reached,
    "expectation": TextView._expectation,
    "run_end": TextView._run_end,
}


def tool_lines(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Tools as a table: name and source, what it does, and its parameters with their types.

    Of one with a ``problem``, which can't be used, that is told in place of what it does.
    """
    width = max((len(tool["name"]) for tool in tools), default=0)
    for tool in tools:
        about = tool.get("problem") or tool["description"]
        yield f"{one_line(tool['name']):<{width}}  {one_line(about)}"
        yield f"{'':<{width}}  from {one_line(tool['source'])}"
        required = tool["parameters"].get("required", ())
        for name, schema in tool["parameters"].get("properties", {}).items():
            kind = schema.get("type", "any") if isinstance(schema, dict) else "any"
            kind = " or ".join(kind) if isinstance(kind, list) else kind
            need = "" if name in required else ", optional"
            yield f"{'':<{width}}    {one_line(name)}: {kind}{need}"
