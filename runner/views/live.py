"""A run on a terminal, as it happens: streamed text, running tools, and a line that counts.

What is finished is printed and scrolls away; what is going on stands below it and is drawn anew
ten times a second. Events only change the state, so that a fast stream costs no drawing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from runner.engine.contract import Price
from runner.engine.message import add_usage, no_usage, text_of
from runner.views.escape import one_line, visible
from runner.views.text import (
    Event,
    TextView,
    arguments,
    dollars,
    duration,
    plural,
    tokens,
)

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
        self._console = Console(
            file=file, no_color=not color, highlight=False, markup=False, emoji=False
        )
        self._lines = TextView(self._print_line, verbose=verbose)
        self._verbose = verbose
        self._prints_result = prints_result
        self._clock = clock
        self._lock = threading.RLock()
        self._started = clock()
        self._answers: dict[str, _Answer] = {}
        self._calls: dict[tuple[str, str], _Call] = {}
        self._turn = 0
        self._usage = no_usage()
        self._prices: dict[tuple[str, str | None], Price] = {}
        self._cost = 0.0
        self._held = ""
        self._waiting = ""
        self._spinner = Spinner("dots")
        self._live = Live(
            console=self._console,
            get_renderable=lambda: self,
            refresh_per_second=10,
            transient=True,
            redirect_stdout=True,
            redirect_stderr=True,
        )

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def pause(self) -> None:
        """Leave the terminal alone, so that a person can be asked something."""
        self._live.stop()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._live.start()

    # --- events ---------------------------------------------------------------------------------

    def event(self, event: Event) -> None:
        """Show an event. Types that it doesn't know are left out."""
        with self._lock:
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
            self._print("".join(thinking), "dim italic")
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
        mark, style = ("✗", "red") if event["is_error"] else ("✓", "green")
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"  {mark} ", style)
        if event.get("agent"):
            line.append(f"{event['agent']} ", "dim")
        line.append(one_line(event["tool_name"], 64), "bold")
        line.append(f" {call.arguments if call else ''}")
        if event.get("seconds") is not None:
            line.append(f" {duration(event['seconds'])}", "dim")
        self._console.print(line)
        text = text_of(event["result"]["content"])
        if self._verbose:
            self._print(text, "dim")
        elif event["is_error"]:
            self._print("    " + one_line(text), "red")

    def _run_end(self, event: Event) -> None:
        if self._prints_result or self._held != event["text"]:
            self._print_held()

    def _print_held(self) -> None:
        text, self._held = self._held, ""
        self._print(text)

    def _print(self, text: str, style: str = "") -> None:
        if text := visible(text).rstrip():
            self._console.print(Text(text, style))

    def _print_line(self, line: str) -> None:
        self._console.print(Text(line, "dim"))

    # --- drawing --------------------------------------------------------------------------------

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            # Room is left for the line that the cursor stands on.
            room = max(2, options.max_height - 2)
            lines = [
                line for part in self._parts() for line in part.wrap(console, options.max_width)
            ]
            status = self._status()
        yield from lines[-(room - 1) :]
        yield status

    def _parts(self) -> Iterable[Text]:
        for answer in self._answers.values():
            if answer.thinking and not answer.text:
                yield Text(visible(answer.thinking), "dim italic")
            if answer.text:
                yield Text(visible(answer.text))
            for name in answer.calls.values():
                yield Text(f"  calling {name} …", "dim")
        for call in self._calls.values():
            yield self._running(call)

    def _running(self, call: _Call) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append("  ▸ ", "cyan")
        if call.agent:
            line.append(f"{call.agent} ", "dim")
        line.append(call.name, "bold")
        line.append(f" {duration(self._clock() - call.started)}", "dim")
        line.append(f" {call.update or call.arguments}")
        return line

    def _status(self) -> Text:
        parts = [f"turn {self._turn}"] if self._turn else []
        if used := tokens(self._usage):
            parts.append(plural(used, "token"))
        if self._cost:
            parts.append(dollars(self._cost))
        parts.append(duration(self._clock() - self._started))
        if self._waiting:
            parts.append(f"waiting for {self._waiting}")
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append_text(Text(str(self._spinner.render(self._clock()))))
        line.append(f" {' · '.join(parts)}", "dim")
        return line


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
