"""How fast a model is asked, by a clock that is only told the time."""

import itertools
import math

import pytest

from runner.providers.rate import FIRST_PLATEAU, FIRST_WINDOW, MARGIN, PLATEAU, Rate, RateLimit


def sent(rate: Rate, seconds: float, step: float = 0.001) -> list[float]:
    """When requests are sent that are answered at once, by who always has one more."""
    times = []
    for tick in range(round(seconds / step)):
        now = tick * step
        while rate.wait(now) <= 0:
            rate.send(now)
            times.append(now)
            rate.answered(now, now, 0)
            if len(times) > 10 * seconds / step:
                return times
    return times


def test_requests_are_spaced_evenly() -> None:
    rate = Rate()
    rate.hold(RateLimit(requests=600, per=60))
    times = sent(rate, 10)
    assert len(times) == 100
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps) == pytest.approx(0.1, abs=MARGIN + 0.002)


def test_a_late_turn_does_not_slow_down_those_after_it() -> None:
    rate = Rate()
    rate.hold(RateLimit(requests=10, per=1))
    now, count = 0.0, 0
    while now < 10:
        wait = rate.wait(now)
        now += wait + 0.005 if wait > 0 else 0  # a timer that comes late each time
        rate.send(now)
        rate.answered(now, now, 0)
        count += 1
    assert count == pytest.approx(100, abs=2)


def test_of_several_limits_the_least_counts() -> None:
    rate = Rate()
    rate.hold(RateLimit(requests=600, per=60))
    rate.hold(RateLimit(requests=5, per=1))
    rate.hold(RateLimit(tokens=1000))
    assert rate.allowed(0) == 5


def test_the_first_request_tells_what_one_takes_and_the_others_keep_to_it() -> None:
    rate = Rate()
    rate.hold(RateLimit(tokens=1000, per=1))
    rate.send(0)
    assert rate.wait(0) == math.inf
    rate.answered(1, 0, 500)
    assert rate.wait(1) == 0  # what it took is paid for by then
    rate.send(1)
    assert rate.wait(1) == pytest.approx(0.5)
    rate.answered(1.1, 1, 900)  # more than was reserved
    assert rate.wait(1.1) == pytest.approx(0.8)


def test_a_pause_lasts_as_long_as_the_server_says() -> None:
    rate = Rate()
    for _ in range(3):
        rate.send(0)
    for _ in range(3):
        rate.refused(0.1, 0, 7)
    assert rate.wait(0.1) == pytest.approx(7 + MARGIN)


def test_without_a_word_of_the_server_the_pause_doubles_until_something_is_taken() -> None:
    rate, now = Rate(), 0.0
    pauses = []
    for _ in range(4):
        rate.send(now)
        rate.refused(now, now, None)
        pauses.append(rate.wait(now) - MARGIN)
        now += rate.wait(now)
    rate.send(now)
    rate.answered(now, now, 0)
    rate.send(now + 100)
    rate.refused(now + 100, now + 100, None)
    pauses.append(rate.wait(now + 100) - MARGIN)
    assert pauses == pytest.approx([0.5, 1, 2, 4, 0.5])


def test_what_was_taken_until_the_next_is_taken_is_the_rate() -> None:
    rate = Rate()
    for _ in range(16):
        rate.send(0)
    for _ in range(6):
        rate.refused(0.01, 0, 0.97)
    again = 0.01 + 0.97 + MARGIN
    assert rate.allowed(again) == pytest.approx(0.95 * 10)
    assert rate.allowed(again + FIRST_PLATEAU) == pytest.approx(10)
    assert rate.allowed(again + 4 * FIRST_PLATEAU) > 20  # the limit may have gone


def test_a_refusal_after_a_long_time_lowers_the_rate_by_little() -> None:
    rate, now = Rate(), 0.0
    rate.hold(RateLimit(requests=10, per=1))
    while now < 40:
        now += rate.wait(now)
        rate.send(now)
        rate.answered(now, now, 0)
    rate.send(now)
    rate.refused(now, now, 1)
    again = now + 1 + MARGIN
    assert 9.3 < rate.allowed(again) < 9.6
    assert rate.allowed(again + PLATEAU / 2) < rate.allowed(again + PLATEAU) < 10


def test_a_single_refusal_of_a_run_that_asks_now_and_then_only_makes_it_wait() -> None:
    rate = Rate()
    for turn in range(5):
        rate.send(10.0 * turn)
        rate.answered(10.0 * turn + 1, 10.0 * turn, 0)
    rate.send(50)
    rate.refused(50, 50, 2)
    assert not rate.learned
    assert rate.wait(52 + MARGIN) == 0


def test_what_is_under_way_is_halved_and_grows_again() -> None:
    rate = Rate()
    assert rate.room(0) == FIRST_WINDOW
    for _ in range(8):
        rate.send(0)
    for _ in range(4):
        rate.answered(2, 0, 0)
    assert rate.room(2) == FIRST_WINDOW + 4
    rate.refused(2, 0, 1)
    rate.refused(2, 0, 1)  # of the same moment: no second reason
    assert rate.room(2) < FIRST_WINDOW / 2
    before = rate.room(2)
    rate.answered(4, 0, 0)
    assert before < rate.room(4) <= before + 1


def test_a_rate_of_a_spec_is_never_passed_whatever_is_learned() -> None:
    rate = Rate()
    rate.hold(RateLimit(requests=20, per=1))
    for turn in range(10):
        rate.send(turn / 20)
    rate.refused(0.5, 0.45, 1)
    assert rate.learned
    assert rate.allowed(10_000) == 20
