import asyncio
import contextvars
import sys
import threading
from typing import NoReturn

import pytest

from runner.thread import await_safely, call_in_thread

word = contextvars.ContextVar("word", default="none")


def test_calls_that_block_all_begin_at_once_and_see_the_context() -> None:
    together = threading.Barrier(32, timeout=10)

    def meet() -> str:
        together.wait()
        return word.get()

    async def main() -> list[str]:
        word.set("here")
        return await asyncio.gather(*(call_in_thread(meet, "meet") for _ in range(32)))

    assert asyncio.run(main()) == ["here"] * 32


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("too hot"), "too hot"),
        (StopIteration(), "it raised StopIteration"),
        (SystemExit(3), "it raised SystemExit: 3"),
        (KeyboardInterrupt(), "it raised KeyboardInterrupt"),
    ],
)
def test_whatever_is_raised_passes_and_ends_no_loop(error: BaseException, said: str) -> None:
    def fail() -> NoReturn:
        raise error

    async def main() -> str:
        with pytest.raises((ValueError, RuntimeError)) as raised:
            await call_in_thread(fail, "fail")
        return str(raised.value)

    assert asyncio.run(main()) == said


def test_a_coroutine_that_exits_ends_no_loop() -> None:
    async def leave() -> None:
        sys.exit("enough")

    async def main() -> str:
        with pytest.raises(RuntimeError) as raised:
            await await_safely(leave())
        return str(raised.value)

    assert asyncio.run(main()) == "it raised SystemExit: enough"


def test_what_is_cancelled_is_left_behind_and_ends_unseen() -> None:
    go = threading.Event()
    threads: list[threading.Thread] = []

    def wait() -> None:
        threads.append(threading.current_thread())
        go.wait()
        raise ValueError("nobody hears this")

    async def main() -> None:
        task = asyncio.create_task(call_in_thread(wait, "wait"))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert threads[0].daemon
    go.set()
    threads[0].join()


def test_one_that_learns_of_its_cancellation_may_still_answer() -> None:
    go = threading.Event()

    def wait() -> str:
        go.wait()
        return "so far"

    async def main() -> str:
        task = asyncio.create_task(call_in_thread(wait, "wait", patient=True))
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.sleep(0.02)
        go.set()
        return await task

    assert asyncio.run(main()) == "so far"
