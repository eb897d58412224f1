"""Fan-outs that were resumed, in canonical form and compared: each line stands with its agent."""

import random
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.log.canonical import canonical
from runner.log.compare import compare

Event = dict[str, Any]
ITEMS = 4


def of(kind: str, agent: str | None = None, /, **fields: Any) -> Event:
    return {**({"agent": agent} if agent else {}), "type": kind, **fields}


def stamped(events: list[Event]) -> list[Event]:
    return [{"seq": n, "t": 0.0, **event} for n, event in enumerate(events)]


def item(n: int, *, again: bool = False) -> list[Event]:
    """The lines of an item; ``again``: those that an agent adds which had to end before."""
    agent = f"main/rev#{n}"
    turn = 2 if again else 1
    return [
        of("task_start", task_id="each", iteration=n),
        of("agent_start", agent),
        of("turn_start", agent, turn=turn),
        of("tool_execution_start", agent, tool_call_id="c", tool_name="t", arguments={}),
        of("tool_execution_end", agent, tool_call_id="c", tool_name="t", result={}, is_error=False),
        of("turn_end", agent, turn=turn),
        of("agent_end", agent),
        of("task_end", task_id="each", iteration=n),
    ]


def mixed(rng: random.Random, streams: list[list[Event]], most: int) -> list[Event]:
    """Streams that race each other, at most so many at once; they begin in their order."""
    waiting = [list(one) for one in streams]
    running: list[list[Event]] = []
    out: list[Event] = []
    while waiting or running:
        while waiting and len(running) < most:
            running.append(waiting.pop(0))
            out.append(running[-1].pop(0))
        one = rng.choice(running)
        out.append(one.pop(0))
        running = [each for each in running if each]
    return out


def frame(events: list[Event]) -> list[Event]:
    return [of("run_start", plan={}), of("agent_start"), *events, of("agent_end"), of("run_end")]


WHOLE = frame(list(chain.from_iterable(item(n + 1) for n in range(ITEMS))))


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3), st.data())
def test_what_was_killed_and_went_on_differs_by_the_line_that_says_so(
    rng: random.Random, most: int, data: st.DataObject
) -> None:
    events = frame(mixed(rng, [item(n + 1) for n in range(ITEMS)], most))
    place = data.draw(st.integers(1, len(events) - 1))
    resumed = [*events[:place], of("run_resume", reason="killed"), *events[place:]]

    found = list(compare(stamped(WHOLE), stamped(resumed)))

    assert [difference.path for difference in found] == ["run_resume"]
    once = list(canonical(stamped(resumed)))
    assert list(canonical(once)) == once


@settings(deadline=None)
@given(
    st.randoms(use_true_random=False),
    st.integers(1, 3),
    st.sets(st.integers(1, ITEMS), min_size=1),
)
def test_agents_that_are_taken_up_again_stand_in_their_own_items(
    rng: random.Random, most: int, again: set[int]
) -> None:
    first = [of("run_start", plan={}), of("agent_start")]
    first += chain.from_iterable(item(n + 1) for n in range(ITEMS))
    first += [of("agent_end"), of("run_end"), of("run_resume", reason="limit"), of("agent_start")]
    later = [item(n, again=True) for n in sorted(again)]
    end = [of("agent_end"), of("run_end")]
    in_order = [*first, *chain.from_iterable(later), *end]
    raced = [*first, *mixed(rng, later, most), *end]

    assert list(canonical(stamped(raced))) == list(canonical(stamped(in_order)))


@pytest.mark.parametrize("late", ["main/rev#2", "main/rev#4"])
def test_agents_that_had_not_begun_stand_in_the_items_that_are_left(late: str) -> None:
    """Items 1 and 3 were done, 2 is taken up again and 4 begins, in either order."""
    first = [of("run_start", plan={}), of("agent_start"), *item(1), *item(2), *item(3)]
    first += [of("agent_end"), of("run_end"), of("run_resume", reason="limit"), of("agent_start")]
    two, four = item(2, again=True), item(4)
    racing = [
        two[0],
        four[0],
        *(two[1:] + four[1:] if late == "main/rev#4" else four[1:] + two[1:]),
    ]

    shown = list(canonical(stamped([*first, *racing, of("agent_end"), of("run_end")])))

    wanted = list(canonical(stamped([*first, *two, *four, of("agent_end"), of("run_end")])))
    assert shown == wanted
