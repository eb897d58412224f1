from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.error import UsageError
from runner.log.find import find, logs

Log = Callable[..., Path]


@pytest.fixture
def folder(log: Log, tmp_path: Path) -> Path:
    log("logs/a-zz1older.jsonl", run_id="zz1older", started_at="2001-01-01T00:00:00Z")
    broken = log("logs/a-zz2.jsonl", run_id="zz2broken", started_at="2001-01-02T01:00:00+02:00")
    broken.write_bytes(b"".join(broken.read_bytes().splitlines(keepends=True)[:6]) + b'{"seq')
    log("logs/b-x1.jsonl", run_id="x1", started_at="2026-01-01T00:00:00.123Z")
    log("logs/b-x12.jsonl", run_id="x12", started_at="2002-01-01T00:00:00")
    (tmp_path / "logs" / "letters.jsonl").write_text("letters\n", encoding="utf-8")
    (tmp_path / "logs" / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "logs" / "pipe.jsonl")
    return tmp_path / "logs"


def test_lists_logs_the_oldest_first(folder: Path) -> None:
    entries = logs(folder)
    assert [(e.run_id, e.status, e.turns) for e in entries] == [
        ("zz1older", "ok", 2),
        ("zz2broken", None, None),
        ("x12", "ok", 2),
        ("x1", "ok", 2),
    ]
    assert [e.run_id for e in entries if e.incomplete] == ["zz2broken"]
    assert entries[0].name == "spec"
    assert entries[0].cost_usd == 0.0
    assert entries[0].seconds == 0.5
    assert logs(folder / "none") == []


def test_a_frozen_log_is_called_by_its_file(folder: Path, log: Log) -> None:
    path = log("logs/frozen.jsonl")
    text = path.read_text(encoding="utf-8")
    for volatile in ('"run_id":"0abc",', '"started_at":"2026-01-01T00:00:00Z",'):
        text = text.replace(volatile, "")
    path.write_text(text, encoding="utf-8")
    assert find("frozen", folder) == path
    assert logs(folder)[-1].run_id == "frozen"


def test_a_long_first_and_last_line_are_read(log: Log, folder: Path) -> None:
    log("logs/long.jsonl", run_id="long", prompt="x" * 200_000, last="y" * 200_000)
    assert next(e for e in logs(folder) if e.run_id == "long").status == "ok"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("zz1", "a-zz1older"),
        ("zz2broken", "a-zz2"),
        ("x1", "b-x1"),
        ("x12", "b-x12"),
        ("a-zz2", "a-zz2"),
        ("last", "b-x1"),
    ],
)
def test_finds_a_log(folder: Path, name: str, file: str) -> None:
    assert find(name, folder) == folder / f"{file}.jsonl"


def test_a_path_is_taken_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert find("b-x1.jsonl", folder) == Path("b-x1.jsonl")
    (folder / "x1").write_text("no log, but there", encoding="utf-8")
    assert find("x1", folder) == Path("x1")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("zz", "zz: more than one log is called like that: zz2broken, zz1older"),
        ("nothing-like-it", "nothing-like-it: there is no such log in .*; the last are x1, x12, "),
        ("none.jsonl", "none.jsonl: there is no such log"),
        ("some/where", "some/where: there is no such log"),
        ("x" * 5000, "there is no such log"),
        ("", "there is no such log|more than one"),
    ],
)
def test_what_is_not_found_is_told_with_what_is_there(folder: Path, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        find(name, folder)
    with pytest.raises(UsageError, match="there is no such log"):
        find("last", folder / "none")
