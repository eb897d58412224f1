"""The end of a stream that may or may not come."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from runner.error import ProviderError
from runner.providers.sse import Event

TAIL_SECONDS = 2.0
"""How long more is waited for after the reason why an answer ended."""


async def more(batches: AsyncGenerator[list[Event], None]) -> list[Event]:
    """What comes of a stream after its answer is whole; nothing, if that takes long.

    The answer is there: no fault can take it away again.
    """
    with contextlib.suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(TAIL_SECONDS):
            return await anext(batches, [])
    return []
