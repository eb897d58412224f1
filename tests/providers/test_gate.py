"""Many runs that ask one model, in a time that passes only while nothing else can happen."""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any, cast

import pytest

from runner.api.virtual_time import VirtualLoop
from runner.engine.contract import ModelRequest, Stop, StreamEvent, UsageReport
from runner.engine.message import no_usage
from runner.error import ProviderError
from runner.providers.gate import Gated, slowed
from runner.providers.rate import RateLimit

REQUEST = ModelRequest([], "", [], "m", None, 0)


def in_virtual_time(work: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


class Server:
    """Takes so many requests a second, and refuses what is beyond it with Retry-After.

    Args:
        limit: How many.
        kind: Whether seconds are counted from each request, or each begins at a whole one, or
            what was not used is there later.
        seconds: How long an answer takes.
        whole: Whether Retry-After has whole seconds.
    """

    name = "server"

    def __init__(
        self, limit: float, kind: str = "sliding", seconds: float = 0.05, whole: bool = True
    ) -> None:
        self.limit, self.kind, self.seconds, self.whole = limit, kind, seconds, whole
        self.taken: list[float] = []
        self.runs: list[object] = []
        self.refused = 0
        self._recent: deque[float] = deque()
        self._spare, self._at = limit, 0.0

    def refuses(self, now: float) -> float | None:
        """Seconds until a request would be taken; None for one that is."""
        if self.kind == "bucket":
            self._spare = min(self.limit, self._spare + (now - self._at) * self.limit)
            self._at = now
            if self._spare < 1:
                return (1 - self._spare) / self.limit
            self._spare -= 1
            return None
        begun = math.floor(now) if self.kind == "fixed" else now - 1
        while self._recent and self._recent[0] < begun:
            self._recent.popleft()
        if len(self._recent) >= self.limit:
            return begun + 1 - now if self.kind == "fixed" else self._recent[0] + 1 - now
        self._recent.append(now)
        return None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(0.001)
        if (wait := self.refuses(now)) is not None:
            self.refused += 1
            wait = max(1, math.ceil(wait)) if self.whole else wait
            raise ProviderError("slow down", "rate_limit", status=429, retry_after=wait)
        self.taken.append(now)
        await asyncio.sleep(self.seconds)
        yield UsageReport({**no_usage(), "input": 100})
        yield Stop("stop")

    async def close(self) -> None:
        pass


async def ask(server: Server, run: object = None, limit: RateLimit | None = None) -> None:
    """One request, tried again as the loop does it."""
    gated = Gated(cast("Any", server), ("server", None, "m", None), limit, run)
    while True:
        try:
            async for _ in gated.stream(REQUEST):
                pass
            return server.runs.append(run)
        except ProviderError as error:
            await asyncio.sleep(error.retry_after or 0)


async def batch(server: Server, runs: int, at_once: int, limit: RateLimit | None = None) -> None:
    """So many runs of three requests each."""
    waiting = iter(range(runs))

    async def work() -> None:
        for run in waiting:
            for _ in range(3):
                await ask(server, run, limit)

    await asyncio.gather(*(work() for _ in range(at_once)))


@pytest.mark.parametrize("kind", ["sliding", "fixed", "bucket"])
@pytest.mark.parametrize("seconds", [0.02, 3.0])
@pytest.mark.parametrize("whole", [True, False])
def test_a_batch_settles_at_the_rate_of_a_server_that_refuses(
    kind: str, seconds: float, whole: bool
) -> None:
    server = Server(10, kind, seconds, whole)
    in_virtual_time(batch(server, 600, 64))
    end = server.taken[-1]
    settled = [time for time in server.taken if end * 0.3 < time < end * 0.9]
    assert len(settled) / (end * 0.6) == pytest.approx(10, rel=0.1)
    assert server.refused < 0.05 * (len(server.taken) + server.refused)


def test_a_rate_that_the_spec_says_is_kept_to_from_the_first_request() -> None:
    server = Server(10, "bucket")
    in_virtual_time(batch(server, 100, 64, RateLimit(requests=10, per=1)))
    assert server.refused == 0
    assert server.taken[-1] == pytest.approx(30, rel=0.02)


def test_a_rate_of_tokens_is_kept_to() -> None:
    server = Server(1000)
    in_virtual_time(batch(server, 100, 64, RateLimit(tokens=1000, per=1)))
    assert server.taken[-1] == pytest.approx(30, rel=0.05)


def test_nothing_waits_for_a_server_that_refuses_nothing() -> None:
    server = Server(1e9, seconds=1.0)
    in_virtual_time(batch(server, 64, 64))
    assert server.taken[-1] < 5


def test_turns_go_round_among_the_runs() -> None:
    server = Server(1000, seconds=0.01)
    limit = RateLimit(requests=10, per=1)

    async def both() -> None:
        # One has twenty requests at once, of many agents, and the other one after the other.
        many = [ask(server, "many", limit) for _ in range(20)]

        async def few() -> None:
            for _ in range(5):
                await ask(server, "few", limit)

        await asyncio.gather(*many, few())

    in_virtual_time(both())
    assert server.runs[:12].count("few") >= 4


def test_the_models_that_are_slowed_down_can_be_told() -> None:
    async def work() -> list[tuple[str, float]]:
        server = Server(10)
        assert slowed() == []
        await batch(server, 20, 20)
        return slowed()

    [(model, rate)] = in_virtual_time(work())
    assert model == "server/m"
    assert rate == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.55])
def test_who_is_cancelled_leaves_no_place_behind(moment: float) -> None:
    server = Server(1000, seconds=1.0)
    limit = RateLimit(requests=2, per=1)

    async def work() -> float:
        tasks = [asyncio.ensure_future(ask(server, n, limit)) for n in range(4)]
        await asyncio.sleep(moment)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(10)
        before = asyncio.get_running_loop().time()
        await ask(server, "last", limit)
        return asyncio.get_running_loop().time() - before

    assert in_virtual_time(work()) == pytest.approx(1.0, abs=0.1)


def test_another_fault_lets_the_next_one_go_at_once() -> None:
    class Broken(Server):
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            raise ProviderError("no key", "auth", status=401)
            yield

    async def work() -> float:
        gated = Gated(cast("Any", Broken(1)), ("b", None, "m", None), None, None)
        for _ in range(100):
            with pytest.raises(ProviderError):
                async for _ in gated.stream(REQUEST):
                    pass
        return asyncio.get_running_loop().time()

    assert in_virtual_time(work()) == 0


def test_a_stream_that_is_left_early_gives_its_place_back() -> None:
    async def work() -> None:
        server = Server(1e9)
        gated = Gated(cast("Any", server), ("c", None, "m", None), None, None)
        for _ in range(100):
            async with aclosing(cast("Any", gated.stream(REQUEST))) as stream:
                async for _ in stream:
                    break

    in_virtual_time(work())


def test_each_loop_begins_anew() -> None:
    async def work() -> Any:
        await batch(Server(10), 20, 20)
        return slowed()

    async def after() -> Any:
        return slowed()

    assert in_virtual_time(work())
    assert in_virtual_time(after()) == []
