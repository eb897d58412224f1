"""The pages of two logs, and of a log that a replay parted from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]
Press = Callable[..., None]
PiRun = Callable[..., Any]


@pytest.fixture(scope="session")
def changed(triage: Path) -> str:
    """Another spec, by its name in the folder."""
    text = (triage / "triage.yaml").read_text(encoding="utf-8")
    other = text.replace("It hangs on wide letters.", "It hangs on narrow letters 🙃.")
    other = other.replace("text: Anything else?", "text: Anything more?")
    (triage / "changed.yaml").write_text(other, encoding="utf-8")
    return "changed.yaml"


@pytest.fixture(scope="session")
def diff_file(triage: Path, pi_run: PiRun, changed: str) -> Path:
    """The page of two runs that differ."""
    pi_run("run", changed, "--log", "changed.jsonl", "--quiet")
    done = pi_run("diff", "log.jsonl", "changed.jsonl", "--html", "diff.html")
    assert done.returncode == 1, done.stderr
    return triage / "diff.html"


def test_two_logs_by_turn_and_path(open_page: Open, diff_file: Path) -> None:
    page = open_page(diff_file)

    assert page.locator(".status").first.inner_text().strip().endswith("differences")
    table = page.get_by_role("table").inner_text()
    assert "log.jsonl" in table
    assert "changed.jsonl" in table
    turn = page.locator(".group", has=page.get_by_role("heading", name="Turn 5", exact=True))
    lines = turn.locator(".diff").first.locator(".diff-line").all_inner_texts()
    assert lines == ["-\nIt hangs on wide letters.", "+\nIt hangs on narrow letters 🙃."]
    marked = turn.locator(".diff").first.locator("b").all_inner_texts()
    assert marked == ["wide letters", "narrow letters 🙃"]


def test_a_turn_of_both_side_by_side(open_page: Open, diff_file: Path) -> None:
    page = open_page(diff_file)
    turn = page.locator(".group", has=page.get_by_role("heading", name="Turn 5", exact=True))
    turn.get_by_role("button", name="The turn in both").click()

    sides = turn.locator(".both .items").all()
    assert "wide letters." in sides[0].inner_text()
    assert "narrow letters 🙃." in sides[1].inner_text()
    boxes = [box for side in sides if (box := side.bounding_box())]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]


def test_a_comparison_is_led_by_the_keyboard(
    open_page: Open, press: Press, diff_file: Path
) -> None:
    page = open_page(diff_file)

    press(page, "j", "j")
    button = page.locator(":focus")
    assert button.get_attribute("aria-expanded") == "true"
    press(page, "Enter")
    assert button.get_attribute("aria-expanded") == "false"
    press(page, "?")
    assert "next and previous difference" in page.get_by_role("dialog").inner_text()


def test_the_same_is_told_to_be_the_same(open_page: Open, triage: Path, pi_run: PiRun) -> None:
    done = pi_run("diff", "log.jsonl", "log.jsonl", "--html", "same.html")
    assert done.returncode == 0

    page = open_page(triage / "same.html")
    assert page.locator(".status").first.inner_text().strip() == "same"
    assert "They are the same" in page.locator("#main").inner_text()


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 390)])
def test_axe_finds_no_serious_fault(
    open_page: Open,
    diff_file: Path,
    serious_faults: Callable[[Page], list[str]],
    scheme: str,
    width: int,
) -> None:
    page = open_page(diff_file, width=width, height=700, scheme=scheme)
    page.get_by_role("button", name="The turn in both").first.click()

    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert serious_faults(page) == []


def test_where_a_replay_parted(open_page: Open, triage: Path, pi_run: PiRun, changed: str) -> None:
    done = pi_run("replay", "log.jsonl", "--spec", changed, "--html", "parted.html")
    assert done.returncode == 1
    assert "differs at seq" in done.stdout

    page = open_page(triage / "parted.html")
    page.get_by_role("button", name="A replay parted from this log").click()
    told = page.locator(".item-parting:focus")
    assert "message_queued.message.content[0].text" in told.inner_text()
    assert "Likely cause" in told.inner_text()
    assert told.locator("b").all_inner_texts() == ["else", "more"]
    assert page.locator(".mark-parting").count() == 1


def test_a_replay_that_came_out_as_recorded(open_page: Open, triage: Path, pi_run: PiRun) -> None:
    done = pi_run("replay", "log.jsonl", "--html", "replayed.html", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")

    page = open_page(triage / "replayed.html")
    assert "came out as recorded" in page.locator(".notice").inner_text()
    assert page.locator(".item-parting").count() == 0
