"""The pages of logs that break off, of long ones, and of a run as it happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runner.views.html import live_page, report

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
Press = Callable[..., None]
PiRun = Callable[..., Any]
Event = dict[str, Any]
USAGE = {"input": 900, "output": 100, "cache_read": 500, "cache_write": 0, "reasoning": 0}


def test_a_log_that_breaks_off_says_so(
    open_page: Open, triage: Path, pi_run: PiRun, tmp_path: Path
) -> None:
    lines = (triage / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    deltas = [at for at, line in enumerate(lines) if '"message_update"' in line]
    torn = tmp_path / "torn.jsonl"
    torn.write_text("".join(lines[: deltas[2]]) + lines[deltas[2]][:50], encoding="utf-8")
    assert pi_run("show", str(torn), "--html", str(tmp_path / "torn.html")).returncode == 0
    page = open_page(tmp_path / "torn.html")

    assert page.locator(".status").first.inner_text().strip() == "no end"
    assert "The log breaks off" in page.get_by_label("Summary").inner_text()
    answer = page.locator(".item.role-assistant").inner_text()
    assert "broken off" in answer
    assert "I look at" in answer
    assert page.locator(".icon-running").count() == 0
    assert page.locator(".bar-live").count() >= 1


def test_a_part_of_a_run_is_told_to_be_one(open_page: Open, pi_run: PiRun, tmp_path: Path) -> None:
    pi_run("show", "log.jsonl", "--tool", "search", "--html", str(tmp_path / "part.html"))
    page = open_page(tmp_path / "part.html")

    assert "Only a part of the run is shown: tool search" in page.locator(".notice").inner_text()
    assert page.locator(".item-call").count() == 5
    assert page.locator(".status").first.inner_text().strip() == "failed"


def test_no_event_at_all_is_a_page_too(open_page: Open, tmp_path: Path) -> None:
    path = tmp_path / "none.html"
    path.write_text("".join(report([])), encoding="utf-8")

    assert open_page(path).locator(".status").first.inner_text().strip() == "no end"


# --- long ones ------------------------------------------------------------------------------------


def numbered(events: Iterator[Event]) -> Iterator[Event]:
    for seq, event in enumerate(events):
        yield {"seq": seq, "t": seq / 50, **event}


def answer(number: int, calls: list[Event]) -> Event:
    text = {"type": "text", "text": f"Some words about step {number}. " * 10}
    message = {"id": f"m{number}", "role": "assistant", "content": [text, *calls], "usage": USAGE}
    return {"type": "message_end", "message": {**message, "model": "m", "provider": "p"}}


def calls_of(number: int, count: int) -> Iterator[Event]:
    names = [f"call_{number}_{index}" for index in range(count)]
    yield answer(number, [{"type": "tool_call", "id": name, "name": "look"} for name in names])
    for name in names:
        start = {"type": "tool_execution_start", "tool_call_id": name, "tool_name": "look"}
        yield {**start, "arguments": {"at": name}}
        result = {"content": [{"type": "text", "text": f"what is at {name}\n" * 20}]}
        yield {**start, "type": "tool_execution_end", "result": result, "is_error": False}


def many_turns(turns: int, calls: int) -> Iterator[Event]:
    yield {"type": "run_start", "spec": {"name": "long"}, "plan": {}}
    for turn in range(1, turns + 1):
        yield {"type": "turn_start", "turn": turn}
        yield {"type": "model_request", "model": "m", "provider": "p", "attempt": 1}
        yield from calls_of(turn, calls)
        yield {"type": "turn_end", "turn": turn, "stop_reason": "tool_use"}


@pytest.mark.parametrize(("turns", "calls"), [(1000, 3), (1, 5000)])
def test_ten_thousand_events_are_drawn_where_they_are_seen(
    open_page: Open, press: Press, tmp_path: Path, turns: int, calls: int
) -> None:
    events = list(numbered(many_turns(turns, calls)))
    assert len(events) >= 10_000
    path = tmp_path / "long.html"
    path.write_text("".join(report(events)), encoding="utf-8")
    page = open_page(path, height=800)
    last = f"call_{turns}_{calls - 1}"

    def elements() -> int:
        count: int = page.evaluate("document.querySelectorAll('*').length")
        return count

    assert elements() < 4000
    page.get_by_label("Search in the run").fill(f"what is at {last}")
    press(page, "Enter")
    assert page.locator(".toolbar [role=status]").inner_text() == "1 of 1"
    assert page.locator("mark").first.inner_text() == f"what is at {last}"
    press(page, "Escape", "g", "G")
    assert last in page.locator(".item:focus").inner_text()
    page.get_by_role("button", name="Unfold all").click()
    for _ in range(30):
        page.mouse.wheel(0, -900)
        press(page, "Shift")
    assert elements() < 15_000


# --- as it happens --------------------------------------------------------------------------------


def test_events_one_by_one_come_to_the_same_page(
    open_page: Open, report_file: Path, triage: Path, tmp_path: Path
) -> None:
    whole = open_page(report_file, height=6000)
    whole.get_by_role("button", name="Unfold all").click()
    path = tmp_path / "live.html"
    path.write_text(live_page("triage"), encoding="utf-8")
    page = open_page(path, height=500)
    assert page.locator(".status").first.inner_text().strip() == "waiting"

    log = (triage / "log.jsonl").read_text(encoding="utf-8")
    page.evaluate(
        """async (log) => {
            for (const [at, line] of log.split("\\n").filter(Boolean).entries()) {
                // What comes twice, as after a break, counts once.
                PiRun.shown.add(JSON.parse(line));
                PiRun.shown.add(JSON.parse(line));
                if (at % 3 === 0) await new Promise(requestAnimationFrame);
            }
            PiRun.shown.finish();
        }""",
        log,
    )
    page.set_viewport_size({"width": 1280, "height": 6000})
    page.get_by_role("button", name="Unfold all").click()

    for part in (".sections", ".outline", "header", ".summary"):
        assert page.locator(part).inner_text() == whole.locator(part).inner_text(), part


def test_an_answer_grows_as_it_is_written(open_page: Open, press: Press, tmp_path: Path) -> None:
    path = tmp_path / "live.html"
    path.write_text(live_page("story"), encoding="utf-8")
    page = open_page(path)
    delta = {"kind": "text", "index": 0}

    def send(*events: Event) -> None:
        page.evaluate("events => events.forEach(event => PiRun.shown.add(event))", list(events))
        press(page, "Shift")

    send(
        {"type": "run_start", "spec": {"name": "story"}},
        {"type": "turn_start", "turn": 1},
        {"type": "message_start", "message": {"id": "m1", "role": "assistant"}},
        {"type": "message_update", "message_id": "m1", "delta": {**delta, "text": "Once \x1b"}},
    )
    assert page.locator(".item .text").inner_text() == "Once ␛"
    assert page.locator(".status").first.inner_text().strip() == "running"
    element = page.locator(".item .text").element_handle()
    send({"type": "message_update", "message_id": "m1", "delta": {**delta, "text": " upon"}})
    # It is the same element: what was selected in it stays so.
    assert element.inner_text() == "Once ␛ upon"
    assert element.is_visible()


def test_the_pages_data_may_come_in_many_pieces(open_page: Open, tmp_path: Path) -> None:
    long = [{"type": "something_new", "text": "x" * 150_000, "number": n} for n in range(20)]
    start: list[Event] = [{"type": "run_start", "spec": {"name": "pieces"}}]
    page_text = "".join(report(numbered(iter([*start, *long]))))
    path = tmp_path / "pieces.html"
    path.write_text(page_text, encoding="utf-8")

    assert page_text.count('data-log="a"') > 4
    page = open_page(path, height=6000)
    assert page.locator(".item-other").count() == 20
    assert json.loads(page.locator("#page").text_content() or "")["name"] == "pieces"
