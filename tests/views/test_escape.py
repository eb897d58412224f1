import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.views.escape import one_line, uncommanding, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2J", "␛[2J"),
        ("bell\a, return\r, delete\x7f, null\0", "bell␇, return␍, delete␡, null␀"),
        ("\x9b2J", r"\x9b2J"),
        ("left\u202eright", r"left\u202eright"),
        ("lone \ud800", r"lone \ud800"),
        ("Größe ☃ 😀 漢字", "Größe ☃ 😀 漢字"),
    ],
)
def test_control_codes_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_what_is_shown_controls_nothing(text: str) -> None:
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e\ud800-\udfff]", visible(text)
    )


@pytest.mark.parametrize(
    "text",
    [
        "::error::pwned",
        "fine\n::add-mask::e",
        "  \t::warning file=a,line=1::pwned",
        "10%\r::error::pwned",
        "\u00a0::error::pwned",
        "now ##[error]pwned",
    ],
)
def test_no_command_of_actions_is_left(text: str) -> None:
    broken = uncommanding(text)

    assert not re.search(r"(^|\r)\s*::|##\[", broken, re.M)
    assert broken.replace("\\", "") == text


def test_colons_in_a_line_are_kept() -> None:
    assert uncommanding("std::vector, a::b") == "std::vector, a::b"


@given(st.text(alphabet=st.sampled_from(" \t\r\n:#[a\u2003"), max_size=30))
def test_no_text_commands(text: str) -> None:
    broken = uncommanding(text)

    # .NET, in which the runner is written, ends lines at CR and LF and trims all white space.
    assert not any(line.lstrip().startswith("::") for line in re.split(r"[\r\n]", broken))
    assert "##[" not in broken


def test_one_line_is_one_short_line() -> None:
    assert one_line("a\n  b\x1b") == "a b␛"
    assert one_line("x" * 10_000_000, 20) == "x" * 19 + "…"
    assert one_line("short" + " " * 1000 + "end", 20) == "short…"
