"""Run with `pytest`. The model of words.yaml plays a script, so this is the same each time."""

from pathlib import Path

from runner import run_spec

SPEC = Path(__file__).with_name("words.yaml")


def test_the_tool_is_called_and_its_result_is_told():
    result = run_spec(SPEC)

    assert result.status == "ok"
    assert result.text == "The text has 6 words."
    assert result.tool_calls == 1
