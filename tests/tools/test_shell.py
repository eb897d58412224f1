"""The tool that runs commands."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from runner import run_spec
from runner.api import RunOptions
from runner.api.replay import replay
from runner.engine.contract import Cancellation, ToolResult
from runner.toolkit.python import FunctionTool

Call = Callable[..., ToolResult]


def test_a_command_says_what_it_prints(call: Call, workspace: Path) -> None:
    result = call("shell", command="echo one; echo two >&2; cat; pwd")
    assert result.content == f"one\ntwo\n{workspace}\n"
    assert result.details == {"exit_code": 0}


def test_how_a_command_failed_is_told(call: Call) -> None:
    result = call("shell", command="echo no; exit 3")
    assert result.is_error
    assert result.content == "no\nIt ended with exit code 3."
    assert call("shell", command="kill -9 $$").content == "It ended with signal 9."
    assert "null byte" in str(call("shell", command="a\0b").content)


def test_a_flood_is_cut_in_the_middle(call: Call) -> None:
    said = str(call("shell", command="head -c 20000000 /dev/zero | tr '\\0' x").content)
    assert len(said) < 8_500_000
    assert "bytes are left out" in said


def test_what_is_left_in_the_background_ends_too(call: Call, workspace: Path) -> None:
    said = str(call("shell", command="sleep 60 & echo $!").content)
    await_end(int(said))


def await_end(process: int) -> None:
    """Wait until a process is gone, or only waits to be reaped."""
    while True:
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            return
        if stat.rpartition(")")[2].split()[0] in "ZX":
            return
        time.sleep(0.01)


def await_text(file: Path) -> None:
    while not file.exists() or not file.read_bytes():
        time.sleep(0.01)


def test_it_stops_when_it_is_to_stop(made: Callable[[str], FunctionTool], workspace: Path) -> None:
    tool, cancellation = made("shell"), Cancellation()

    async def run() -> ToolResult:
        command = "trap '' TERM; echo begun; sleep 60 & echo $! > child; wait; sleep 60"
        work = asyncio.ensure_future(
            tool.execute("call_1", {"command": command}, lambda _: None, cancellation)
        )
        await asyncio.to_thread(await_text, workspace / "child")
        cancellation.cancel("enough")
        return await work

    result = asyncio.run(run())
    assert result.is_error
    assert "begun" in str(result.content)
    await_end(int((workspace / "child").read_bytes()))


def test_only_commands_that_are_allowed_are_run(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls:
        - {name: shell, arguments: {command: echo one}}
        - {name: shell, arguments: {command: "echo one; touch made"}}
    - text: "{{ last.text }}"
prompt: Hello
tools: [{use: shell, allow: ["echo *"]}]
""",
        "utf-8",
    )
    result = run_spec(spec, options=RunOptions(log="none", workspace=str(tmp_path)))
    assert '"touch made" is not allowed here' in result.text
    assert not (tmp_path / "made").exists()


def test_what_permissions_decided_is_played_back(tmp_path: Path) -> None:
    spec, log = tmp_path / "spec.yaml", tmp_path / "out.jsonl"
    spec.write_text(
        """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls:
        - {name: shell, arguments: {command: echo one}}
        - {name: shell, arguments: {command: touch made}}
        - {name: shell, arguments: {command: rm made}}
    - text: done
prompt: Hello
tools: [shell]
permissions: {allow: ["shell(echo *)"], deny: ["shell(rm *)"]}
""",
        "utf-8",
    )
    for yes in (False, True):
        log.unlink(missing_ok=True)
        options = RunOptions(log=str(log), workspace=str(tmp_path), yes=yes)
        assert run_spec(spec, options=options).status == "ok"
        assert (tmp_path / "made").exists() == yes
        assert replay(log).difference is None
        assert replay(log, real=["hooks"]).difference is None
