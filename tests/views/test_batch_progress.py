"""How far a batch is, as a bar and as lines, by a clock that is only told the time."""

import io

import pytest

from runner.views import batch_progress
from runner.views.batch_progress import MAX_FAILURES, LiveProgress, PlainProgress, Progress


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(batch_progress, "time", clock)
    return clock


def begun(clock: Clock, **values: int | float) -> Progress:
    progress = Progress(total=100, started=clock.now)
    for name, value in values.items():
        setattr(progress, name, value)
    return progress


def test_rate_and_time_left_are_of_the_last_half_minute(clock: Clock) -> None:
    progress = begun(clock)
    assert progress.rate() is progress.left() is None
    for second in range(60):
        clock.now += 1
        progress.done += 1 if second < 30 else 2
        progress.rate()
    assert progress.done == 90
    assert progress.rate() == pytest.approx(2, rel=0.05)
    assert progress.left() == pytest.approx(5, rel=0.05)


def test_what_was_kept_says_nothing_of_the_rate(clock: Clock) -> None:
    progress = begun(clock, done=50, kept=50)
    clock.now += 10
    assert progress.rate() is None
    progress.done += 10
    assert progress.rate() == pytest.approx(1)


def test_words_say_all_that_is_known_and_no_more(clock: Clock) -> None:
    assert begun(clock).words() == []
    progress = begun(clock, done=20, kept=10, failed=2, cost_usd=0.25, tokens=1000)
    progress.slowed = [("openai/gpt-5", 9.583)]
    clock.now += 5
    assert progress.words() == [
        "2 failed",
        "10 kept",
        "2.0 runs/s",
        "$0.2500",
        "openai/gpt-5 slowed to 9.58 requests/s",
        "40.0 s left",
    ]


def test_lines_come_now_and_then_and_the_first_failures_by_name(clock: Clock) -> None:
    said: list[str] = []
    progress = begun(clock)
    with PlainProgress(said.append, progress) as view:
        for _ in range(11):
            progress.done += 1
            view.step()
            clock.now += 1
    assert [line.partition(" runs/s")[0] for line in said] == [
        "6 of 100 runs, 1.2",
        "11 of 100 runs, 1.0",
    ]
    said.clear()
    for number in range(100):
        view.failure(f"row {number}\nfailed")
    assert len(said) == MAX_FAILURES + 1
    assert len(said[0].splitlines()) == 1
    assert said[-1] == "what else fails is only counted; the report tells all of it"


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("done", [0, 1, 99, 100])
def test_a_bar_is_as_full_as_the_batch_and_fits(clock: Clock, width: int, done: int) -> None:
    progress = begun(clock, done=done, failed=done // 2, cost_usd=1.0)
    clock.now += 10
    [line] = LiveProgress(io.StringIO(), progress, color=False)._lines(width, 10)
    text = "".join(part for part, _ in line)
    assert len(text) <= max(width, 20)
    full, room = len(line[0][0]), len(line[0][0]) + len(line[1][0])
    assert full == room * done // 100
    assert f"{done}/100" in text
