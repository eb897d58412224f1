"""Questions of a run for a person who does not sit at the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from runner.api.options import Ask, Asked

if TYPE_CHECKING:
    from runner.hooks.permission import Answer
    from runner.log.redact import LogRedactor


class Person:
    """Whom a run asks.

    Args:
        ask: Puts a question to the person.
        redactor: Takes the secrets out of what is asked.
    """

    def __init__(self, ask: Ask, redactor: LogRedactor | None) -> None:
        self._ask = ask
        self._redactor = redactor

    async def answer(self, question: str) -> str:
        """The answer to a model's question; empty where nobody gave one."""
        return await self._ask(Asked("question", self._redacted(question))) or ""

    def permission(
        self,
        nobody: Answer,
        preview: Callable[[Mapping[str, Any]], Awaitable[str | None]],
    ) -> Answer:
        """Decides of calls as the person says.

        Args:
            nobody: Decides where nobody gives an answer.
            preview: Tells what a call would change, where its tool can tell.
        """

        async def answer(call: Mapping[str, Any]) -> Any:
            asked = Asked(
                "permission",
                self._redacted(await preview(call) or ""),
                call["tool_name"],
                call["tool_call_id"],
                self._redacted(call["arguments"]),
            )
            said = await self._ask(asked)
            if said is None:
                return nobody(call)
            if said == "allow":
                return None
            return {"block": True, "reason": "the person who was asked said no"}

        return answer

    def _redacted(self, value: Any) -> Any:
        return value if self._redactor is None else self._redactor.value(value)
