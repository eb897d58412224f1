"""What Gemini models want to be asked, which changed from one to the next.

Source: the Gemini API guides "Thinking", "Gemini 3" and "Thought signatures".
"""

from __future__ import annotations

import re
from typing import Any

from runner.providers.settings import Reasoning

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Stands for the signature of a call that this model didn't make."""

_ID = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_BUDGETS = {"off": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 24_576}
_SMALLEST_OF_PRO = 128


def version(model: str) -> tuple[int, int] | None:
    """A Gemini model's version, such as ``(2, 5)``; None for any other model."""
    match = _ID.search(model)
    return (int(match[1]), int(match[2] or 0)) if match else None


def thinking_config(model: str, reasoning: Reasoning | None) -> dict[str, Any] | None:
    """What asks for so much thinking; None where nothing is asked for, or the model can't think."""
    known = version(model)
    if reasoning is None or (known and known < (2, 5)):
        return None
    shown = reasoning != "off"
    if known and known < (3, 0):
        budget = _BUDGETS[reasoning]
        if "pro" in model:
            budget = max(budget, _SMALLEST_OF_PRO)  # it can't be kept from it
        return {"includeThoughts": shown, "thinkingBudget": budget}
    return {"includeThoughts": shown, "thinkingLevel": _level(model, known, reasoning)}


def _level(model: str, known: tuple[int, int] | None, reasoning: Reasoning) -> str:
    """The level nearest to what is asked for; no such model can be kept from thinking at all."""
    if reasoning in ("off", "minimal"):
        return "minimal" if "flash" in model else "low"
    if reasoning == "medium" and known == (3, 0) and "pro" in model:
        return "high"
    return reasoning


def wants_signatures(model: str) -> bool:
    """Whether the first call of each answer must be signed."""
    return (version(model) or (0, 0)) >= (3, 0)


def can_call_and_fit_a_schema(model: str) -> bool:
    """Whether the answer can be held to a schema in a request that has tools."""
    return (version(model) or (0, 0)) >= (3, 0)
