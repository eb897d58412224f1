import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from runner.bundled import folder
from runner.error import UsageError
from runner.spec.load import load
from runner.spec.schema import generate, text

ROOT = Path(__file__).parents[2]
SPECS = [
    path
    for place in (ROOT / "tests", ROOT / "specs", ROOT.parent / "shared" / "cases")
    for path in sorted(place.rglob("*.y*ml"))
    if path.name != "case.yaml"
]


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(generate())
    return Draft202012Validator(generate())


def test_the_file_is_what_is_generated() -> None:
    written = (folder("schemas") / "spec.schema.json").read_text(encoding="utf-8")
    assert written == text(), "run python -m runner.spec.schema"


@pytest.mark.parametrize("path", SPECS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_spec_that_loads_is_valid(path: Path, validator: Draft202012Validator) -> None:
    try:
        load(path)
    except UsageError:
        return  # many are there to be refused
    # What editors make of the text: dates of YAML 1.1 are texts to them.
    data = json.loads(json.dumps(yaml.safe_load(path.read_text(encoding="utf-8")), default=str))
    assert [error.message for error in validator.iter_errors(data)] == []


HEAD: dict[str, Any] = {"model": {"script": []}}


@pytest.mark.parametrize(
    ("spec", "valid"),
    [
        (HEAD, True),
        ({}, False),
        ({"extends": "base.yaml"}, True),
        ({"extends": "base.yaml", "model": {"api_key": {"default": "none"}}}, True),
        ({"extends": "base.yaml", "promt": "a"}, False),
        ({**HEAD, "promt": "a"}, False),
        ({**HEAD, "x-promt": "a", "$schema": "b"}, True),
        ({**HEAD, "limits": {"x-a": 1, "turns": None}}, True),
        ({**HEAD, "limits": {"turns": 0}}, False),
        ({**HEAD, "limits": {"seconds": 0}}, False),
        ({**HEAD, "name": "My Spec"}, False),
        ({**HEAD, "description": 1.1}, True),
        ({**HEAD, "description": None}, True),
        ({**HEAD, "description": []}, False),
        ({**HEAD, "prompt": {"file": "a"}}, True),
        ({**HEAD, "prompt": {"fil": "a"}}, False),
        ({**HEAD, "inputs": {"a b": {}}}, False),
        ({**HEAD, "inputs": {"x-a b": 5, "a": {"type": "integer"}}}, True),
        ({**HEAD, "tools": ["a", {"use": "b"}, {"python": "c:d"}, {"agent": "e"}]}, True),
        ({**HEAD, "tools": [{"name": "a", "description": "b"}]}, False),
        ({**HEAD, "tools": [{"name": "a", "description": "b", "command": ["c"]}]}, True),
        ({**HEAD, "tools": [{"use": "a", "python": "b:c"}]}, False),
        ({**HEAD, "hooks": {"stop_after_turn": [{}]}}, False),
        ({**HEAD, "hooks": {"stop_after_turn": [{"when": "a", "python": "b:c"}]}}, False),
        ({**HEAD, "hooks": {"after_tool_call": [{"redact": {"pattern": "a", "with": "b"}}]}}, True),
        ({**HEAD, "messages": [{"role": "tool_result", "text": "a"}]}, False),
        ({**HEAD, "messages": [{"role": "user", "text": "a"}]}, True),
        ({**HEAD, "follow_ups": {"tasks": [{"id": "a"}]}}, False),
        ({"model": {"api_key": {"env": "A", "file": "b"}}}, False),
    ],
)
def test_what_is_valid(spec: Any, valid: bool, validator: Draft202012Validator) -> None:
    assert validator.is_valid(spec) is valid


def test_each_key_says_what_it_means() -> None:
    def keys(schema: Any) -> list[dict[str, Any]]:
        if isinstance(schema, list):
            return [found for item in schema for found in keys(item)]
        if not isinstance(schema, dict):
            return []
        own = schema.get("properties", {})
        own = own.values() if "additionalProperties" in schema else ()
        return [*own, *(found for item in schema.values() for found in keys(item))]

    found = keys(generate())
    assert len(found) > 200
    assert [key for key in found if not key.get("description")] == []
