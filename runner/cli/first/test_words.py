"""Run with `pytest`: the spec's own expectations are tests too, beside what stands here."""

from pathlib import Path

SPEC = Path(__file__).with_name("words.yaml")


def test_the_tool_is_called_and_its_result_is_told(run_spec):
    result = run_spec(SPEC)

    assert result.status == "ok"
    assert result.text == "The text has 6 words."
    assert result.tool_calls == 1
