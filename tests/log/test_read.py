from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.error import LogError
from runner.log.read import read

Log = Callable[..., Path]
START = (
    '{"seq":0,"t":0,"type":"run_start","format":"pi-run-log/1",'
    '"spec":{"name":"a","sha256":"0"},"plan":{},"inputs":{}}\n'
)


def changed(path: Path, number: int, **fields: Any) -> Path:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[number - 1] = json.dumps(json.loads(lines[number - 1]) | fields) + "\n"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_gives_each_event_with_its_line(log: Log, events: Callable[..., Any]) -> None:
    assert list(read(log())) == list(enumerate(events(), 1))


def test_what_is_not_known_is_given_too(log: Log) -> None:
    path = changed(changed(log(), 4, type="shiny_event", turn=None), 2, mood="good")
    got = dict(read(path))
    assert got[4]["type"] == "shiny_event"
    assert got[2]["mood"] == "good"
    path = changed(log(), 5, message={"id": "m1", "role": "oracle", "content": [{"type": "odour"}]})
    assert len(list(read(path))) == len(got)


@pytest.mark.parametrize("tail", ["", '{"seq": 99, "t\n', '{"seq":99}', "\0\0\0", "\n"])
def test_a_torn_tail_is_dropped_with_a_warning(log: Log, tail: str) -> None:
    path = log()
    whole = path.read_text(encoding="utf-8")
    torn = whole + tail if tail else whole[:-9]
    path.write_text(torn, encoding="utf-8")
    warnings: list[str] = []
    lines = whole.count("\n")
    assert len(list(read(path, warnings.append))) == (lines if tail else lines - 1)
    (warning,) = warnings
    assert warning.startswith(f"{path}: line {lines + 1 if tail else lines}, the last, was cut off")
    assert len(list(read(path))) == (lines if tail else lines - 1)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"type":"turn_start"', '"type":turn_start', "line 4: is not JSON: Expecting value, at"),
        ('{"seq":2,', "\ud800", "line 3: is not UTF-8, at its byte 1"),
        ('{"seq":2,', "\n", "line 3: is not JSON"),
        ('"seq":3,', '"seq":5,', "line 4: its seq is 5, where 3 is next"),
        ('"seq":1,', '"seq":true,', "line 2: its seq is True, where 1 is next"),
        ('"seq":3,', "", "line 4: its seq is None, where 3 is next"),
        ('"t":0.03,"type"', '"kind"', "line 4: has no type"),
        ('"turn":1', '"turn":"1"', "line 4: turn_start.turn is a text, where an integer is needed"),
        ('"turn":1', '"turn":true', "line 4: turn_start.turn is true or false, where an integer"),
        ('"t":0.03', '"t":1e999', "line 4: is not JSON: the number 1e999 is too large"),
        ('"turn":1', '"urn":1', "line 4: turn_start.turn is missing"),
        ('"id":"m1"', '"id":1', "line 5: message_start.message.id is an integer, where a text"),
        ('"text":"Hello"}', '"txt":"Hello"}', "line 5: message_start.message.content[0].text is"),
        ('"role":"user","content"', '"content"', "line 5: message_start.message.role is missing"),
        ('"iteration":1', '"iteration":null', "line 3: task_start.iteration is null, where an"),
        ('"plan":{', '"plan":[{', "line 1: "),
        ('"format":"pi-run-log/1"', '"format":"x"', "line 1: is no log of pi-run"),
        (
            '"format":"pi-run-log/1"',
            '"format":"pi-run-log/2"',
            "line 1: the format is pi-run-log/2",
        ),
        ('"type":"run_start"', '"type":"run_end"', "line 1: is no log of pi-run"),
        ('"cost_usd":0.0', '"cost_usd":"0"', "run_end.cost_usd is a text, where a number or null"),
        ('"arguments":{}}', '"arguments":[]}', ".arguments is a list, where an object or a text"),
    ],
)
def test_what_is_broken_is_told_with_its_line(log: Log, old: str, new: str, says: str) -> None:
    path = log()
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode(errors="surrogatepass"))
    with pytest.raises(LogError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"{path}: line ")
    assert says in str(caught.value)


def test_a_lost_line_is_told(log: Log) -> None:
    path = log()
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:3] + lines[4:]), encoding="utf-8")
    with pytest.raises(LogError, match="line 4: its seq is 4"):
        list(read(path))


def test_a_newer_minor_version_is_read(log: Log) -> None:
    assert list(read(changed(log(), 1, format="pi-run-log/1.7")))


@pytest.mark.parametrize(
    "content",
    ["", "\n", "letters", "{}\n", "[]\n", "7\n", '{"a":\n', START[:-1], "\0", '"a"\n{}\n'],
)
def test_what_is_no_log_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(LogError, match="line 1: "):
        list(read(path))


def test_what_cant_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="can't be read: No such file"):
        list(read(tmp_path / "none"))
    with pytest.raises(LogError, match="can't be read: Is a directory"):
        list(read(tmp_path))
    with pytest.raises(LogError, match="line 1: is no log"):
        list(read("/dev/zero"))
    with pytest.raises(LogError, match="line 1: is no log"):
        list(read("/dev/null"))
    with pytest.raises(LogError, match="can't be read: embedded null byte"):
        list(read("a\0b"))


def test_a_pipe_that_nobody_writes_to_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("runner.log.read._WAIT", 0.01)
    with pytest.raises(LogError, match="nobody writes to this pipe"):
        list(read(tmp_path / "pipe"))


def test_a_line_that_is_nested_too_deeply_is_told(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    deep = '{"seq":1,"type":"x","a":' + "[" * 100_000 + "]" * 100_000 + "}\n"
    path.write_text(START + deep + deep, encoding="utf-8")
    with pytest.raises(LogError, match="line 2: is not JSON: it is nested too deeply"):
        list(read(path))


def test_reads_no_more_than_it_is_asked_for(log: Log) -> None:
    path = log()
    with path.open("ab") as file:
        file.write(b"broken\n")
        file.write(b"broken\n")
    assert [number for number, _ in itertools.islice(read(path), 3)] == [1, 2, 3]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_no_damage_is_worse_than_an_error(log: Log, data: st.DataObject) -> None:
    path = log()
    text = path.read_bytes()
    at = data.draw(st.integers(0, len(text)))
    drop = data.draw(st.integers(0, 30))
    path.write_bytes(text[:at] + data.draw(st.binary(max_size=20)) + text[at + drop :])
    with contextlib.suppress(LogError):
        for number, event in read(path):
            assert event["seq"] == number - 1
