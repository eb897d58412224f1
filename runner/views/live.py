"""A run on a terminal, as it happens: streamed text, running tools, and a line that counts.

What is finished is printed and scrolls away; what is going on stands below it and is drawn anew
ten times a second. Events only change the state, so that a fast stream costs no drawing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TextIO

from runner.engine.contract import Price
from runner.engine.message import add_usage, no_usage, text_of
from runner.views.escape import one_line, visible
from runner.views.screen import BOLD, CYAN, DIM, GREEN, RED, Screen, Span, cells, cut, wrap
from runner.views.text import (
    Event,
    TextView,
    arguments,
    dollars,
    duration,
    plural,
    tokens,
)

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

_TAIL = 4096
"""How many characters of a growing text are kept to be drawn."""


@dataclass(slots=True)
class _Call:
    """A tool call that is running."""

    agent: str
    name: str
    arguments: str
    started: float
    update: str = ""


@dataclass(slots=True)
class _Answer:
    """An answer that is being streamed: the ends of its texts."""

    agent: str = ""
    thinking: str = ""
    text: str = ""
    calls: dict[int, str] = field(default_factory=dict)
    """The names of the calls that it asks for, by their place."""


class LiveView:
    """Shows a run on a terminal. Use it as a context manager: the terminal is put in order."""

    def __init__(
        self,
        file: TextIO,
        *,
        color: bool = True,
        verbose: bool = False,
        prints_result: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a view.

        Args:
            file: The terminal.
            color: Whether colours are wanted.
            verbose: Whether to give thinking and results whole.
            prints_result: Whether the final text is this view's to print, since it is not printed
                to the same terminal as the command's result.
            clock: Seconds, for the times of what is running.
        """
        self._screen = Screen(file, color, self.drawing)
        self._lines = TextView(self._print_line, verbose=verbose)
        self._verbose = verbose
        self._prints_result = prints_result
        self._clock = clock
        self._started = clock()
        self._answers: dict[str, _Answer] = {}
        self._calls: dict[tuple[str, str], _Call] = {}
        self._turn = 0
        self._usage = no_usage()
        self._prices: dict[tuple[str, str | None], Price] = {}
        self._cost = 0.0
        self._held = ""
        self._waiting = ""

    def __enter__(self) -> LiveView:
        self._screen.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._screen.stop()

    def pause(self) -> None:
        """Leave the terminal alone, so that a person can be asked something."""
        self._screen.stop()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._screen.start()

    # --- events ---------------------------------------------------------------------------------

    def event(self, event: Event) -> None:
        """Show an event. Types that it doesn't know are left out."""
        with self._screen.lock:
            change = _CHANGES.get(event["type"])
            if change is not None:
                change(self, event)
            if event["type"] not in _SILENT:
                self._lines.event(event)

    def _run_start(self, event: Event) -> None:
        model = event["plan"].get("model") or {}
        for each in (model, *(model.get("fallback") or ())):
            if each.get("price"):
                self._prices[each["provider"], each.get("id")] = Price(**each["price"])

    def _turn_start(self, event: Event) -> None:
        self._turn = max(self._turn, event["turn"])
        self._print_held()

    def _model_request(self, event: Event) -> None:
        self._waiting = one_line(f"{event['provider']}/{event['model']}")

    def _message_start(self, event: Event) -> None:
        if event["message"]["role"] == "assistant":
            self._waiting = ""
            agent = event.get("agent", "")
            self._answers[agent] = _Answer(agent)

    def _message_update(self, event: Event) -> None:
        answer = self._answers.get(event.get("agent", ""))
        if answer is None:
            return
        delta = event["delta"]
        if delta["kind"] == "text":
            answer.text = (answer.text + delta["text"])[-_TAIL:]
        elif delta["kind"] == "thinking":
            answer.thinking = (answer.thinking + delta["text"])[-_TAIL:]
        elif name := delta.get("name"):
            answer.calls[delta["index"]] = one_line(name, 64)

    def _message_end(self, event: Event) -> None:
        message = event["message"]
        if message["role"] != "assistant":
            return
        self._waiting = ""
        self._answers.pop(event.get("agent", ""), None)
        add_usage(self._usage, message["usage"])
        for model in (message["model"], None):  # a model may have no id in its spec
            if price := self._prices.get((message["provider"], model)):
                self._cost += price.cost(message["usage"])
                break
        if self._verbose:
            thinking = (b["text"] for b in message["content"] if b["type"] == "thinking")
            self._print("".join(thinking), DIM)
        text = text_of(message["content"])
        is_last = "agent" not in event and not any(
            block["type"] == "tool_call" for block in message["content"]
        )
        if is_last:
            # It may be the final text, which the command prints as its result.
            self._held = text
        else:
            self._print(text)

    def _tool_execution_start(self, event: Event) -> None:
        agent = event.get("agent", "")
        self._calls[agent, event["tool_call_id"]] = _Call(
            agent,
            one_line(event["tool_name"], 64),
            arguments(event["arguments"]),
            self._clock(),
        )

    def _tool_execution_update(self, event: Event) -> None:
        if call := self._calls.get((event.get("agent", ""), event["tool_call_id"])):
            call.update = arguments(event["update"])

    def _tool_execution_end(self, event: Event) -> None:
        call = self._calls.pop((event.get("agent", ""), event["tool_call_id"]), None)
        mark, code = ("✗", RED) if event["is_error"] else ("✓", GREEN)
        took = f" {duration(event['seconds'])}" if event.get("seconds") is not None else ""
        head = [(f"  {mark} ", code), (f"{event['agent']} " if "agent" in event else "", DIM)]
        head.append((one_line(event["tool_name"], 64), BOLD))
        shown = f" {call.arguments}" if call else ""
        self._screen.print(*_fitted([*head, (took, DIM), (shown, "")], self._screen.size[0]))
        text = text_of(event["result"]["content"])
        if self._verbose:
            self._print(text, DIM)
        elif event["is_error"]:
            self._print("    " + one_line(text), RED)

    def _run_end(self, event: Event) -> None:
        if self._prints_result or self._held != event["text"]:
            self._print_held()

    def _print_held(self) -> None:
        text, self._held = self._held, ""
        self._print(text)

    def _print(self, text: str, code: str = "") -> None:
        if text := visible(text).rstrip():
            self._screen.print((text, code))

    def _print_line(self, line: str) -> None:
        self._screen.print((line, DIM))

    # --- drawing --------------------------------------------------------------------------------

    def drawing(self, width: int, height: int) -> list[list[Span]]:
        """What is going on, in at most ``height`` rows: the last ones, and the line that counts."""
        rows: list[list[Span]] = []
        for answer in self._answers.values():
            code, text = ("", answer.text) if answer.text else (DIM, answer.thinking)
            if text:
                rows += [[(row, code)] for row in wrap(visible(text), width)]
            rows += [[(f"  calling {name} …", DIM)] for name in answer.calls.values()]
        rows += [self._running(call) for call in self._calls.values()]
        rows = rows[-(height - 1) :] if height > 1 else []
        return [_fitted(row, width) for row in (*rows, self._status())]

    def _running(self, call: _Call) -> list[Span]:
        return [
            ("  ▸ ", CYAN),
            (f"{call.agent} " if call.agent else "", DIM),
            (call.name, BOLD),
            (f" {duration(self._clock() - call.started)}", DIM),
            (f" {call.update or call.arguments}", ""),
        ]

    def _status(self) -> list[Span]:
        parts = [f"turn {self._turn}"] if self._turn else []
        if used := tokens(self._usage):
            parts.append(plural(used, "token"))
        if self._cost:
            parts.append(dollars(self._cost))
        parts.append(duration(self._clock() - self._started))
        if self._waiting:
            parts.append(f"waiting for {self._waiting}")
        spin = _SPINNER[int(self._clock() * 10) % len(_SPINNER)]
        return [(f"{spin} {' · '.join(parts)}", DIM)]


def _fitted(spans: Iterable[Span], width: int) -> list[Span]:
    """A row's spans, cut where the row would be wider than it may be."""
    row: list[Span] = []
    for text, code in spans:
        fitting = cut(text, width)
        row.append((fitting, code))
        width -= cells(fitting)
        if width <= 0 or fitting != text:
            break
    return row


_CHANGES: Mapping[str, Callable[[LiveView, Event], None]] = {
    "run_start": LiveView._run_start,
    "turn_start": LiveView._turn_start,
    "model_request": LiveView._model_request,
    "message_start": LiveView._message_start,
    "message_update": LiveView._message_update,
    "message_end": LiveView._message_end,
    "tool_execution_start": LiveView._tool_execution_start,
    "tool_execution_update": LiveView._tool_execution_update,
    "tool_execution_end": LiveView._tool_execution_end,
    "run_end": LiveView._run_end,
}

_SILENT = frozenset(
    (
        "turn_start",
        "message_end",
        "model_request",
        "tool_execution_start",
        "tool_execution_update",
        "tool_execution_end",
    )
)
"""What this view shows in its own way, and not as the line that a pipe gets."""
