"""What a client is told where its request can't be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refusal(Exception):  # noqa: N818 - it is an answer, and no fault of the server
    """An answer other than what was asked for: ``{"error": {"code", "message"}}``.

    Args:
        status: The HTTP status.
        code: What a program can tell it by, such as ``no_such_run``.
        message: For a person: what is wrong, and what would be right.
        headers: More headers of the answer.
    """

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        """The answer's body, as JSON."""
        return {"error": {"code": self.code, "message": str(self)}}
