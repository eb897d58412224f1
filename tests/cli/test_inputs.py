import string
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.cli.inputs import given_inputs, inputs_file, read_text, set_paths, variables_of
from runner.error import UsageError


def test_an_input_is_text_or_json_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_bytes("two\r\nlines ü\n".encode())

    values, texts = given_inputs(["a=1=2", "b:=[1, null]", f"c=@{file}", "d=", 'e:="@x"'])

    assert values == {"b": [1, None], "e": "@x"}
    assert texts == {"a": "1=2", "c": "two\r\nlines ü\n", "d": ""}


def test_the_last_of_a_name_counts() -> None:
    assert given_inputs(["a=1", "a:=2"]) == ({"a": 2}, {})
    assert given_inputs(["a:=2", "a=1"]) == ({}, {"a": "1"})


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("issue", "-i issue: no NAME="),
        ("=x", "-i =x: no NAME="),
        (":=1", "-i :=1: no NAME="),
        ("a:={", "-i a: not JSON: .*quote a text"),
        ("a:=NaN", "-i a: not JSON: NaN"),
        ("a=@nowhere.txt", r"nowhere\.txt: No such file"),
        ("a=@nul\0", "nul.*null"),
    ],
)
def test_a_wrong_input_is_told_with_what_would_be_right(word: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        given_inputs([word])


@given(st.text())
def test_no_input_is_a_bug(word: str) -> None:
    with suppress(UsageError):
        given_inputs([word.replace("=@", "=")])


def test_bytes_that_are_no_utf8_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(b"\xff\xfe")

    assert read_text(str(file)).encode("utf-8", "surrogateescape") == b"\xff\xfe"


def test_inputs_come_from_json(tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_text('\ufeff{"word": "no", "n": 1}', encoding="utf-8")

    assert inputs_file(str(file)) == ({"word": "no", "n": 1}, {})


def test_inputs_come_from_yaml_with_plain_scalars_as_written(tmp_path: Path) -> None:
    file = tmp_path / "in.yaml"
    file.write_text("version: 1.10\nword: 'no'\nlist: [1, yes]\n", encoding="utf-8")

    assert inputs_file(str(file)) == ({"word": "no", "list": [1, "yes"]}, {"version": "1.10"})


@pytest.mark.parametrize("name", ["in.json", "in.yaml"])
@pytest.mark.parametrize("text", ["[1]", "{", "", "a: &x {", "\x00"])
def test_inputs_must_be_a_map(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match="in\\."):
        inputs_file(str(tmp_path / name))


def test_set_splits_at_the_first_equals_sign() -> None:
    assert set_paths(["a.b=c=d", " x ="]) == [("a.b", "c=d"), ("x", "")]
    with pytest.raises(UsageError, match="--set limits: no PATH="):
        set_paths(["limits"])


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("export A = b ", "b"),
        ("A=", ""),
        ("A=b # a comment", "b"),
        ("A=b#c", "b#c"),
        ("A= # a comment", ""),
        ('A="b: 1=2 #3" # a comment', "b: 1=2 #3"),
        (r'A="two\nlines \"quoted\" C:\\"', 'two\nlines "quoted" C:\\'),
        (r"A='as it is\n $X'", r"as it is\n $X"),
    ],
)
def test_variables_of_a_file(tmp_path: Path, line: str, value: str) -> None:
    file = tmp_path / ".env"
    file.write_text(f"\ufeff# A comment.\r\n\r\n{line}\r\n", encoding="utf-8")

    assert variables_of(str(file)) == {"A": value}


def test_the_last_variable_of_a_name_counts(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("A=1\nA=2\n", encoding="utf-8")

    assert variables_of(str(file)) == {"A": "2"}


@pytest.mark.parametrize("line", ["no variable", "1A=b", 'A="open', "A='open", 'A="x" y', "A=\0"])
def test_a_wrong_line_is_told_with_its_place(tmp_path: Path, line: str) -> None:
    file = tmp_path / ".env"
    file.write_text(f"B=c\n{line}\n", encoding="utf-8")

    with pytest.raises(UsageError, match=r"\.env:2: "):
        variables_of(str(file))


@given(st.text(alphabet=string.printable))
def test_no_env_file_is_a_bug(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.env"
    file.write_text(text, encoding="utf-8")
    with suppress(UsageError):
        variables_of(str(file))
