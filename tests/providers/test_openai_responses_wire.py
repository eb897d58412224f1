"""Responses against the recorded quirks of servers, one model turn each."""

from __future__ import annotations

import asyncio
from typing import Any

WIRE_FORMAT = "openai-responses"


def test_a_turn_comes_out_as_the_case_expects(wire_case: dict[str, Any], quirks: Any) -> None:
    assert asyncio.run(quirks.differences(wire_case, "openai-responses")) == []
