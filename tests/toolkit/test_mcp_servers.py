"""The reference servers of MCP, from PyPI and npm, used by specs."""

import base64
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner import api
from runner.api.replay import replay

Event = dict[str, Any]
NPM = "npm install -g @modelcontextprotocol/{}"


def program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}") or shutil.which(name)
    if found is None:
        package = name.removeprefix("mcp-")
        pytest.skip(f"{name} is not installed: {NPM.format(package)}")
    return found


def run(folder: Path, entry: dict[str, Any], *calls: tuple[str, dict[str, Any]]) -> list[Event]:
    """The ends of these calls in a run; its log replays with no server."""
    replies: list[dict[str, Any]] = [
        {"tool_calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls
    ]
    spec = {
        "version": 1,
        "model": {"provider": "scripted", "script": [*replies, {"text": "done"}]},
        "prompt": "Go.",
        "tools": [{"mcp": entry}],
        "workspace": str(folder),
    }
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(spec), "utf-8")
    events: list[Event] = []
    log = str(folder / "log.jsonl")
    result = api.run_spec(path, on_event=events.append, options=api.RunOptions(log=log))
    assert (result.status, result.text) == ("ok", "done"), result.error
    assert replay(log).difference is None
    return events


def results(events: list[Event]) -> list[str]:
    """The texts of the calls' results."""
    ends = [event for event in events if event["type"] == "tool_execution_end"]
    return ["".join(block.get("text", "") for block in end["result"]["content"]) for end in ends]


def test_time(tmp_path: Path) -> None:
    entry = {"name": "time", "command": [program("mcp-server-time")]}
    arguments = {
        "source_timezone": "Europe/Berlin",
        "time": "12:00",
        "target_timezone": "Asia/Tokyo",
    }
    bad = {"timezone": "Nowhere/At_all"}
    events = run(
        tmp_path,
        entry,
        ("time_convert_time", arguments),
        ("time_get_current_time", bad),
        ("time_get_current_time", {}),
    )
    converted, unknown, unfit = results(events)
    assert "Asia/Tokyo" in converted
    assert "Nowhere/At_all" in unknown
    assert "timezone" in unfit
    ends = [event for event in events if event["type"] == "tool_execution_end"]
    assert [end["is_error"] for end in ends] == [False, True, True]


def test_git(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "repo").mkdir()
    subprocess.run([*git, "init", "-q"], cwd=tmp_path / "repo", check=True)
    (tmp_path / "repo" / "a.txt").write_text("one", "utf-8")
    subprocess.run([*git, "add", "."], cwd=tmp_path / "repo", check=True)
    subprocess.run([*git, "commit", "-qm", "The first"], cwd=tmp_path / "repo", check=True)
    repo = str(tmp_path / "repo")
    entry = {
        "name": "git",
        "command": [program("mcp-server-git"), "--repository", repo],
        "include": ["git_log", "git_status"],
    }
    events = run(
        tmp_path,
        entry,
        ("git_git_log", {"repo_path": repo}),
        ("git_git_status", {"repo_path": repo}),
    )
    log, status = results(events)
    assert "The first" in log
    assert "clean" in status
    names = [tool["name"] for tool in events[0]["plan"]["resolved"]["tools"]]
    assert sorted(names) == ["git_git_log", "git_git_status"]


def test_filesystem(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Grüße", "utf-8")
    entry = {"name": "fs", "command": [program("mcp-server-filesystem"), str(tmp_path)]}
    events = run(
        tmp_path,
        entry,
        ("fs_read_text_file", {"path": str(tmp_path / "a.txt")}),
        ("fs_write_file", {"path": str(tmp_path / "b.txt"), "content": "new"}),
        ("fs_read_text_file", {"path": "/etc/passwd"}),
    )
    read, _, outside = results(events)
    assert read == "Grüße"
    assert (tmp_path / "b.txt").read_text("utf-8") == "new"
    assert "denied" in outside


def test_memory(tmp_path: Path) -> None:
    entry = {
        "name": "memory",
        "command": [program("mcp-server-memory")],
        "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")},
    }
    entities = [{"name": "pi", "entityType": "number", "observations": ["irrational"]}]
    events = run(
        tmp_path,
        entry,
        ("memory_create_entities", {"entities": entities}),
        ("memory_search_nodes", {"query": "irrational"}),
    )
    assert '"pi"' in results(events)[1]


def everything(**more: Any) -> dict[str, Any]:
    return {"name": "all", "resources": True, "prompts": True, **more}


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("all_echo", {"message": "hé"}),
    ("all_get-sum", {"a": 2, "b": 3}),
    ("all_get-tiny-image", {}),
    ("all_trigger-long-running-operation", {"duration": 0.2, "steps": 4}),
    ("all_get-structured-content", {"location": "Chicago"}),
    ("all_get-roots-list", {}),
    ("all_get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    ("all_resources_list", {}),
    ("all_prompts_list", {}),
    ("all_prompts_get", {"name": "args-prompt", "arguments": {"city": "Ulm"}}),
)


def hold_everything(events: list[Event], folder: Path) -> None:
    echo, total, image, _, structured, roots, reference, resources, prompts, prompt = results(
        events
    )
    assert echo.endswith("hé")
    assert "5" in total
    ends = [event for event in events if event["type"] == "tool_execution_end"]
    (picture,) = [b for b in ends[2]["result"]["content"] if b["type"] == "image"]
    assert base64.b64decode(picture["data"]).startswith(b"\x89PNG")
    assert image
    updates = [e["update"] for e in events if e["type"] == "tool_execution_update"]
    assert [update["progress"] for update in updates] == [1, 2, 3, 4]
    assert ends[4]["result"]["details"]["temperature"]
    assert structured
    assert folder.as_uri() in roots
    assert "Resource" in reference
    assert "demo://" in resources
    assert "args-prompt(city" in prompts
    assert "Ulm" in prompt


def test_everything(tmp_path: Path) -> None:
    command = [program("mcp-server-everything"), "stdio"]
    hold_everything(run(tmp_path, everything(command=command), *CALLS), tmp_path)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The endpoint of the server of everything by streamable HTTP."""
    command = program("mcp-server-everything")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [command, "streamableHttp"],
        env={"PATH": str(Path(command).parent) + ":/usr/bin:/bin", "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    late = time.monotonic() + 30
    while time.monotonic() < late:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


def test_everything_by_http(tmp_path: Path, url: str) -> None:
    hold_everything(run(tmp_path, everything(url=url), *CALLS), tmp_path)


def test_server_that_nobody_listens_for_is_named(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spec = {
        "version": 1,
        "model": {"provider": "scripted", "script": [{"text": "x"}]},
        "prompt": "Go.",
        "tools": [{"mcp": {"name": "far", "url": f"http://127.0.0.1:{port}/mcp"}}],
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec), "utf-8")
    result = api.run_spec(tmp_path / "spec.yaml")
    assert result.exit_code == 3
    assert result.error is not None
    assert result.error.startswith("the MCP server far: it can't be reached")
