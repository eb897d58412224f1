import math
from typing import Any

import pytest

from runner.error import Fault
from runner.spec.node import MapNode, Node, ScalarNode, Source, to_value
from runner.spec.yaml import parse


def read(text: str) -> Any:
    faults: list[Fault] = []
    node = parse(text.encode(), Source("x"), faults)
    assert not faults, faults
    assert node is not None
    return to_value(node)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("TRUE", True),
        ("tRUE", "tRUE"),
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("OFF", "OFF"),
        ("y", "y"),
        ("null", None),
        ("~", None),
        ("", None),
        ("Null", None),
        ("nil", "nil"),
        ("0", 0),
        ("-12", -12),
        ("+3", 3),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0x1F", "-0x1F"),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("1,000", "1,000"),
        ("12:30", "12:30"),
        ("12:30:45", "12:30:45"),
        ("2024-01-02", "2024-01-02"),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("1.10", 1.1),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5e3", -500.0),
        ("1e3", 1000.0),
        ("1.5.2", "1.5.2"),
        (".", "."),
        ("+", "+"),
        ("-.inf", -math.inf),
        (".INF", math.inf),
        ("inf", "inf"),
        ("nan", "nan"),
        ("=", "="),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("!!int '1'", 1),
        ("!!float 1.5", 1.5),
        ("[a, {b: c}]", ["a", {"b": "c"}]),
        ('{"a":1}', {"a": 1}),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">-\n  a\n  b\n", "a b"),
    ],
)
def test_values_of_the_core_schema(text: str, value: Any) -> None:
    assert repr(read(f"x: {text}")["x"]) == repr(value)


def test_not_a_number() -> None:
    assert math.isnan(read("x: .nan")["x"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("&a 1", 1),
        ("{<<: {b: 1, c: 2}, b: 3}", {"b": 3, "c": 2}),
        ("{b: 3, <<: {b: 1, c: 2}}", {"b": 3, "c": 2}),
        ("{<<: [{b: 1}, {b: 2, c: 2}], d: 3}", {"b": 1, "c": 2, "d": 3}),
        ('{"<<": {b: 1}}', {"<<": {"b": 1}}),
        ("{<<: {<<: {a: 1}, b: 2}}", {"a": 1, "b": 2}),
        ("[&a {b: 1}, *a, {<<: *a, c: 2}]", [{"b": 1}, {"b": 1}, {"b": 1, "c": 2}]),
        ("[&a 1, &a 2, *a]", [1, 2, 2]),
    ],
)
def test_anchors_and_merges(text: str, value: Any) -> None:
    assert read(f"x: {text}")["x"] == value


def test_keys_are_texts_as_written() -> None:
    assert read("1: a\ntrue: b\nno: c\n1.10: d\n'': e\n0x1: f") == {
        "1": "a",
        "true": "b",
        "no": "c",
        "1.10": "d",
        "": "e",
        "0x1": "f",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"a\ud800b"', "a\ud800b"),
        (r'"\\ud800"', r"\ud800"),
        (r"'[\ud800-\uDFFF]'", r"[\ud800-\uDFFF]"),
        (r"\ud800", r"\ud800"),
        ('"\ue000 \\ue001 \\ud800"', "\ue000 \ue001 \ud800"),
        ('"a\u2028b\u2029c\x85d"', "a\u2028b\u2029c\x85d"),
        ("|\n  a\x85b\n", "a\x85b\n"),
        ("a\ufeffb", "a\ufeffb"),
    ],
)
def test_letters_that_older_yaml_reads_otherwise(text: str, value: str) -> None:
    assert read(f"x: {text}\ny: z") == {"x": value, "y": "z"}


@pytest.mark.parametrize("start", ["", "\ufeff", "---\n", "%YAML 1.2\n---\n", "# a\n\n"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n...\n", "\n# a"])
def test_what_may_stand_around(start: str, end: str) -> None:
    assert read(f"{start}x: 1{end}") == {"x": 1}


def places(node: Node) -> list[tuple[str, int, int]]:
    if isinstance(node, ScalarNode):
        return [(node.text, node.place.line, node.place.column)]
    assert isinstance(node, MapNode)
    own = [(f"{key}:", place.line, place.column) for key, place in node.keys.items()]
    return own + [each for below in node.entries.values() for each in places(below)]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_places(newline: str) -> None:
    text = '"ü😀": {b: &a  x, c: !!str y}\n# z\nd: |\n  e\nf: *a\n'.replace("\n", newline)
    node = parse(text.encode(), Source("x"), [])
    assert node is not None
    assert places(node) == [
        ("ü😀:", 1, 1),
        ("d:", 3, 1),
        ("f:", 5, 1),
        ("b:", 1, 8),
        ("c:", 1, 18),
        ("x", 1, 11),
        ("y", 1, 21),
        ("e\n", 3, 4),
        ("x", 1, 11),
    ]


def test_reading_goes_on_after_a_fault() -> None:
    faults: list[Fault] = []
    node = parse(b"a: !x 1\nb: {{ c }}\nd: *e\nf: 1\nf: 2\ng: 3\n", Source("x"), faults)

    assert [(fault.line, fault.path) for fault in faults] == [
        (1, "a"),
        (2, "b"),
        (3, "d"),
        (5, "f"),
    ]
    assert isinstance(node, MapNode)
    assert [getattr(below, "broken", None) for below in node.entries.values()] == [
        True,
        True,
        True,
        False,
        False,
    ]
