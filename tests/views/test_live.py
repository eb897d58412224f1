import io
import re
from collections.abc import Callable
from typing import Any

import pytest

from runner.views.live import LiveView
from runner.views.screen import cells

Events = list[dict[str, Any]]
UpTo = Callable[[str, int], Events]


class Terminal(io.StringIO):
    """What a terminal got; `text` is what of it scrolled by, without its control codes."""

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


@pytest.fixture(autouse=True)
def _a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def drawn(events: Events, *, width: int = 80, height: int = 24, now: float = 3.0) -> list[str]:
    """What is drawn below, after these events."""
    times = iter([0.0])
    view = LiveView(Terminal(), clock=lambda: next(times, now))
    for event in events:
        view.event(event)
    return ["".join(text for text, _ in row) for row in view.drawing(width, height)]


def scrolled(events: Events, **options: Any) -> str:
    terminal = Terminal()
    with LiveView(terminal, **options) as view:
        for event in events:
            view.event(event)
    return terminal.text


def test_text_is_drawn_as_it_streams(up_to: UpTo) -> None:
    assert drawn(up_to("message_update", 1))[0] == "Hm."
    lines = drawn(up_to("message_update", 3))
    assert lines[:2] == ["I read", "␛[2J them."]
    assert lines[-1].endswith("turn 1 · 3.00 s")


def test_running_tools_are_drawn_with_their_time_and_progress(up_to: UpTo) -> None:
    lines = drawn(up_to("tool_execution_update", 1))

    assert lines[:2] == [
        "  ▸ read_file 0.00 s half",
        '  ▸ read_file 0.00 s {"path": "漢字.txt"}',
    ]


def test_the_status_line_counts_tokens_and_cost(events: Events) -> None:
    assert "turn 2 · 2,400 tokens · $0.2000 · 3.00 s" in drawn(events)[-1]


def test_the_status_line_tells_who_is_waited_for(up_to: UpTo) -> None:
    assert "waiting for openai/gpt-5-mini" in drawn(up_to("model_request", 1))[-1]


@pytest.mark.parametrize("width", [10, 20, 40, 200])
@pytest.mark.parametrize("height", [1, 2, 5, 24])
def test_it_fits_any_terminal(up_to: UpTo, width: int, height: int) -> None:
    words = {"kind": "text", "index": 0, "text": "漢字 and wörds 😀 " * 400}
    events = [
        *up_to("tool_execution_update", 1),
        {"type": "message_start", "message": {"id": "m9", "role": "assistant"}},
        {"type": "message_update", "delta": words},
    ]

    lines = drawn(events, width=width, height=height)

    assert len(lines) <= height
    assert all(cells(line) <= width for line in lines)


def test_what_is_finished_scrolls_by(events: Events) -> None:
    text = scrolled(events)

    assert "I read\n␛[2J them." in text.replace("\r", "")
    assert '✓ read_file 1 min 15 s {"path": "a.txt"}' in text
    assert "✗ read_file" in text
    assert "No such file at all" in text
    assert "retry in 0.50 s: overloaded" in text
    assert "limit: 2 turns" in text


def test_the_final_text_is_left_to_the_result(events: Events) -> None:
    with_it = scrolled(events, prints_result=True)
    without = scrolled(events, prints_result=False)

    assert with_it.count("All read.") == without.count("All read.") + 1


def test_no_control_code_of_a_model_reaches_the_terminal(events: Events) -> None:
    terminal = Terminal()
    with LiveView(terminal, verbose=True) as view:
        for event in events:
            view.event(event)

    assert "\x1b[2J" not in terminal.getvalue()


def test_no_colour_where_none_is_wanted(events: Events) -> None:
    def codes(color: bool) -> set[str]:
        terminal = Terminal()
        with LiveView(terminal, color=color) as view:
            for event in events:
                view.event(event)
        return set(re.findall(r"\x1b\[([0-9;]*)m", terminal.getvalue()))

    colours = re.compile(r"(^|;)(3[0-8]|4[0-8]|9[0-7])($|;)")
    assert any(colours.search(code) for code in codes(color=True))
    assert not any(colours.search(code) for code in codes(color=False))


def test_the_cursor_is_shown_again_after_an_error() -> None:
    terminal = Terminal()

    with pytest.raises(RuntimeError), LiveView(terminal):
        raise RuntimeError

    hidden, shown = (terminal.getvalue().rfind(f"\x1b[?25{mode}") for mode in "lh")
    assert 0 <= hidden < shown


def test_a_question_can_be_asked_in_between(events: Events) -> None:
    terminal = Terminal()
    with LiveView(terminal) as view:
        view.event(events[0])
        view.pause()
        asked = len(terminal.getvalue())
        view.event(events[3])
        view.resume()

    assert "\x1b[?25h" in terminal.getvalue()[:asked]
