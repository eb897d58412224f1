"""An answer as it comes: what was sent in its format, as the loop's own events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable
from typing import Protocol

from runner.engine.contract import StreamEvent
from runner.error import ProviderError
from runner.providers.http import settle
from runner.providers.sse import Event

TAIL_SECONDS = 2.0
"""How long more is waited for after the reason why an answer ended."""


class Answer(Protocol):
    """The state of one answer of a format."""

    @property
    def finish(self) -> str:
        """Why the answer ended, once it is known; what follows may tell of its usage."""
        ...

    @property
    def done(self) -> bool:
        """Whether the mark came that nothing follows. False for ever in a format without one."""
        ...

    def read(self, name: str, data: str) -> Iterable[StreamEvent]:
        """What one event of the stream says; nothing, after the mark."""
        ...

    def end(self) -> Iterable[StreamEvent]:
        """What is left to say when the stream is over.

        Raises:
            ProviderError: where the answer is not whole.
        """
        ...


async def exchange(
    batches: AsyncGenerator[list[Event], None], answer: Answer
) -> AsyncGenerator[StreamEvent, None]:
    """Give an answer's events as they come, and let go of its connection.

    Args:
        batches: Of `post`.
        answer: A new one, that has read nothing.
    """
    async with contextlib.aclosing(batches):
        async for batch in batches:
            for name, data in batch:
                for event in answer.read(name, data):
                    yield event
            if answer.finish or answer.done:
                break
        while not answer.done and (rest := await _more(batches)):
            for name, data in rest:
                for event in answer.read(name, data):
                    yield event
        if answer.done:
            await settle(batches)
    for event in answer.end():
        yield event


async def _more(batches: AsyncGenerator[list[Event], None]) -> list[Event]:
    """What comes of a stream after its answer is whole; nothing, if that takes long.

    The answer is there: no fault can take it away again.
    """
    with contextlib.suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(TAIL_SECONDS):
            return await anext(batches, [])
    return []
