import re

from hypothesis import given
from hypothesis import strategies as st

from runner.captured import Captured


@given(st.lists(st.binary(max_size=30)), st.integers(2, 200))
def test_the_beginning_and_the_end_are_kept_however_it_comes(parts: list[bytes], size: int) -> None:
    captured = Captured(size)
    for part in parts:
        captured.add(part)
    said = b"".join(parts)
    half = size // 2
    assert captured.total == len(said)
    assert captured.left_out == max(len(said) - 2 * half, 0)
    if not captured.left_out:
        assert captured.text == said.decode(errors="replace")


def test_a_cut_leaves_no_half_of_a_character() -> None:
    for size in range(2, 40):
        captured = Captured(size)
        for byte in ("ä☃😀" * 20).encode():
            captured.add(bytes((byte,)))
        assert "\ufffd" not in captured.text
        assert re.search(r"\[… \d+ bytes are left out here …\]", captured.text)
