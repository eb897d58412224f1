"""From events to spans: one code for a run as it happens and for an old log.

::

    invoke_agent SPEC                 from run_start to run_end
      task ID                         from task_start to task_end
        turn N                        for `chrome` alone
          chat MODEL                  from each model_request to its answer's end, or its failure
          execute_tool TOOL           from tool_execution_start to tool_execution_end
            invoke_agent NAME         a sub-agent, in a call or in a task, with the same inside

An agent of a program's own, which has no run, is from ``agent_start`` to ``agent_end``.

All times are those of the events, so that the same run gives the same spans, live and later. What
is held is what is open at the same time, and with content the agents' messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.telemetry import content, names
from runner.telemetry.asked import Asked
from runner.telemetry.content import Conversation
from runner.telemetry.lane import Lane, tokens
from runner.telemetry.moment import Moments
from runner.telemetry.span import Kind, Note, Sink, Span

Event = Mapping[str, Any]
MAIN = "main"


class Trace:
    """Makes spans of the events of one run.

    Args:
        sinks: Get the spans.
        content: Whether what was said is told too: prompts, answers, arguments, results.
    """

    def __init__(self, sinks: Sequence[Sink], *, content: bool = False) -> None:
        self._sinks = sinks
        self._content = content
        self._lanes: dict[str, Lane] = {}
        self._open: dict[Span, None] = {}
        self._owned: dict[Span, list[str]] = {}
        self._moments = Moments()
        self._now = 0
        self._seq = 0
        self._in_run = False
        self.run_id: str | None = None
        """The run's, once its first event came."""

    def event(self, event: Event) -> None:
        """Take the next event.

        Raises:
            UsageError: at the first, where it has no time.
        """
        handle = _HANDLERS.get(event["type"])
        self._now = self._moments.of(event)
        if handle is None:
            return
        self._seq = event.get("seq", self._seq + 1)
        lane = self._lane(event.get("agent", MAIN))
        if lane.failed is not None and event["type"] != "model_retry":
            self._end_failed(lane)
        handle(self, lane, event)

    def finish(self) -> None:
        """End what is still open, after the last event: the run was killed, or goes on."""
        for span in reversed(list(self._open)):
            if span.end is None:
                span.fail(names.UNFINISHED)
            self._end(span)

    @property
    def times(self) -> tuple[int, int]:
        """When the run began and the latest event was, in nanoseconds since 1970."""
        return self._moments.began, self._now

    # --- spans ------------------------------------------------------------------------------------

    def _begin(
        self, kind: Kind, name: str, lane: Lane, parent: Span | None, attributes: dict[str, Any]
    ) -> Span:
        common = {names.AGENT_NAME: lane.name}
        if self.run_id is not None:
            common[names.CONVERSATION] = self.run_id
        attributes = {**attributes, **common}
        span = Span(kind, name, self._seq, self._now, parent, lane.path, attributes)
        self._open[span] = None
        for sink in self._sinks:
            sink.begin(span)
        return span

    def _end(self, span: Span) -> None:
        if span not in self._open:
            return
        for inner in [one for one in reversed(list(self._open)) if one.parent is span]:
            # Only a log that was broken off, or is no longer what it was, has this.
            if inner.end is None:
                inner.fail(names.UNFINISHED)
            self._end(inner)
        del self._open[span]
        if span.end is None:
            span.end = self._now
        for path in self._owned.pop(span, ()):
            self._lanes.pop(path, None)
        for sink in self._sinks:
            sink.end(span)

    def _note(self, span: Span | None, name: str, **attributes: Any) -> None:
        if span is not None:
            kept = {key: value for key, value in attributes.items() if value is not None}
            span.notes.append(Note(name, self._now, kept))

    def _words(self, text: Any) -> str | None:
        """A text that may tell of what was said; None where that is not asked for."""
        return text if self._content and isinstance(text, str) else None

    # --- agents -----------------------------------------------------------------------------------

    def _lane(self, path: str) -> Lane:
        lane = self._lanes.get(path)
        if lane is None:
            above, _, part = path.rpartition("/")
            parent = self._lanes.get(above) or self._lanes.get(MAIN)
            name = part.partition("#")[0]
            asked = Asked(None) if parent is None else parent.asked.agent_below(name)
            lane = self._lanes[path] = self._new_lane(path, name, asked, parent)
        return lane

    def _new_lane(self, path: str, name: str, asked: Asked, above: Lane | None) -> Lane:
        lane = Lane(path, name, asked, above)
        if self._content:
            lane.conversation = Conversation(asked, main=above is None)
        return lane

    def _agent(self, lane: Lane, parent: Span | None, **more: Any) -> None:
        attributes = {
            names.OPERATION: names.INVOKE_AGENT,
            **lane.asked.main_model(),
            names.AGENT_ID: lane.path,
            **more,
        }
        if description := lane.asked.description:
            attributes[names.AGENT_DESCRIPTION] = description
        lane.usage.clear()
        lane.limit = False
        name = f"{names.INVOKE_AGENT} {lane.name}"
        lane.span = self._begin("agent", name, lane, parent, attributes)

    def _agent_end(self, lane: Lane) -> None:
        if lane.span is not None:
            lane.span.attributes.update(tokens(lane.usage))
            self._end(lane.span)
        lane.span = lane.turn = lane.chat = lane.failed = None
        lane.tasks.clear()
        lane.calls.clear()

    # --- events, in the order in which they come --------------------------------------------------

    def on_run_start(self, lane: Lane, event: Event) -> None:
        """The run's own agent begins."""
        self._in_run = True
        run_id = event.get("run_id")
        self.run_id = run_id if isinstance(run_id, str) else None
        spec = event.get("spec")
        name = spec.get("name") if isinstance(spec, Mapping) else None
        named = name if isinstance(name, str) else MAIN
        lane = self._lanes[MAIN] = self._new_lane(MAIN, named, Asked(event.get("plan")), None)
        self._agent(lane, None)

    def on_run_resume(self, lane: Lane, event: Event) -> None:
        """It goes on: in the span that it had, or after its end in another."""
        self._in_run = True
        if "plan" in event:
            lane.asked = Asked(event["plan"])
        reason = str(event.get("reason", ""))
        if lane.span is None:
            self._agent(lane, None, **{names.RESUME: reason})
        else:
            self._note(lane.span, names.RESUME, reason=reason)

    def on_agent_start(self, lane: Lane, event: Event) -> None:
        """A sub-agent begins; that the run's own does says nothing more."""
        if lane.span is not None:
            return
        if lane.above is None:
            self._agent(lane, None)
            return
        owner = lane.above.owner(lane.path.rpartition("/")[2], self._owned)
        if owner is not None:
            self._owned.setdefault(owner, []).append(lane.path)
        self._agent(lane, owner)

    def on_agent_end(self, lane: Lane, event: Event) -> None:
        """A sub-agent rests, or one without a run; the run's own ends with the run."""
        if lane.span is None or (lane.above is None and self._in_run):
            return
        if event.get("stop_reason") in ("error", "aborted"):
            lane.span.fail(event["stop_reason"])
        elif lane.limit:
            lane.span.fail("limit")
        self._agent_end(lane)

    def on_task_start(self, lane: Lane, event: Event) -> None:
        """A task begins."""
        attributes = {
            names.TASK_ID: event["task_id"],
            names.TASK_ITERATION: event["iteration"],
        }
        if self._content and "item" in event:
            attributes[names.TASK_ITEM] = content.arguments(event["item"])
        name = f"task {event['task_id']}"
        span = self._begin("task", name, lane, lane.span, attributes)
        lane.tasks[event["task_id"], event["iteration"]] = span

    def on_task_end(self, lane: Lane, event: Event) -> None:
        """A task ended, or was skipped, of which some have no start."""
        key = event["task_id"], event["iteration"]
        if key not in lane.tasks:
            self.on_task_start(lane, event)
        span, status = lane.tasks.pop(key), event["status"]
        span.attributes[names.STATUS] = status
        if status not in ("ok", "skipped"):
            span.fail(status)
        self._end(span)

    def on_turn_start(self, lane: Lane, event: Event) -> None:
        """A turn begins."""
        if lane.turn is not None:
            self._end(lane.turn)
        lane.turn, lane.number = None, event["turn"]
        parent, name = lane.innermost, f"turn {event['turn']}"
        lane.turn = self._begin("turn", name, lane, parent, {names.TURN: event["turn"]})

    def on_turn_end(self, lane: Lane, event: Event) -> None:
        """A turn ends."""
        if lane.turn is not None:
            self._end(lane.turn)
        lane.turn = None

    def on_model_request(self, lane: Lane, event: Event) -> None:
        """A model is asked."""
        if lane.chat is not None:
            lane.chat.fail(names.UNFINISHED)
            self._end(lane.chat)
        model = event["model"]
        attributes = {
            names.OPERATION: names.CHAT,
            **lane.asked.request(event["provider"], model),
            names.ATTEMPT: event["attempt"],
        }
        if lane.number is not None:
            attributes[names.TURN] = lane.number
        if lane.conversation is not None:
            attributes.update(lane.conversation.request(event))
        name = f"{names.CHAT} {model}"
        lane.chat, lane.first = self._begin("chat", name, lane, lane.innermost, attributes), None

    def on_message_start(self, lane: Lane, event: Event) -> None:
        """An answer's first piece came."""
        if event["message"].get("role") == "assistant":
            lane.first = self._now

    def on_message_end(self, lane: Lane, event: Event) -> None:
        """An answer is whole."""
        message = event["message"]
        if lane.conversation is not None:
            lane.conversation.add(message)
        span = lane.chat
        if message.get("role") != "assistant" or span is None:
            return
        lane.chat, span.end = None, self._now
        self._answer(lane, span, message)
        if span.error is None:
            self._end(span)
        else:
            lane.failed = span

    def _answer(self, lane: Lane, span: Span, message: Mapping[str, Any]) -> None:
        reason, usage = message.get("stop_reason", "stop"), message.get("usage")
        span.attributes[names.RESPONSE_MODEL] = message.get("model", "")
        span.attributes[names.FINISH_REASONS] = [names.FINISHES.get(reason, reason)]
        span.attributes.update(tokens(usage))
        if isinstance(usage, Mapping):
            lane.add_usage(usage)
        if lane.first is not None and message.get("content"):
            span.attributes[names.TIME_TO_FIRST_CHUNK] = (lane.first - span.start) / 1e9
        if self._content:
            span.attributes[names.OUTPUT_MESSAGES] = content.answer(message)
        error = message.get("error")
        if isinstance(error, Mapping):
            span.fail(str(error.get("kind", "_OTHER")), self._words(error.get("message")))
        elif reason in ("error", "aborted"):
            span.fail(reason)

    def _end_failed(self, lane: Lane) -> None:
        if lane.failed is not None:
            self._end(lane.failed)
        lane.failed = None

    def on_model_retry(self, lane: Lane, event: Event) -> None:
        """A request failed, with an answer that broke off or with none."""
        span = lane.failed or lane.chat
        if span is None:
            return
        if lane.chat is span:
            lane.chat = None
            span.fail("_OTHER", self._words(event.get("error")))
        self._note(
            span,
            names.RETRY,
            attempt=event["attempt"],
            delay=event["delay"],
            fallback=event.get("fallback"),
            error=self._words(event.get("error")),
        )
        self._end(span)
        lane.failed = None

    def on_tool_execution_start(self, lane: Lane, event: Event) -> None:
        """A call begins."""
        call, tool = event["tool_call_id"], event["tool_name"]
        if call in lane.calls:
            lane.calls[call].fail(names.UNFINISHED)
            self._end(lane.calls[call])
        attributes: dict[str, Any] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: tool,
            names.TOOL_CALL_ID: call,
            names.TOOL_TYPE: "function",
        }
        if description := lane.asked.tool_description(tool):
            attributes[names.TOOL_DESCRIPTION] = description
        if lane.number is not None:
            attributes[names.TURN] = lane.number
        if self._content:
            attributes[names.TOOL_ARGUMENTS] = content.arguments(event.get("arguments"))
        name = f"{names.EXECUTE_TOOL} {tool}"
        lane.calls[call] = self._begin("tool", name, lane, lane.innermost, attributes)

    def on_tool_execution_end(self, lane: Lane, event: Event) -> None:
        """A call is done."""
        span = lane.calls.pop(event["tool_call_id"], None)
        if span is None:
            return
        if self._content:
            span.attributes[names.TOOL_RESULT] = content.result(event.get("result"))
        if event.get("stopped") is not None:
            span.fail("stopped", self._words(event["stopped"]))
        elif event.get("is_error"):
            blocked = any(
                note.name == names.HOOK_DECISION and note.attributes.get("action") == "block"
                for note in span.notes
            )
            span.fail("blocked" if blocked else "tool_error")
        self._end(span)

    def on_hook_decision(self, lane: Lane, event: Event) -> None:
        """A hook changed something, or stopped it."""
        self._note(
            lane.calls.get(event.get("tool_call_id", ""), lane.innermost),
            names.HOOK_DECISION,
            hook=event["hook"],
            action=event["action"],
            reason=self._words(event.get("reason")),
        )

    def on_limit_reached(self, lane: Lane, event: Event) -> None:
        """The agent has to end."""
        lane.limit = True
        value = {key: event.get(key) for key in ("limit", "value", "allowed")}
        self._note(lane.span, names.LIMIT_REACHED, **value)

    def on_expectation(self, lane: Lane, event: Event) -> None:
        """Something was held against what came of a task or of the run."""
        while lane.span is None and lane.above is not None:
            lane = lane.above
        self._note(
            lane.span,
            names.EVALUATION,
            **{
                names.EVALUATION_NAME: event["kind"],
                names.EVALUATION_LABEL: "pass" if event["passed"] else "fail",
                names.TASK_ID: event["task_id"],
                names.EVALUATION_EXPLANATION: self._words(event.get("detail")),
            },
        )

    def on_run_end(self, lane: Lane, event: Event) -> None:
        """The run is over."""
        if (span := lane.span) is not None:
            span.attributes[names.STATUS] = event["status"]
            if isinstance(event.get("cost_usd"), int | float):
                span.attributes[names.COST] = event["cost_usd"]
            if event["status"] != "ok":
                span.fail(event["status"], self._words(event.get("error")))
        self._agent_end(lane)


_HANDLERS: dict[str, Callable[[Trace, Lane, Event], None]] = {
    name.removeprefix("on_"): handler
    for name, handler in vars(Trace).items()
    if name.startswith("on_")
}
"""What is done with each type of event; of deltas, updates and all that is unknown, nothing."""
