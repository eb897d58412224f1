"""Run with `pytest`. The model of words.yaml plays a script, so this is the same each time.

words.yaml is a test as it is, since it expects something. This is one in Python, for all else.
"""


def test_the_tool_is_called_and_its_result_is_told(run_spec):
    result = run_spec("words.yaml")

    assert result.status == "ok"
    assert result.text == "The text has 6 words."
    assert result.tool_calls == 1
