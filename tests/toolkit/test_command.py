import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.engine.contract import Cancellation, ToolResult
from runner.error import TemplateError
from runner.process import StartError
from runner.toolkit.command import CommandTool


async def inherited() -> dict[str, str]:
    return dict(os.environ)


def render(template: str, values: Mapping[str, Any]) -> str:
    """A small language of templates: ``<name>`` is the argument of that name."""
    if not template.startswith("<"):
        return template
    try:
        return str(values["args"][template.strip("<>")])
    except KeyError as error:
        raise TemplateError(f"args has no {error}") from error


def command(*argv: str, at: Path, folder: Path | None = None) -> CommandTool:
    return CommandTool(
        "say",
        "Say it.",
        {"type": "object"},
        argv,
        render=render,
        folder=folder or at,
        workspace=at,
        environment=inherited,
    )


def result(made: CommandTool, **arguments: Any) -> ToolResult:
    return asyncio.run(made.execute("call_1", arguments, lambda _: None, Cancellation()))


def test_each_item_is_one_argument_whatever_is_in_it(tmp_path: Path) -> None:
    text = "a 'b' \"c\"; touch made.txt $(touch made.txt) <x>"
    made = command("printf", "[%s][%s]", "<text>", "<none>", at=tmp_path)
    assert result(made, text=text, none="") == ToolResult(f"[{text}][]", {"exit_code": 0})
    assert list(tmp_path.iterdir()) == []


def test_an_argument_that_is_not_given_is_told(tmp_path: Path) -> None:
    given = result(command("echo", "<word>", at=tmp_path))
    assert given.is_error
    assert given.content == "The command can't be made: args has no 'word'"


def test_it_runs_in_the_workspace_and_a_program_of_the_spec_is_found(tmp_path: Path) -> None:
    specs, room = tmp_path / "specs", tmp_path / "room"
    specs.mkdir()
    room.mkdir()
    (specs / "go.sh").write_text("#!/bin/sh\npwd; cat", encoding="utf-8")
    (specs / "go.sh").chmod(0o755)
    assert result(command("./go.sh", at=room, folder=specs)).content == f"{room}\n"
    (specs / "in").mkdir()
    assert result(command("../go.sh", at=room, folder=specs / "in")).content == f"{room}\n"


def test_how_it_failed_is_told_with_what_it_said(tmp_path: Path) -> None:
    given = result(command("sh", "-c", "echo out; echo went wrong >&2; exit 7", at=tmp_path))
    assert given == ToolResult(
        "out\nwent wrong\nIt ended with exit code 7.", {"exit_code": 7}, is_error=True
    )
    given = result(command("sh", "-c", "kill -9 $$", at=tmp_path))
    assert given == ToolResult("It was ended by signal 9.", {"exit_code": -9}, is_error=True)


def test_what_it_says_is_kept_as_it_is(tmp_path: Path) -> None:
    assert result(command("printf", r"\n x \n", at=tmp_path)).content == "\n x \n"
    assert result(command("sh", "-c", "echo only here >&2", at=tmp_path)).content == "only here\n"


def test_a_program_that_can_not_be_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="no-such-program-here"):
        result(command("no-such-program-here", at=tmp_path))
    with pytest.raises(StartError, match="null byte"):
        result(command("echo", "<text>", at=tmp_path), text="a\0b")


def test_output_is_bounded(tmp_path: Path) -> None:
    given = result(command("sh", "-c", "yes | head -c 9000000", at=tmp_path))
    assert given.details["left_out"] > 0
    assert len(given.content) < 3_000_000
    assert "bytes are left out here" in str(given.content)


def test_what_was_said_before_it_was_stopped_is_the_result(tmp_path: Path) -> None:
    async def main() -> ToolResult:
        made = command("sh", "-c", "echo first words; touch said; sleep 60", at=tmp_path)
        task = asyncio.create_task(made.execute("1", {}, lambda _: None, Cancellation()))
        said = tmp_path / "said"
        while not said.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        return await task

    assert asyncio.run(main()) == ToolResult("first words", is_error=True)
