from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runner.error import UsageError
from runner.spec.inputs import bind, parameters
from runner.spec.model import Input

DECLARED = {
    "issue": Input(description="What it is about"),
    "depth": Input(type="integer", default=2, enum=[1, 2, 3]),
    "ratio": Input(type="number", default=0.5),
    "deep": Input(type="boolean", default=False),
    "files": Input(type="array", default=[]),
    "options": Input(type="object", default={}),
    "token": Input(default="t", enum=["t", "u"], secret=True),
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("issue", "", ""),
        ("issue", " 010\n", " 010\n"),
        ("issue", "{{ 7 * 7 }}", "{{ 7 * 7 }}"),
        ("depth", "3", 3),
        ("depth", " 01 ", 1),
        ("ratio", "3", 3),
        ("ratio", "-.5e1", -5.0),
        ("deep", "true", True),
        ("files", '["a", {"b": 1}]', ["a", {"b": 1}]),
        ("options", '{"a": null}', {"a": None}),
    ],
)
def test_texts_are_read_by_their_type(name: str, text: str, value: Any) -> None:
    bound = bind(DECLARED, {"issue": "i"}, {name: text})
    assert repr(bound[name]) == repr(value)


def test_a_value_or_the_default() -> None:
    assert bind(DECLARED, {"issue": "i", "depth": 3, "files": [1]}, {"token": "u"}) == {
        "issue": "i",
        "depth": 3,
        "ratio": 0.5,
        "deep": False,
        "files": [1],
        "options": {},
        "token": "u",
    }


@pytest.mark.parametrize(
    ("values", "texts", "message"),
    [
        ({}, {"isue": "a"}, 'no input is called "isue"; did you mean "issue"?'),
        ({}, {}, 'the input "issue" is missing; give it with -i issue=VALUE'),
        ({}, {"depth": "deep"}, 'the input "depth": an integer is needed, not "deep"'),
        ({}, {"depth": "1.5"}, 'the input "depth": an integer is needed, not 1.5'),
        ({}, {"depth": ""}, 'the input "depth": an integer is needed, not ""'),
        ({}, {"depth": "4"}, 'the input "depth": one of 1, 2, 3 is needed, not 4'),
        ({"depth": True}, {}, 'the input "depth": an integer is needed, not true'),
        ({"depth": "1"}, {}, 'the input "depth": an integer is needed, not "1"'),
        ({"issue": 5}, {}, 'the input "issue": a string is needed, not 5'),
        ({"issue": None}, {}, 'the input "issue": a string is needed, not null'),
        ({}, {"ratio": ".nan"}, 'the input "ratio": a number that JSON has is needed, not nan'),
        ({}, {"ratio": "9" * 5000}, 'the input "ratio": a number is needed, not "999'),
        ({}, {"deep": "yes"}, 'the input "deep": a boolean (true or false) is needed, not "yes"'),
        ({}, {"files": "a, b"}, 'the input "files": an array is needed, not "a, b"'),
        ({}, {"files": "{}"}, 'the input "files": an array is needed, not {}'),
        ({}, {"files": "[" * 100_000}, 'the input "files": an array is needed, not "[[['),
        ({}, {"options": "[]"}, 'the input "options": an object is needed, not []'),
        ({}, {"files": "[" * 500 + "]" * 500}, 'the input "files": it is nested more than 100 '),
        ({}, {"token": "hush"}, 'the input "token": a value is needed that its enum has'),
        ({"token": 4711}, {}, 'the input "token": a string is needed'),
        ({"a\nb": 1}, {}, 'no input is called "a\\nb"; known: '),
    ],
)
def test_what_does_not_fit(values: dict[str, Any], texts: dict[str, str], message: str) -> None:
    given = {} if "missing" in message else {"issue": "i"}
    with pytest.raises(UsageError) as caught:
        bind(DECLARED, {**given, **values}, texts)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert "hush" not in str(caught.value)
    assert "4711" not in str(caught.value)


def test_all_that_is_wrong_comes_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        bind(DECLARED, {"isue": 1}, {"depth": "x"})
    assert len(str(caught.value).splitlines()) == 3


def test_as_the_parameters_of_a_tool() -> None:
    schema = parameters(DECLARED)
    Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["issue"]
    assert schema["properties"]["depth"] == {"type": "integer", "enum": [1, 2, 3], "default": 2}
    assert schema["properties"]["issue"] == {"type": "string", "description": "What it is about"}
    assert list(Draft202012Validator(schema).iter_errors({"issue": "a", "isue": 1}))
