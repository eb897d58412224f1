import io
import os
import sys
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.views.screen import BOLD, Screen, Span, cells, cut, wrap


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("plain", 5),
        ("漢字", 4),
        ("e\u0301", 1),
        ("😀", 2),
        ("❤\ufe0f", 2),
        ("a\u200bb", 2),
    ],
)
def test_columns_of_a_text(text: str, columns: int) -> None:
    assert cells(text) == columns


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("short", 5, "short"), ("longer", 5, "long…"), ("漢字漢字", 5, "漢字…"), ("漢字", 3, "漢…")],
)
def test_a_cut_ends_with_an_ellipsis(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


@given(st.text(), st.integers(0, 20))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [""]),
        ("one two three", ["one two", "three"]),
        ("one\n\ntwo", ["one", "", "two"]),
        ("unbreakable words", ["unbreaka", "ble", "words"]),
        ("漢字漢字漢字", ["漢字漢字", "漢字"]),
        ("exactly8 then", ["exactly8", "then"]),
        ("a\tb", ["a   b"]),
        ("a  b", ["a  b"]),
    ],
)
def test_text_is_broken_between_words(text: str, rows: list[str]) -> None:
    assert wrap(text, 8) == rows


@given(st.text(alphabet=st.sampled_from("ab 漢\n😀"), max_size=60), st.integers(2, 12))
def test_wrapped_rows_fit_and_lose_nothing(text: str, width: int) -> None:
    rows = wrap(text, width)

    assert all(cells(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "").replace("\n", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def rows(count: int) -> list[list[Span]]:
    return [[(f"row {number}", BOLD)] for number in range(count)]


def test_a_drawing_is_replaced_by_the_next() -> None:
    terminal = Terminal()
    drawings = iter([rows(2), rows(1)])
    screen = Screen(terminal, False, lambda width, height: next(drawings, []))
    screen.start()
    with screen.lock:
        screen.draw()
        first = len(terminal.getvalue())
        screen.draw()
    screen.stop()

    assert terminal.getvalue()[first:].startswith("\r\x1b[2A\x1b[J\x1b[?7lrow 0\n\x1b[?7h")
    assert terminal.getvalue().endswith("\x1b[?25h")


@pytest.mark.parametrize(("color", "shown"), [(True, "\x1b[1mx\x1b[0m"), (False, "x")])
def test_looks_are_left_out_where_none_are_wanted(color: bool, shown: str) -> None:
    terminal = Terminal()
    Screen(terminal, color, lambda width, height: []).print(("x", BOLD), ("", BOLD), ("y", ""))

    assert f"{shown}y\n" in terminal.getvalue()


def test_it_is_drawn_again_and_again() -> None:
    drawn: list[tuple[int, int]] = []

    def lines(width: int, height: int) -> Sequence[Sequence[Span]]:
        drawn.append((width, height))
        return []

    screen = Screen(Terminal(), True, lines)
    screen.start()
    for _ in range(1000):
        if len(drawn) >= 2:
            break
        time.sleep(0.01)
    screen.stop()
    seen = len(drawn)
    screen.draw()

    assert 2 <= seen == len(drawn)


def test_prints_of_other_code_scroll_by_in_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, terminal)
    screen = Screen(terminal, True, lambda width, height: rows(1))
    screen.start()
    print("half", end="")
    assert "half" not in terminal.getvalue()
    print(" and whole")
    assert "half and whole\n" in terminal.getvalue()
    print("begun", end="")
    screen.stop()
    print("after")

    assert terminal.getvalue().partition("begun\n")[2].endswith("after\n")
    assert sys.stdout is terminal


def test_other_code_still_finds_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = os.openpty()
    with os.fdopen(follower, "w", encoding="utf-8") as terminal:
        for name in ("stdout", "stderr"):
            monkeypatch.setattr(sys, name, terminal)
        screen = Screen(terminal, True, lambda width, height: [])
        screen.start()
        found = (sys.stdout.isatty(), sys.stdout.fileno(), sys.stdout.encoding)
        sys.stdout.writelines(["a\n", "b\n"])
        sys.stdout.buffer.write(b"")
        screen.stop()

    os.close(leader)
    assert found == (True, follower, "utf-8")
