"""What models cost, where a spec doesn't say it: a small table with the day on which it held.

Sources: the public price lists of OpenAI, Anthropic and Google, for short prompts at the standard
rate. A model that isn't in it has no known price, and its runs no cost.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

from runner.engine.contract import Price

_TABLES = {
    "anthropic": "anthropic",
    "google": "google",
    "openai": "openai",
    "openai-responses": "openai",
}
_FREE = frozenset(("scripted", "local"))
# A dated or renamed edition of a model costs what the model costs.
_EDITION = re.compile(
    r"(-20\d{6}|-20\d\d-\d\d-\d\d|-latest|-preview(-\d\d-\d\d(\d\d)?)?|-00\d|-0)$"
)


def price(provider: str, id: str) -> Price | None:
    """The price of a model, or None where it isn't known.

    Args:
        provider: As it stands in a spec.
        id: The model's id; that of an edition, such as ``gpt-5-2025-08-07``, has its model's price.
    """
    if provider in _FREE:
        return Price()
    table = _prices().get(_TABLES.get(provider, ""), {})
    id = id.removeprefix("models/")
    row = table.get(id) or table.get(_EDITION.sub("", id))
    if row is None:
        return None
    read = row["input"]
    # What isn't said to cost less or more is billed like any other token that is read.
    return Price(read, row["output"], row.get("cache_read", read), row.get("cache_write", read))


def as_of() -> str:
    """The day on which the prices held, as ``YYYY-MM-DD``."""
    day: str = _prices()["as_of"]
    return day


@functools.cache
def _prices() -> dict[str, Any]:
    text = Path(__file__).with_name("prices.json").read_text("utf-8")
    table: dict[str, Any] = json.loads(text)
    return table
