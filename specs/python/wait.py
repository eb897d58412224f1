"""A tool that takes its time."""

import asyncio


async def wait(seconds: float, answer: str) -> str:
    """Wait, then answer.

    Args:
        seconds: How long to wait.
        answer: What to say then.
    """
    await asyncio.sleep(seconds)
    return answer
