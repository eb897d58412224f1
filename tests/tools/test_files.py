"""What the file tools read, write, change, list and find."""

import base64
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runner.engine.contract import ToolResult

Call = Callable[..., ToolResult]
PNG = b"\x89PNG\r\n\x1a\n\0\0"


def write(workspace: Path, **files: str) -> None:
    for name, text in files.items():
        file = workspace / name.replace("__", "/")
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_bytes(text.encode())


def text(result: ToolResult) -> str:
    assert not result.is_error, result.content
    return str(result.content)


def fault(result: ToolResult) -> str:
    assert result.is_error
    return str(result.content)


def test_a_text_is_read_whole_or_in_pieces(call: Call, workspace: Path) -> None:
    write(workspace, a="1\n2\n3\n4\n")
    assert text(call("read_file", path="a")) == "1\n2\n3\n4\n"
    assert text(call("read_file", path="a", offset=2, limit=2)) == (
        "2\n3\n[1 more lines; go on with offset 4]"
    )
    assert text(call("read_file", path="a", offset=4)) == "4\n"
    assert "has 4 lines" in fault(call("read_file", path="a", offset=5))
    assert "counted from 1" in fault(call("read_file", path="a", limit=0))


def test_a_long_text_is_cut_in_the_middle(call: Call, workspace: Path) -> None:
    write(workspace, a="b" * 60_000 + "e" * 60_000)
    said = text(call("read_file", path="a"))
    assert len(said) < 51_000
    assert "72000 characters are left out" in said
    assert said.startswith("bbb")
    assert said.endswith("eee")


def test_an_image_is_an_image_and_other_bytes_are_refused(call: Call, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(PNG)
    result = call("read_file", path="a.bin")
    encoded = base64.b64encode(PNG).decode()
    assert result.content == [{"type": "image", "mime_type": "image/png", "data": encoded}]
    (workspace / "b.bin").write_bytes(b"\0\1")
    assert "neither text nor an image" in fault(call("read_file", path="b.bin"))


def test_faults_say_what_would_be_right(call: Call, workspace: Path) -> None:
    (workspace / "d").mkdir()
    assert "list_files shows" in fault(call("read_file", path="no"))
    assert "is a folder" in fault(call("read_file", path="d"))
    assert "is a folder" in fault(call("write_file", path="d", content=""))


def test_a_file_is_written_with_its_folders(call: Call, workspace: Path) -> None:
    assert "Made" in text(call("write_file", path="x/y/z", content="é"))
    assert (workspace / "x/y/z").read_bytes() == "é".encode()
    (workspace / "x/y/z").chmod(0o750)
    assert "Replaced" in text(call("write_file", path="x/y/z", content="b"))
    assert (workspace / "x/y/z").stat().st_mode & 0o777 == 0o750
    assert [each.name for each in (workspace / "x/y").iterdir()] == ["z"]


def test_several_edits_are_made_at_once(call: Call, workspace: Path) -> None:
    write(workspace, a="one\ntwo\nthree\n")
    edits = [{"old": "three", "new": "3"}, {"old": "one", "new": "two"}]
    result = call("edit_file", path="a", edits=edits)
    assert text(result) == "Changed a in 2 places."
    assert (workspace / "a").read_bytes() == b"two\ntwo\n3\n"
    assert "-one\n two\n-three\n+two\n+3" in result.details["diff"]


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ([], "edits is empty"),
        ([{"old": "", "new": "x"}], "use write_file"),
        ([{"old": "o", "new": "x"}], "2 times"),
        ([{"old": "one\nthree", "new": "x"}], "its first line is at line 1"),
        ([{"old": "nine", "new": "x"}], "copy the text exactly"),
        ([{"old": "ne", "new": "x"}, {"old": "on", "new": "y"}], "overlap"),
        ([{"old": "ne", "new": "x"}, {"old": "nine", "new": "y"}], "edits[1]"),
    ],
)
def test_an_edit_that_is_not_sure_changes_nothing(
    call: Call, workspace: Path, edits: list[dict[str, Any]], reason: str
) -> None:
    write(workspace, a="one\ntwo\n")
    assert reason in fault(call("edit_file", path="a", edits=edits))
    assert (workspace / "a").read_bytes() == b"one\ntwo\n"


def test_line_ends_stay_as_they_are(call: Call, workspace: Path) -> None:
    write(workspace, a="one\r\ntwo\r\n")
    call("edit_file", path="a", edits=[{"old": "one\ntwo", "new": "1\n2"}])
    assert (workspace / "a").read_bytes() == b"1\r\n2\r\n"


def test_parallel_edits_of_one_file_lose_nothing(call: Call, workspace: Path) -> None:
    words = [f"<{n}>" for n in range(30)]
    write(workspace, a="".join(words))
    (workspace / "b").symlink_to("a")

    def edit(n: int) -> bool:
        edits = [{"old": words[n], "new": f"[{n}]"}]
        return call("edit_file", path="ab"[n % 2], edits=edits).is_error

    with ThreadPoolExecutor(8) as pool:
        assert not any(pool.map(edit, range(30)))
    assert (workspace / "a").read_text(encoding="utf-8") == "".join(f"[{n}]" for n in range(30))


EDITING = """\
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from runner.toolkit.workspace import Workspace

me, files = sys.argv[2], Workspace(Path(sys.argv[1]))

def edit(n):
    with files.lock("d/a"):
        text = files.read("d/a", 10_000).decode()
        files.write("d/a", text.replace(f"<{me}.{n}>", "x").encode())

with ThreadPoolExecutor(4) as pool:
    list(pool.map(edit, range(50)))
"""


def test_edits_of_several_processes_lose_nothing(workspace: Path) -> None:
    write(workspace, d__a="".join(f"<{me}.{n}>" for me in range(3) for n in range(50)))
    editing = [
        subprocess.Popen([sys.executable, "-c", EDITING, str(workspace), str(me)])
        for me in range(3)
    ]
    assert [process.wait() for process in editing] == [0, 0, 0]
    assert (workspace / "d" / "a").read_text(encoding="utf-8") == "x" * 150
    assert [each.name for each in (workspace / "d").iterdir()] == ["a"]


def test_a_folder_that_another_keeps_locked_is_not_waited_for_for_ever(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.toolkit.workspace._PATIENCE", 0.01)
    write(workspace, a="one")
    folder = os.open(workspace, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    edits = [{"old": "one", "new": "two"}]
    assert "keeps the folder of a locked" in fault(call("edit_file", path="a", edits=edits))
    os.close(folder)
    assert not call("edit_file", path="a", edits=edits).is_error


def test_files_are_listed_but_for_those_that_git_ignores(call: Call, workspace: Path) -> None:
    write(
        workspace,
        a__b="",
        a__c="",
        d="",
        build__x="",
        a__build__y="",
        e__f__g="",
    )
    (workspace / ".git").mkdir()
    (workspace / ".gitignore").write_text("# no\n/build/\n*.log\n!k.log\ne/**/g\n", "utf-8")
    (workspace / "a" / ".gitignore").write_text("c\n", "utf-8")
    write(workspace, x="")
    for name in ("j.log", "k.log"):
        (workspace / name).touch()
    listed = text(call("list_files")).split()
    assert listed[:6] == [".gitignore", "a/", "a/.gitignore", "a/b", "a/build/", "a/build/y"]
    assert listed[6:] == ["d", "e/", "e/f/", "k.log", "x"]
    assert text(call("list_files", path="a", pattern="b*")).split() == ["a/b", "a/build/"]
    assert text(call("list_files", pattern="none")) == "There is nothing that fits."


def test_files_are_searched(call: Call, workspace: Path) -> None:
    write(workspace, a__b="one\ntwo\n", c="two\0", d="twofold" + "x" * 400)
    assert text(call("search_files", pattern="^two")).splitlines() == [
        "a/b:2: two",
        "d:1: " + ("twofold" + "x" * 400)[:300] + "…",
    ]
    assert text(call("search_files", pattern="two", files="b")) == "a/b:2: two"
    assert "no regular expression" in fault(call("search_files", pattern="("))


def test_a_pattern_that_takes_for_ever_is_stopped(call: Call, workspace: Path) -> None:
    write(workspace, a="a" * 40 + "b")
    pattern = r"^(?:(a|a|aa)+)+\1?c(?<=a+)$|(a+)+\2$"
    assert "too long" in fault(call("search_files", pattern=pattern))
