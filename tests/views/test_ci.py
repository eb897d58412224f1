import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.error import Fault, LogError
from runner.views.ci import (
    SUMMARY_BYTES,
    CaseResult,
    annotation,
    append_summary,
    hold_junit,
    junit,
    summary,
    write_junit,
)

GOOD = CaseResult("good.yaml", "good", "ok", 0.25, "hello", [], "1 turn")
BAD = CaseResult("bad.yaml", "bad", "failed", 0.5, "hello", ['contains: "bye & <you>"'], "1 turn")


def test_junit_has_a_case_a_run() -> None:
    results = [GOOD, BAD, CaseResult("x.yaml", "x", "limit", why=["turns"])]
    results.append(CaseResult("y.yaml", "y", "skipped"))
    suite = ElementTree.fromstring(junit(results))[0]

    assert [case.get("name") for case in suite] == ["good", "bad", "x", "y"]
    assert [[child.tag for child in case] for case in suite] == [
        ["system-out"],
        ["failure", "system-out"],
        ["error"],
        ["skipped"],
    ]
    assert suite[1][0].get("message") == 'contains: "bye & <you>"'
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["4", "1", "1", "1"]


@given(st.text())
def test_junit_is_xml_whatever_is_said(text: str) -> None:
    ElementTree.fromstring(junit([CaseResult(text, text, "failed", 0, text, [text])]))


def test_junit_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "junit.xml"

    hold_junit(str(path))
    assert list(path.parent.iterdir()) == []
    write_junit(str(path), [])
    write_junit(str(path), [GOOD])

    assert len(ElementTree.parse(path).getroot()[0]) == 1
    assert [p.name for p in path.parent.iterdir()] == ["junit.xml"]


def test_junit_that_cant_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LogError, match=r"file/junit\.xml: .*; the JUnit file"):
        hold_junit(str(tmp_path / "file" / "junit.xml"))


def test_annotation_stands_at_the_line() -> None:
    fault = Fault("spec.yaml", 4, 1, "promt", 'unknown key; did you mean "prompt"?')

    assert annotation(fault) == (
        '::error file=spec.yaml,line=4,col=1::promt: unknown key; did you mean "prompt"?'
    )


def test_annotation_can_be_a_warning() -> None:
    fault = Fault("spec.yaml", 4, 1, "expect", "nothing is expected", warning=True)

    assert annotation(fault).startswith("::warning file=spec.yaml,line=4,col=1::")


def test_annotation_of_an_option_has_no_file() -> None:
    fault = Fault("--set limits.turn", 1, 1, "limits.turn", "unknown key")

    assert annotation(fault) == "::error::--set limits.turn: limits.turn: unknown key"


def test_annotation_escapes_what_others_said() -> None:
    fault = Fault("a,b:c.yaml", 1, 1, "", "100%\n::error::pwned\r\x1b[2J ##[error]x")

    assert annotation(fault) == (
        "::error file=a%2Cb%3Ac.yaml,line=1,col=1::100%25%0A::error::pwned%0D␛[2J ##\\[error]x"
    )


def test_annotation_counts_paths_from_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "specs").mkdir()
    monkeypatch.chdir(tmp_path / "specs")
    fault = Fault("a.yaml", 1, 1, "x", "y")

    assert "file=specs/a.yaml," in annotation(fault, str(tmp_path))
    assert "file=a.yaml," in annotation(fault, str(tmp_path / "elsewhere"))


def test_summary_is_a_table_without_markup() -> None:
    text = summary([GOOD, CaseResult("x", "<b>|x|</b>", "failed", why=["a\n| b |\x1b[0m `c`"])])

    rows = text.strip().splitlines()
    assert rows[1] == "| --- | --- | --- | --- |"
    assert rows[2] == "| good | ok | 1 turn |  |"
    assert [row.count("|") for row in rows] == [5, 5, 5, 5]
    assert not re.search("[<>`\x1b*_]", text)


def test_summary_keeps_what_was_there_and_its_size(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("# Before\n" + "x" * (SUMMARY_BYTES - 2000), encoding="utf-8")

    append_summary(str(path), [BAD] * 1000)

    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Before\n")
    assert "more had no room here" in text
    assert len(text.encode()) < SUMMARY_BYTES


def test_full_summary_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("x" * (SUMMARY_BYTES - 50), encoding="utf-8")

    append_summary(str(path), [GOOD])

    assert path.stat().st_size == SUMMARY_BYTES - 50


def test_junit_leaves_what_is_no_regular_file_in_its_place(tmp_path: Path) -> None:
    fifo, link, target = tmp_path / "fifo", tmp_path / "link", tmp_path / "target"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    link.symlink_to(target)
    for path in (fifo, link):
        hold_junit(str(path))
        write_junit(str(path), [])
    assert os.read(reader, 1000).startswith(b"<?xml")
    os.close(reader)
    assert fifo.is_fifo()
    assert link.is_symlink()
    assert target.read_bytes().startswith(b"<?xml")
    with pytest.raises(LogError):
        write_junit("/dev/full", [])
