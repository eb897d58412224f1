"""The tools that every contender has."""

from __future__ import annotations

import asyncio
import time


async def echo(text: str) -> str:
    """Return the text."""
    return text


async def sleep(ms: int) -> str:
    """Wait, and let others work meanwhile."""
    await asyncio.sleep(ms / 1000)
    return "slept"


def block(ms: int) -> str:
    """Wait, and keep the thread."""
    time.sleep(ms / 1000)
    return "blocked"
