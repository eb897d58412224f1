"""What all runs of a process pass before they ask the same model: together they keep to its rate.

A gate belongs to one event loop, one server, one model and one source of its key. Who waits is let
through in turn, a request of each run, so that a run with many agents keeps no other waiting.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast
from weakref import WeakKeyDictionary

from runner.engine.contract import ModelRequest, Provider, Stop, StreamEvent, UsageReport
from runner.engine.message import tokens_of
from runner.error import ProviderError
from runner.providers.rate import Rate, RateLimit

REFUSALS = frozenset(("rate_limit", "overloaded"))
"""The kinds of errors that mean that there were too many requests."""

Key = tuple[str | None, ...]
"""Tells gates apart: the provider, its address, the model, and where its key comes from."""

_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Key, Gate]] = WeakKeyDictionary()


class Gate:
    """Lets requests through at the rate of a model.

    Args:
        model: What it is called, for people.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.rate = Rate()
        self._waiting: OrderedDict[object, deque[asyncio.Future[None]]] = OrderedDict()
        """Of each run, in the order of their turns."""
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, run: object) -> float:
        """Wait for one's turn. Gives the time of the loop at which it came.

        Args:
            run: Who asks; turns go round among those that do.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting and self.rate.wait(now := loop.time()) <= 0:
            self.rate.send(now)
            return now
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(run, deque()).append(turn)
        self._let_through()
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.rate.failed()
            else:
                self._forget(run, turn)
            self._let_through()
            raise
        return loop.time()

    def answered(self, sent: float, tokens: int) -> None:
        """A request that was let through has its answer."""
        self.rate.answered(asyncio.get_running_loop().time(), sent, tokens)
        self._let_through()

    def failed(self) -> None:
        """One came to nothing, for another reason than its rate."""
        self.rate.failed()
        self._let_through()

    def refused(self, sent: float, retry_after: float | None) -> None:
        """One was refused, since there were too many."""
        self.rate.refused(asyncio.get_running_loop().time(), sent, retry_after)
        self._let_through()

    def _let_through(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._waiting:
            wait = self.rate.wait(now := loop.time())
            if wait > 0:
                if wait < math.inf:
                    self._timer = loop.call_later(wait, self._let_through)
                return
            if (turn := self._next()) is not None:
                self.rate.send(now)
                turn.set_result(None)

    def _next(self) -> asyncio.Future[None] | None:
        """The first of those whose run's turn it is; the run is the last of all then."""
        run, turns = self._waiting.popitem(last=False)
        turn = turns.popleft()
        if turns:
            self._waiting[run] = turns
        return None if turn.done() else turn

    def _forget(self, run: object, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(run)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[run]


class Gated:
    """A `Provider` whose requests pass a gate.

    Args:
        provider: What asks the model.
        key: Of its gate.
        limit: What the spec says of its rate.
        run: Whose requests they are.
    """

    def __init__(self, provider: Provider, key: Key, limit: RateLimit | None, run: object) -> None:
        self.name = provider.name
        self._provider = provider
        self._key = key
        self._limit = limit
        self._run = run
        self._gate: Gate | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """See `Provider.stream`."""
        gate = self._gate = self._gate or self._find(request.model)
        sent = await gate.enter(self._run)
        tokens, open_ = 0, True
        try:
            async with aclosing(cast("Any", self._provider.stream(request))) as stream:
                async for event in stream:
                    if type(event) is UsageReport:
                        tokens = tokens_of(event.usage)
                    elif type(event) is Stop:
                        open_ = False
                        gate.answered(sent, tokens)
                    yield event
        except ProviderError as error:
            if open_ and error.kind in REFUSALS:
                open_ = False
                gate.refused(sent, error.retry_after)
            raise
        finally:
            if open_:
                gate.failed()

    async def close(self) -> None:
        """See `Provider.close`."""
        await self._provider.close()

    def _find(self, model: str) -> Gate:
        gates = _gates.setdefault(asyncio.get_running_loop(), {})
        gate = gates.get(self._key)
        if gate is None:
            gate = gates[self._key] = Gate(f"{self.name}/{model}")
        if self._limit is not None:
            gate.rate.hold(self._limit)
        return gate


def slowed() -> list[tuple[str, float]]:
    """The models that refused requests in the running loop, and how many a second they get now."""
    loop = asyncio.get_running_loop()
    gates = _gates.get(loop, {}).values()
    return [(each.model, each.rate.allowed(loop.time())) for each in gates if each.rate.learned]
