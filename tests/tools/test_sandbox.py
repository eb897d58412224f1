"""Programs in bubblewrap: nothing but the workspace changes, and nothing is reached."""

import json
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runner import run_spec
from runner.api import RunOptions, check


def cannot_run() -> str | None:
    """Why no sandbox can be made here."""
    if shutil.which("bwrap") is None:
        return "bubblewrap (bwrap) is not installed"
    done = subprocess.run(
        ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "true"], capture_output=True, check=False
    )
    return f"no namespace may be made here: {done.stderr.decode()}" if done.returncode else None


WHY = cannot_run()
needs_bwrap = pytest.mark.skipif(WHY is not None, reason=WHY or "")


def spec_of(tmp_path: Path, tools: list[Any], calls: list[Any], **more: Any) -> Path:
    path = tmp_path / "spec.yaml"
    script = [{"tool_calls": [{"name": n, "arguments": a}]} for n, a in calls]
    model = {"provider": "scripted", "script": [*script, {"text": "x"}]}
    spec = {"version": 1, "model": model, "prompt": "x", "tools": tools, "sandbox": "bwrap"}
    path.write_text(json.dumps({**spec, **more}), "utf-8")
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text("kept", "utf-8")
    room = tmp_path / "room"
    room.mkdir()
    return room


def results(path: Path, workspace: Path) -> list[str]:
    events: list[dict[str, Any]] = []
    options = RunOptions(log="none", workspace=str(workspace))
    assert run_spec(path, on_event=events.append, options=options).status == "ok"
    ends = [event for event in events if event["type"] == "tool_execution_end"]
    return ["".join(b.get("text", "") for b in end["result"]["content"]) for end in ends]


@needs_bwrap
def test_only_the_workspace_is_written_to(tmp_path: Path, workspace: Path) -> None:
    outside = tmp_path / "outside.txt"
    commands = [
        "echo in > inside.txt; cat inside.txt",
        f"echo no > {outside}; rm -f {outside}; mv {outside} x; ln -s {tmp_path} up; echo > up/x",
        "echo no > /etc/pi-run-was-here || echo refused",
        "echo private > /tmp/pi-run-was-here; ls /tmp",
        "ls -d /proc/[0-9]* | wc -l",
        "cat /proc/1/environ | tr '\\0' '\\n' | head -1; kill -9 -1; echo alive",
    ]
    calls = [("shell", {"command": each}) for each in commands]
    said = results(spec_of(tmp_path, ["shell"], calls), workspace)
    assert said[0] == "in\n"
    assert "refused" in said[2]
    assert "pi-run-was-here" in said[3]
    assert int(said[4]) < 10
    assert outside.read_text("utf-8") == "kept"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["outside.txt", "room", "spec.yaml"]
    assert not Path("/tmp/pi-run-was-here").exists()
    assert not Path("/etc/pi-run-was-here").exists()


@needs_bwrap
def test_there_is_no_network(tmp_path: Path, workspace: Path) -> None:
    code = (
        "import socket\n"
        "for address in (('127.0.0.1', {port}), ('1.1.1.1', 53)):\n"
        "    try:\n        socket.create_connection(address, 5)\n        print('reached')\n"
        "    except OSError:\n        print('not reached')\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = code.replace("{port}", str(server.getsockname()[1]))
        path = spec_of(tmp_path, ["python"], [("python", {"code": source})])
        assert results(path, workspace) == ["not reached\nnot reached\n"]


@needs_bwrap
def test_commands_and_long_outputs_are_in_it_too(tmp_path: Path, workspace: Path) -> None:
    tool = {"name": "mark", "description": "x", "command": ["sh", "-c", "touch /var/x || echo no"]}
    calls = [
        ("mark", {}),
        ("shell", {"command": "seq 20000"}),
        ("shell", {"command": "wc -l < $PI_RUN_OUTPUTS/call_2.txt; echo > $PI_RUN_OUTPUTS/x"}),
    ]
    said = results(spec_of(tmp_path, [tool, "shell"], calls), workspace)
    assert said[0].startswith("no")
    assert said[2].startswith("20000\n")
    assert "Read-only" in said[2]


@needs_bwrap
def test_a_read_only_run_may_run_what_can_write_nowhere(tmp_path: Path, workspace: Path) -> None:
    calls = [("shell", {"command": "touch made || echo refused"})]
    path = spec_of(tmp_path, ["shell"], calls, read_only=True)
    assert results(path, workspace)[0].endswith("refused\n")
    assert not list(workspace.iterdir())


def test_without_bubblewrap_it_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = spec_of(tmp_path, ["shell"], [])
    monkeypatch.setenv("PATH", str(tmp_path))
    (fault,) = [each for each in check(str(path)) if not each.warning]
    assert fault.path == "sandbox"
    assert "install it" in fault.message
