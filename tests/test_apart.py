import asyncio
import contextvars
import sys
import threading
import time
from functools import partial
from typing import Any, NoReturn

import pytest

from runner import apart
from runner.apart import await_apart, await_in
from runner.thread import left_behind, run_in_loop

word = contextvars.ContextVar("word", default="none")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits long for a loop that is held up."""
    monkeypatch.setattr(apart, "PATIENCE", 0.05)


@pytest.fixture
def stubborn() -> Any:
    """A coroutine that never awaits, until its test is over."""
    over = threading.Event()

    async def spin() -> None:
        while not over.is_set():
            pass

    yield spin
    over.set()
    left_behind.clear()


def test_all_coroutines_share_a_loop_and_see_the_context() -> None:
    async def look() -> tuple[object, int, str]:
        await asyncio.sleep(0)
        return asyncio.get_running_loop(), threading.get_ident(), word.get()

    async def main() -> list[tuple[object, int, str]]:
        word.set("here")
        return await asyncio.gather(*(await_apart(look) for _ in range(4)))

    seen = run_in_loop(main())
    assert len(set(seen)) == 1
    assert seen[0][1] != threading.get_ident()
    assert seen[0][2] == "here"


def test_one_that_never_awaits_holds_up_no_other(stubborn: Any) -> None:
    async def answer() -> str:
        return "here"

    async def main() -> str:
        task = asyncio.ensure_future(await_apart(stubborn))
        await asyncio.sleep(0.01)
        answered = await await_apart(answer)
        task.cancel()
        return answered

    assert run_in_loop(main()) == "here"
    assert left_behind


def test_what_has_not_begun_never_does_once_it_is_cancelled(
    stubborn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "PATIENCE", 60)
    begun: list[str] = []

    async def begin() -> None:
        begun.append("it")

    async def main() -> None:
        first = asyncio.ensure_future(await_apart(stubborn))
        await asyncio.sleep(0.01)
        second = asyncio.ensure_future(await_apart(begin))
        await asyncio.sleep(0.01)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        first.cancel()

    run_in_loop(main())
    assert not begun


def test_a_cancellation_passes_and_may_be_answered() -> None:
    async def wait(*, answers: bool) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if not answers:
                raise
        return "so far"

    async def main() -> tuple[str, bool]:
        tasks = [
            asyncio.ensure_future(await_apart(partial(wait, answers=answers)))
            for answers in (True, False)
        ]
        await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return tasks[0].result(), tasks[1].cancelled()

    assert run_in_loop(main()) == ("so far", True)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("too hot"), "too hot"),
        (SystemExit(3), "it raised SystemExit: 3"),
        (KeyboardInterrupt(), "it raised KeyboardInterrupt"),
    ],
)
def test_whatever_is_raised_passes_and_ends_no_loop(error: BaseException, said: str) -> None:
    async def fail() -> NoReturn:
        raise error

    async def leave() -> None:
        asyncio.get_running_loop().call_soon(sys.exit)
        await asyncio.sleep(0.01)

    async def main() -> str:
        await await_apart(leave)
        with pytest.raises((ValueError, RuntimeError)) as raised:
            await await_apart(fail)
        return str(raised.value)

    assert run_in_loop(main()) == said


def test_what_belongs_to_the_runs_own_loop_is_done_there() -> None:
    async def main() -> bool:
        home = asyncio.get_running_loop()

        async def where() -> asyncio.AbstractEventLoop:
            return asyncio.get_running_loop()

        async def ask() -> asyncio.AbstractEventLoop:
            return await await_in(home, where)

        return await await_apart(ask) is await await_in(home, where) is home

    assert run_in_loop(main())


def test_what_is_left_in_a_loop_ends_with_the_run() -> None:
    ended: list[str] = []

    async def linger() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("it")

    async def begin() -> None:
        begin.task = asyncio.ensure_future(linger())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    run_in_loop(await_apart(begin))
    assert ended == ["it"]
    assert not left_behind


def test_a_thread_that_blocks_keeps_no_run_from_ending() -> None:
    go = threading.Event()

    async def block() -> None:
        asyncio.get_running_loop().run_in_executor(None, go.wait)

    begun = time.monotonic()
    run_in_loop(await_apart(block))
    assert time.monotonic() - begun < 30
    assert left_behind
    go.set()
    left_behind.clear()
