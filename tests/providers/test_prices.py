"""What models cost."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from runner.engine.contract import Price
from runner.providers import prices


@pytest.mark.parametrize(
    ("provider", "id", "expected"),
    [
        ("openai", "gpt-5-mini", Price(0.25, 2.0, 0.025, 0.25)),
        ("openai-responses", "gpt-5-mini-2025-08-07", Price(0.25, 2.0, 0.025, 0.25)),
        ("anthropic", "claude-haiku-4-5-20251001", Price(1.0, 5.0, 0.1, 1.25)),
        ("anthropic", "claude-3-5-haiku-latest", Price(0.8, 4.0, 0.08, 1.0)),
        ("google", "models/gemini-2.5-flash", Price(0.3, 2.5, 0.03, 0.3)),
        ("google", "gemini-3-pro-preview", Price(2.0, 12.0, 0.2, 2.0)),
        ("scripted", "anything", Price()),
        ("local", "smollm2", Price()),
    ],
)
def test_a_known_model_has_a_price(provider: str, id: str, expected: Price) -> None:
    assert prices.price(provider, id) == expected


@pytest.mark.parametrize(
    ("provider", "id"),
    [("openai", "gpt-5-maxi"), ("openai", "as_of"), ("anthropic", "gpt-5"), ("plug-in", "gpt-5")],
)
def test_an_unknown_model_has_none(provider: str, id: str) -> None:
    assert prices.price(provider, id) is None


def test_the_table_is_dated_and_its_prices_are_numbers() -> None:
    datetime.date.fromisoformat(prices.as_of())
    table = json.loads(Path(prices.__file__).with_name("prices.json").read_text("utf-8"))
    del table["as_of"]
    for models in table.values():
        assert len(models) >= 12
        for row in models.values():
            assert {"input", "output"} <= row.keys() <= {*Price.__dataclass_fields__}
            assert all(0 < value < 200 for value in row.values())
            assert row.get("cache_read", 0) < row["input"] <= row["output"]
