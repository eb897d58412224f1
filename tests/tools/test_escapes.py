"""No path that a model gives leads out of the workspace."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.engine.contract import ToolResult
from runner.toolkit.workspace import Workspace, WorkspaceError

Call = Callable[..., ToolResult]

PATHS = [
    "../secret.txt",
    "a/../../secret.txt",
    "./../secret.txt",
    "{outside}/secret.txt",
    "{outside}/room/../secret.txt",
    "{outside}/room2/x",
    "/dev/null",
    "/etc/passwd",
    "/proc/self/environ",
    "link",
    "chain",
    "up/secret.txt",
    "up/new.txt",
    "root/etc/passwd",
    "dangling",
    "loop",
    "fifo",
    ".",
    "..",
    "/",
    "",
    "a\0b",
    "\ud800",
    "x/" * 3000,
    "x/" * 1500,
]


@pytest.fixture
def traps(workspace: Path) -> Path:
    (workspace / "link").symlink_to("../secret.txt")
    (workspace / "chain").symlink_to("link")
    (workspace / "up").symlink_to("..")
    (workspace / "root").symlink_to("/")
    (workspace / "dangling").symlink_to("../made.txt")
    (workspace / "loop").symlink_to("loop")
    os.mkfifo(workspace / "fifo")
    (workspace.parent / "room2").mkdir()
    return workspace


def said(result: ToolResult) -> str:
    return str(result.content)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"edits": [{"old": "outside", "new": "x"}]}),
    ],
)
def test_no_path_leads_out(
    call: Call, traps: Path, name: str, more: dict[str, Any], path: str
) -> None:
    outside = traps.parent
    result = call(name, path=path.format(outside=outside), **more)
    assert result.is_error
    assert "outside text" not in said(result)
    assert "Traceback" not in said(result)
    assert sorted(each.name for each in outside.iterdir()) == ["room", "room2", "secret.txt"]
    assert (outside / "secret.txt").read_text(encoding="utf-8") == "outside text\n"


@pytest.mark.parametrize("path", ["..", "/", "up", "root/etc", "up/room2", "link", "fifo", "no"])
def test_no_folder_outside_is_listed_or_searched(call: Call, traps: Path, path: str) -> None:
    assert call("list_files", path=path).is_error
    assert call("search_files", path=path, pattern=".").is_error


def test_links_are_listed_and_not_followed(call: Call, traps: Path) -> None:
    assert said(call("list_files")).split() == sorted(
        ["chain", "dangling", "fifo", "link", "loop", "root", "up"]
    )
    assert said(call("search_files", pattern="outside")) == "Nothing fits."


def test_links_that_stay_inside_are_followed(call: Call, workspace: Path) -> None:
    (workspace / "a").mkdir()
    (workspace / "a" / "x.txt").write_text("one", encoding="utf-8")
    (workspace / "b").symlink_to("a")
    assert said(call("read_file", path="b/x.txt")) == "one"
    assert not call("write_file", path="b/x.txt", content="two").is_error
    assert (workspace / "b").is_symlink()
    assert (workspace / "a" / "x.txt").read_text(encoding="utf-8") == "two"


def test_a_folder_that_becomes_a_link_leads_nowhere(workspace: Path) -> None:
    """Whatever moment a folder is swapped for a link at, nothing outside is read or written."""
    inner, outer = workspace / "d", workspace.parent
    inner.mkdir()
    (inner / "secret.txt").write_text("inside", encoding="utf-8")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            try:
                os.rename(inner, workspace / "kept")
                inner.symlink_to("..")
                inner.unlink()
                os.rename(workspace / "kept", inner)
            except OSError:  # a write made the folder that was away
                shutil.rmtree(inner, ignore_errors=True)
                os.rename(workspace / "kept", inner)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        files = Workspace(workspace)
        for number in range(500):
            try:
                assert files.read("d/secret.txt", 100) == b"inside"
                files.write(f"d/{number}", b"x")
            except WorkspaceError:
                continue
    finally:
        done.set()
        thread.join()
    assert sorted(each.name for each in outer.iterdir()) == ["room", "secret.txt"]
