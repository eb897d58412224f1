"""The page of a run, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

Open = Callable[..., "Page"]
Press = Callable[..., None]


def events_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def item(page: Page, text: str) -> Locator:
    return page.locator(".item", has_text=text).first


def test_its_top_tells_how_the_run_ended(report: Page) -> None:
    top = report.locator("header").inner_text()

    assert report.title() == "triage · pi-run"
    assert report.locator("h1").inner_text() == "triage"
    assert report.locator(".status").first.inner_text().strip() == "failed"
    for figure in ("Turns\n11", "Tool calls\n8", "Exit code\n1", "Cost\n$"):
        assert figure in top
    summary = report.get_by_label("Summary").inner_text()
    assert "1 of 5 expectations not met" in summary
    assert "'no such words' is not in" in summary


def test_the_outline_has_each_task_agent_and_turn(report: Page) -> None:
    rows = report.get_by_role("treeitem").all_inner_texts()
    names = [row.split("\n")[0].strip() for row in rows]

    assert names[:5] == ["main", "Turn 1", "Turn 2", "Turn 3", "Turn 4"]
    assert names[5:7] == ["summary", "Turn 5"]
    assert names[-4:] == ["review #3", "reviewer#3", "Turn 1", "Turn 2"]


def test_what_happened_in_a_turn_stands_in_it(report: Page) -> None:
    turn = report.locator(".section-turn").first.inner_text()

    order = ["The parser hangs on 漢字 and 🙂.", "Retry", "Overloaded", "Assistant", "Thinking"]
    order += ["I look at the code", "query: parse", "query: lex", "No such file: nothing.py"]
    assert [turn.find(text) >= 0 for text in order] == [True] * len(order)
    assert sorted(order, key=turn.find) == order


def test_a_hooks_decision_stands_with_its_call(report: Page) -> None:
    call = item(report, "rm -rf build")

    assert call.locator(".tag-hook").inner_text() == "block"
    assert "No deleting here." in item(report, "before_tool_call").inner_text()
    assert report.locator(".tl-mark.mark-hook").count() == 1


def test_calls_unfold_and_show_all_there_is(report: Page) -> None:
    call = item(report, "path: parser.py")
    call.get_by_role("button").first.click()

    body = call.locator(".body")
    assert '"path": "parser.py"' in body.inner_text()
    assert "line 200 of parser.py 🙂" not in body.inner_text()
    body.get_by_role("button", name="Show all").click()
    assert "line 200 of parser.py 🙂" in body.inner_text()
    body.get_by_role("button", name="Show less").click()
    call.get_by_role("button").first.click()
    assert call.locator(".body").count() == 0


def test_images_are_shown(report: Page) -> None:
    call = item(report, "at: the page")
    call.get_by_role("button").first.click()

    image = call.locator("img")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    assert image.get_attribute("alt") == "Image, image/png, 72 B"


def test_bars_are_to_scale(report: Page, triage: Path) -> None:
    events = events_of(triage)
    times: dict[str, list[float]] = {}
    for event in events:
        if event.get("tool_name") == "search" and "agent" not in event:
            times.setdefault(event["tool_call_id"], []).append(event["t"])
    scale = report.locator(".tl-bars").bounding_box()
    bars = [bar.bounding_box() for bar in report.locator(".bar-tool").all()]
    assert scale
    drawn = sorted((bar["x"] - scale["x"], bar["width"]) for bar in bars if bar)
    seconds = events[-1]["t"] - events[0]["t"]

    for start, *_, end in times.values():
        left = (start - events[0]["t"]) / seconds * scale["width"]
        width = max(3, (end - start) / seconds * scale["width"])
        assert any(abs(left - x) < 2 and abs(width - w) < 2 for x, w in drawn), (left, width)


def test_bars_of_calls_at_the_same_time_are_below_each_other(report: Page) -> None:
    boxes = [bar.bounding_box() for bar in report.locator(".bar-tool:text('search')").all()]

    first, second = (box for box in boxes[:2] if box)
    assert first["x"] < second["x"] + second["width"]
    assert second["x"] < first["x"] + first["width"]
    assert first["y"] != second["y"]


def test_a_click_on_a_bar_goes_to_its_call(report: Page) -> None:
    report.locator(".bar-tool:text('search')").nth(1).click()

    assert "query: lex" in report.locator(".item:focus").inner_text()


def test_tokens_and_cost_by_turn_are_a_picture(report: Page) -> None:
    chart = report.get_by_label("Tokens and cost by turn")

    columns = chart.locator(".chart").first.locator(".column")
    assert columns.count() == 11
    assert columns.first.get_attribute("title") == "Turn 1: 1,200 input, 310 output"
    heights = [box["height"] for i in columns.locator("i").all()[:2] if (box := i.bounding_box())]
    assert heights[0] / heights[1] == pytest.approx(310 / 1200, rel=0.1)
    assert chart.get_by_role("img").nth(1).get_attribute("aria-label") == (
        "Cost by turn, at most $0.000920 a turn"
    )
    columns.nth(1).click()
    assert report.locator(".outline-row.is-current").inner_text().startswith("Turn 2")


@pytest.mark.parametrize(
    ("query", "hits"), [("QUERY: parse", 0), ("parse", 5), ("漢字", 6), ("no such file", 1)]
)
def test_a_search_counts_its_hits(report: Page, query: str, hits: int, press: Press) -> None:
    press(report, "/")
    report.keyboard.type(query)
    press(report, "Enter")

    told = report.locator(".toolbar [role=status]")
    assert told.inner_text() == (f"1 of {hits}" if hits else "no hit")


def test_a_search_goes_from_hit_to_hit(report: Page, press: Press) -> None:
    press(report, "/")
    report.keyboard.type("no such file")
    press(report, "Enter")
    press(report, "Escape")
    report.get_by_label("Search in the run").fill("line 150 of")
    press(report, "Enter")

    # It lies in what was folded, and cut.
    mark = report.locator("mark")
    assert mark.inner_text() == "line 150 of"
    assert mark.evaluate("m => m.getBoundingClientRect().bottom < innerHeight")


def test_filters_leave_out_the_rest(report: Page, press: Press) -> None:
    report.get_by_role("button", name="Errors").click()
    press(report, "Shift")
    shown = report.locator(".item:visible").all_inner_texts()
    assert len(shown) == 3
    assert "No such file: nothing.py" in shown[0]

    report.get_by_role("button", name="Errors").click()
    report.get_by_label("Tool", exact=True).select_option("search")
    report.get_by_label("Agent", exact=True).select_option("main/reviewer#2")
    press(report, "Shift")
    assert len(report.locator(".item:visible").all()) == 1
    assert report.get_by_role("treeitem").count() == 3

    report.get_by_role("button", name="Checks").click()
    assert report.get_by_text("Nothing here is like that.").is_visible()


def test_it_is_led_by_the_keyboard(report: Page, press: Press) -> None:
    def focused() -> str:
        return report.locator(".item:focus").inner_text()

    press(report, "e")
    assert "broken" in focused()
    press(report, "Enter")
    assert '"why": "nothing.py"' in focused()
    press(report, "Enter")
    assert '"why": "nothing.py"' not in focused()
    press(report, "j")
    assert "look" in focused()
    press(report, "k")
    assert "broken" in focused()
    press(report, "]")
    assert report.locator(":focus").inner_text() == "Turn 2"
    press(report, "G")
    assert "Expected" in focused()
    press(report, "g")
    assert "Queued" in focused()


def test_the_timeline_is_led_by_the_keyboard(report: Page, press: Press) -> None:
    told = report.locator(".timeline [aria-live]")
    press(report, "l")
    for _ in range(12):
        press(report, "ArrowDown")
        if told.inner_text().startswith("tool search"):
            break
    press(report, "+", "+")
    assert told.inner_text().startswith("tool search")
    assert report.locator(".bar.is-selected").count() == 1
    press(report, "0")
    press(report, "Enter")
    assert "search" in report.locator(".item:focus").inner_text()


def test_the_outline_is_led_by_the_keyboard(report: Page, press: Press) -> None:
    press(report, "o")
    press(report, "Home")
    press(report, "ArrowLeft")
    assert report.get_by_role("treeitem").nth(1).inner_text().startswith("summary")
    assert report.locator(".section-turn:visible").first.inner_text().startswith("Turn 5")
    press(report, "ArrowRight")
    press(report, "End")
    press(report, "Enter")
    assert report.locator(":focus").inner_text() == "Turn 2"


def test_its_keys_are_told(report: Page, press: Press) -> None:
    press(report, "?")

    dialog = report.get_by_role("dialog")
    assert "next and previous failure" in dialog.inner_text()
    press(report, "Escape")
    assert not dialog.is_visible()


def test_it_is_dark_or_light(open_page: Open, report_file: Path, press: Press) -> None:
    page = open_page(report_file, scheme="dark")

    def background() -> str:
        color: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return color

    dark = background()
    press(page, "t")
    assert background() != dark
    page.reload()
    page.wait_for_selector("[data-ready]")
    assert background() != dark


def test_it_is_no_wider_than_a_phone(open_page: Open, report_file: Path) -> None:
    page = open_page(report_file, width=360)
    page.get_by_role("button", name="Unfold all").click()

    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_role("button", name="Outline").click()
    page.get_by_role("treeitem").nth(1).click()
    assert not page.get_by_role("tree").is_visible()
    assert page.locator(":focus").inner_text() == "Turn 1"


def test_on_paper_all_is_there(report: Page) -> None:
    report.evaluate("dispatchEvent(new Event('beforeprint'))")
    report.emulate_media(media="print")

    text = report.locator("#main").inner_text()
    assert "c.py is fine." in text
    assert '"why": "nothing.py"' in text
    assert not report.locator(".toolbar").is_visible()
    assert report.pdf().startswith(b"%PDF")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_no_serious_fault(
    open_page: Open,
    report_file: Path,
    serious_faults: Callable[[Page], list[str]],
    scheme: str,
    width: int,
) -> None:
    page = open_page(report_file, width=width, height=700, scheme=scheme)
    page.get_by_role("button", name="Unfold all").click()

    assert serious_faults(page) == []
