"""What Claude models want to be asked, which changed from one to the next.

Source: the Claude API reference, "Models overview", "Extended thinking", "Adaptive thinking",
"Effort" and "Structured outputs". Models of other makers that speak Messages know the older form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runner.providers.settings import Reasoning

_ID = re.compile(r"claude-(?:([a-z]+)-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)")
# Tokens of thinking; a request must allow more than that for the whole answer.
_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 10_000, "high": 24_000}
_SMALLEST_BUDGET = 1024
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
_OTHERS_MOST = 8192

Version = tuple[int, int]


def version(model: str) -> Version | None:
    """A Claude model's version, such as ``(4, 5)``; None for any other model."""
    match = _ID.search(model)
    return (int(match[2]), int(match[3] or 0)) if match else None


def most_output(model: str) -> int:
    """How many tokens an answer may have where nobody says it; a request has to say it.

    As many as a long answer with its thinking needs, and no more than the model can write.
    """
    known = version(model)
    if known is None or (3, 5) <= known < (3, 7):
        return _OTHERS_MOST
    return 4096 if known < (3, 5) else 32_000


def thinking(
    model: str, reasoning: Reasoning | None, most: int, most_is_asked: bool
) -> Mapping[str, Any]:
    """The fields of a request that ask for so much thinking.

    Args:
        model: Its id.
        reasoning: What a spec says; None asks for nothing.
        most: The limit of the answer's tokens, thinking included.
        most_is_asked: Whether a person set that limit; else it may be raised.
    """
    if reasoning is None:
        return {}
    known = version(model)
    if known and known >= (4, 6):
        return _adaptive(model, known, reasoning)
    if reasoning == "off":
        return {"thinking": {"type": "disabled"}}
    budget = _BUDGETS[reasoning]
    if most_is_asked:
        budget = max(_SMALLEST_BUDGET, min(budget, most // 2))
    else:
        most = max(most, budget + _OTHERS_MOST)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": most}


def _adaptive(model: str, known: Version, reasoning: Reasoning) -> Mapping[str, Any]:
    """The newer form: the model itself decides how much, by an effort."""
    if reasoning != "off":
        return {
            # Without this, newer models keep what they think to themselves.
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": _EFFORTS[reasoning]},
        }
    if known < (5, 0):
        return {}  # they think only when asked to, and refuse to be told not to
    if known > (5, 0) or "fable" in model or "mythos" in model:
        return {"output_config": {"effort": "low"}}  # these can't be kept from it
    return {"thinking": {"type": "disabled"}}


def can_be_held_to_a_schema(model: str) -> bool:
    """Whether the answer's text can be made to fit a JSON Schema."""
    known = version(model)
    return known is not None and known >= (4, 5)
