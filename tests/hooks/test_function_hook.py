import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from runner.hooks.function import function_hook


def ask(function: Callable[..., Any], *given: Any) -> Any:
    return asyncio.run(function_hook(function, "hook")(*given))


def test_it_gets_a_copy_that_it_may_change() -> None:
    def spoil(messages: Any) -> Any:
        messages[0]["content"][0]["text"] = "changed"
        return messages

    history = [{"content": [{"text": "said"}]}]
    assert ask(spoil, history) == [{"content": [{"text": "changed"}]}]
    assert history == [{"content": [{"text": "said"}]}]


def test_one_that_blocks_keeps_nobody_waiting() -> None:
    together = threading.Barrier(4, timeout=10)

    async def main() -> list[Any]:
        hook = function_hook(lambda call: together.wait() >= 0 and call, "hook")
        return await asyncio.gather(*(hook({"n": n}) for n in range(4)))

    assert asyncio.run(main()) == [{"n": n} for n in range(4)]


def test_async_functions_and_objects_are_awaited() -> None:
    class Guard:
        async def __call__(self, call: Any) -> Any:
            return {"block": call["n"]}

    async def guard(call: Any) -> Any:
        return {"block": call["n"]}

    assert ask(guard, {"n": 1}) == {"block": 1}
    assert ask(Guard(), {"n": 1}) == {"block": 1}


def test_one_that_is_told_nothing_may_take_nothing() -> None:
    def none() -> Any:
        return ["a"]

    def one(given: Any) -> Any:
        return [given]

    def any_number(*given: Any, **named: Any) -> Any:
        return [given, named]

    assert ask(none) == ["a"]
    assert ask(one) == [{}]
    assert ask(any_number) == [(), {}]


def test_what_it_raises_passes_and_ends_no_loop() -> None:
    def broken(call: Any) -> None:
        raise RuntimeError("hook is broken")

    def leave(call: Any) -> None:
        sys.exit(3)

    async def leave_later(call: Any) -> None:
        sys.exit(3)

    with pytest.raises(RuntimeError, match="hook is broken"):
        ask(broken, {})
    for function in (leave, leave_later):
        with pytest.raises(RuntimeError, match="SystemExit: 3"):
            ask(function, {})
