import asyncio
import dataclasses
import enum
import math
import uuid
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runner.engine.contract import Cancellation, Tool, ToolResult, Update
from runner.error import UsageError
from runner.schema.pattern import search
from runner.toolkit.quick_check import surely_fits
from runner.toolkit.result import to_result
from runner.toolkit.tool import SchemaTool, ToolOptions


class Echo(SchemaTool):
    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        return to_result(params)


def wrong(schema: Mapping[str, Any], arguments: dict[str, Any]) -> list[str]:
    return list(Echo("echo", "Echo.", schema).check(arguments))


def properties(**schemas: Any) -> dict[str, Any]:
    return {"type": "object", "properties": schemas}


def test_a_tool_has_what_the_loop_asks_of_one() -> None:
    tool: Tool = Echo("echo", "Echo.", {"type": "object"})
    assert (tool.name, tool.label, tool.description) == ("echo", "echo", "Echo.")
    assert (tool.execution, tool.idempotent, tool.timeout) == ("parallel", False, None)
    options = ToolOptions(label="An echo", execution="sequential", idempotent=True, timeout=3)
    tool = Echo("echo", "Echo.", {"type": "object"}, **options)
    assert (tool.label, tool.execution, tool.idempotent, tool.timeout) == (
        "An echo",
        "sequential",
        True,
        3,
    )
    result = asyncio.run(tool.execute("call_1", {"a": 1}, lambda _: None, Cancellation()))
    assert result.content == '{"a":1}'


@pytest.mark.parametrize("name", ["", "a b", "a.b", "größe", "x" * 65, "a\n"])
def test_a_name_that_no_provider_takes_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is no name for a tool"):
        Echo(name, "", {})


def test_all_violations_are_told_at_once() -> None:
    schema = properties(
        path={"type": "string"}, count={"type": "integer"}, level={"enum": ["low", "high"]}
    ) | {"required": ["path"]}
    assert sorted(wrong(schema, {"count": "three", "level": "middle"})) == [
        'at count: "three" is wrong; an integer was asked for',
        'at level: "middle" is wrong; one of "low", "high" was asked for',
        "at path: it is missing; a string was asked for",
    ]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": ["integer", "null"]}, "x", 'at a: "x" is wrong; an integer or null was asked'),
        ({"type": "integer"}, True, "at a: true is wrong; an integer was asked for"),
        ({"const": "yes"}, "no", 'at a: "no" is wrong; "yes" was asked for'),
        ({"minimum": 3}, 2, "at a: 2 is wrong; at least 3 was asked for"),
        ({"pattern": "^b"}, "a", 'at a: "a" is wrong; a match of the pattern "^b" was asked for'),
        ({"maxLength": 2}, "abc", 'at a: "abc" is wrong; a length of at most 2 was asked for'),
        ({"uniqueItems": True}, [1, 1], "at a: [1,1] is wrong; a list with nothing in it twice"),
        ({"not": {"type": "null"}}, None, 'at a: null is wrong; anything but {"type":"null"}'),
        ({"items": {"type": "string"}}, ["x", 2], "at a[1]: 2 is wrong; a string was asked for"),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            3,
            "at a: 3 is wrong; a string or null was asked for",
        ),
        (
            {"anyOf": [properties(b={"type": "integer"}), {"type": "null"}]},
            {"b": "x"},
            'at a.b: "x" is wrong; an integer was asked for',
        ),
        (
            {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
            3,
            "at a: 3 is wrong; it fits more than one of the forms",
        ),
        (
            {"additionalProperties": {"type": "integer"}},
            {"odd name": "x"},
            'at a["odd name"]: "x" is wrong; an integer was asked for',
        ),
        (
            {"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": False},
            {"n_x": "x", "m": 1},
            'at a.n_x: "x" is wrong',
        ),
        (False, 3, "3 is wrong; nothing is right in its place"),
        ({"type": "string"}, list(range(90)), "at a: [0,1,2,3"),
    ],
)
def test_a_sentence_tells_place_value_and_what_was_asked_for(
    schema: Any, value: Any, said: str
) -> None:
    assert wrong(properties(a=schema), {"a": value})[0].startswith(said)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    schema = properties(path={"type": "string"}) | {"additionalProperties": False}
    assert wrong(schema, {"pth": "x"}) == [
        'at pth: there is no such name here; did you mean "path"?'
    ]


def test_the_whole_draft_is_checked_and_references_are_followed() -> None:
    schema = properties(a={"$ref": "#/$defs/even"}, b={"dependentRequired": {"x": ["y"]}}) | {
        "$defs": {"even": {"type": "integer", "multipleOf": 2}},
        "unevaluatedProperties": False,
    }
    assert wrong(schema, {"a": 4, "b": {}}) == []
    assert wrong(schema, {"a": 3}) == ["at a: 3 is wrong; a multiple of 2 was asked for"]
    assert len(wrong(schema, {"b": {"x": 1}, "c": 1})) == 2


def test_formats_are_not_checked() -> None:
    assert wrong(properties(a={"type": "string", "format": "email"}), {"a": "x"}) == []


def test_nothing_is_fetched() -> None:
    schema = properties(a={"$ref": "http://127.0.0.1:9/schema.json"})
    assert "http://127.0.0.1:9/schema.json" in wrong(schema, {"a": 1})[0]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"type": 3},
        {"required": 5},
        {"properties": []},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"pattern": "("},
        {"properties": {"a": {"minimum": "x"}}},
        {"properties": {"a": {"pattern": "(a"}}},
        {"enum": 3},
        {"additionalProperties": 3},
        {"properties": {"a": {"multipleOf": 0}}},
    ],
)
def test_a_schema_that_is_none_is_told_and_never_raises(schema: Any) -> None:
    values: tuple[Any, ...] = (1, "x", {}, [1])
    for value in values:
        assert all(isinstance(one, str) for one in wrong(schema, {"a": value}))


def test_a_schema_that_multiplies_itself_is_given_up() -> None:
    definitions: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)
    }
    schema = {"$ref": "#/$defs/d0", "$defs": {**definitions, "d40": {"minProperties": 1}}}
    assert "steps" in wrong(schema, {"a": 1})[0]


def test_a_schema_or_arguments_without_bottom_are_given_up() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    schema = properties(a={"$ref": "#/$defs/list"}) | {
        "$defs": {"list": {"items": {"$ref": "#/$defs/list"}, "uniqueItems": True}}
    }
    assert "too deeply" in wrong(schema, {"a": deep})[0]


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(?=x*)(a+)+$", "(?=.)a*a*a*a*a*a*a*b", r"(a*)*\1c"]
)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert wrong(properties(a={"pattern": pattern}), {"a": "a" * 5000 + "!"})


def test_patterns_that_only_python_knows_work_on_short_texts() -> None:
    assert search("^(?=.*[a-z])(?=.*[0-9]).{4,}$", "abc1")
    assert not search("^(?!x)", "xyz")
    assert search(r"^(?!-)[a-z]+(-[a-z]+)*$", "one-two")
    assert search("^.$", "\ud83d")


def test_violations_without_end_are_cut() -> None:
    said = wrong(properties(a={"items": {"type": "string"}}), {"a": list(range(1000))})
    assert len(said) == 51
    assert said[-1] == "and more"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 2.0]) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)
schemas = st.recursive(
    st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]).map(
        lambda name: {"type": name}
    )
    | st.lists(json_values, min_size=1, max_size=3).map(lambda values: {"enum": values})
    | st.integers(-3, 3).map(lambda n: {"minimum": n})
    | st.booleans()
    | st.just({}),
    lambda inner: st.one_of(
        inner.map(lambda s: {"type": "array", "items": s}),
        st.lists(inner, min_size=1, max_size=2).map(lambda many: {"anyOf": many}),
        st.fixed_dictionaries(
            {"properties": st.dictionaries(st.sampled_from("abc"), inner)},
            optional={
                "required": st.lists(st.sampled_from("abc"), unique=True),
                "additionalProperties": inner,
            },
        ),
    ),
    max_leaves=6,
)


@given(json_values, schemas)
def test_what_is_seen_at_a_glance_to_fit_does(value: Any, schema: Any) -> None:
    if surely_fits(value, schema):
        assert Draft202012Validator(schema).is_valid(value)


def test_plain_schemas_are_seen_at_a_glance() -> None:
    schema = properties(
        a={"type": "string", "description": "x"},
        b={"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        c={"type": "array", "items": {"enum": ["x", "y"]}},
    ) | {"required": ["a"], "additionalProperties": False}
    assert surely_fits({"a": "x", "b": None, "c": ["x"]}, schema)


class Point(pydantic.BaseModel):
    x: int
    when: date = date(2020, 1, 2)


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("text\n", "text\n"),
        ("a\ud83d", "a\ud83d"),
        (5, "5"),
        (True, "true"),
        (0.5, "0.5"),
        ([1, {"a": None}], '[1,{"a":null}]'),
        ((1, 2), "[1,2]"),
        ({1: "a"}, '{"1":"a"}'),
        (Point(x=1), '{"x":1,"when":"2020-01-02"}'),
        ([Point(x=1)], '[{"x":1,"when":"2020-01-02"}]'),
        (Pair(Color.RED, {Path("a/b")}), '{"left":"red","right":["a/b"]}'),
        ({Color.RED: uuid.UUID(int=1)}, '{"red":"00000000-0000-0000-0000-000000000001"}'),
        ({"b", "a"}, '["a","b"]'),
    ],
)
def test_what_a_tool_returns_becomes_text(value: Any, text: str) -> None:
    assert to_result(value) == ToolResult(text)


def test_a_result_made_by_hand_is_kept() -> None:
    blocks: Any = [
        {"type": "text", "text": "x"},
        {"type": "image", "mime_type": "image/png", "data": ""},
    ]
    given = ToolResult(blocks, details={"at": date(2020, 1, 2)}, is_error=True, terminate=True)
    made = to_result(given)
    assert made == ToolResult(blocks, {"at": "2020-01-02"}, is_error=True, terminate=True)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, "NaN"),
        ({"a": [math.inf]}, "infinity"),
        (object(), "a object, which is not JSON"),
        (b"x", "a bytes, which is not JSON"),
        ({(1, 2): 3}, "a tuple for a key"),
        (Pair(math.nan, Path()), "NaN"),
        (ToolResult(5), "text or a list of blocks"),  # type: ignore[arg-type]
        (ToolResult([{"type": "txt"}]), "a block of a result is"),  # type: ignore[list-item]
        (ToolResult("x", details=object()), "not JSON"),
    ],
)
def test_what_is_not_json_is_told(value: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        to_result(value)


def test_what_holds_itself_or_has_no_bottom_is_told() -> None:
    holder: list[Any] = []
    holder.append(holder)
    deep: Any = Path()
    for _ in range(100_000):
        deep = [deep]
    for value in (holder, Pair(holder, Path()), deep, [[holder, Path()]]):
        with pytest.raises(ValueError, match=r"itself|deeply"):
            to_result(value)
