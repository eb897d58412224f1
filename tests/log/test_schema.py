from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runner import bundled
from runner.log.schema import FILE, schema, schema_text

Event = dict[str, Any]
VALIDATOR = Draft202012Validator(schema())


def test_the_file_is_what_is_generated() -> None:
    file = bundled.folder("schemas") / FILE
    assert file.read_text(encoding="utf-8") == schema_text(), "run python -m runner.log.schema"


def test_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema())


def test_holds_for_each_line_of_a_log(events: Callable[..., list[Event]]) -> None:
    for event in events():
        VALIDATOR.validate(event)
        VALIDATOR.validate({key: value for key, value in event.items() if key != "t"})


def test_tells_what_fields_mean() -> None:
    turn = schema()["$defs"]["turn_end"]
    assert turn["description"] == "After the last result of a turn joined the history."
    assert turn["properties"]["message_id"]["description"].startswith("The answer's")
    assert turn["properties"]["seq"]["description"].startswith("Counts the lines")
    assert "`" in schema()["$defs"]["task_start"]["properties"]["item"]["description"]


@pytest.mark.parametrize(
    "event",
    [
        {"seq": 1, "type": "shiny_event", "shine": [1]},
        {"seq": 1, "t": 0.1, "type": "agent_start", "mood": "good"},
        {
            "seq": 2,
            "type": "message_end",
            "message": {"id": "m1", "role": "user", "content": [{"type": "odour"}]},
        },
    ],
)
def test_takes_what_it_does_not_know(event: Event) -> None:
    VALIDATOR.validate(event)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "agent_start"},
        {"seq": 1},
        {"seq": "1", "type": "agent_start"},
        {"seq": 1, "type": "turn_start"},
        {"seq": 1, "type": "turn_start", "turn": "1"},
        {"seq": 2, "type": "message_end", "message": {"id": "m1", "role": "user", "content": "x"}},
    ],
)
def test_refuses_what_is_wrong(event: Event) -> None:
    assert not VALIDATOR.is_valid(event)
