"""Answers in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from runner.json_text import line


def json_answer(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer with a value as JSON, as it would stand in a log: of any text there is."""
    return Response(
        line(value).encode(), status_code=status, headers=headers, media_type="application/json"
    )
