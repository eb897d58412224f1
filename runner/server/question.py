"""What a run asks those who watch it, until one of them answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from runner.api import Asked
from runner.server.refusal import Refusal

ANSWERS = ("allow", "deny")
"""What a permission can be answered with."""


class Questions:
    """The open questions of one run.

    Args:
        changed: Is called when a question comes or goes.
        within: Seconds that a question waits for its answer.
    """

    def __init__(self, changed: Callable[[], None], within: float) -> None:
        self._changed = changed
        self._within = within
        self._count = 0
        self._open: dict[str, tuple[Asked, asyncio.Future[str]]] = {}
        self.version = 0
        """Grows with each change."""

    async def ask(self, asked: Asked) -> str | None:
        """Put a question to whoever watches; None where nobody answers in time."""
        self._count += 1
        name = f"q{self._count}"
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._open[name] = (asked, answer)
        self._tell()
        try:
            async with asyncio.timeout(self._within):
                return await answer
        except TimeoutError:
            return None
        finally:
            del self._open[name]
            self._tell()

    def answer(self, name: str, text: str) -> None:
        """Answer a question.

        Raises:
            Refusal: where there is none of that name, it is answered, or that is no answer to it.
        """
        asked, answer = self._open.get(name, (None, None))
        if asked is None or answer is None or answer.done():
            raise Refusal(
                404, "no_such_question", "there is no such question; someone may have answered it"
            )
        if asked.kind == "permission" and text not in ANSWERS:
            raise Refusal(422, "invalid_answer", 'a permission is answered with "allow" or "deny"')
        answer.set_result(text)

    def as_json(self) -> list[dict[str, Any]]:
        """All that are open, the first one asked first."""
        return [
            {"id": name, "kind": asked.kind, "text": asked.text}
            | ({"tool_name": asked.tool_name} if asked.tool_name is not None else {})
            | ({"tool_call_id": asked.tool_call_id} if asked.tool_call_id is not None else {})
            | ({"arguments": asked.arguments} if asked.kind == "permission" else {})
            for name, (asked, answer) in self._open.items()
            if not answer.done()
        ]

    def _tell(self) -> None:
        self.version += 1
        self._changed()
