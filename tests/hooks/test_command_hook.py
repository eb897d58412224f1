import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from runner.hooks.command import command_hook
from runner.process import StartError


async def inherited() -> dict[str, str]:
    return dict(os.environ)


def ask(*argv: str, at: Path, given: tuple[Any, ...] = ({},), timeout: float | None = None) -> Any:
    hook = command_hook(
        lambda: argv,
        folder=at,
        workspace=at,
        environment=inherited,
        timeout=timeout,
    )
    return asyncio.run(hook(*given))


def fault(*argv: str, at: Path, timeout: float | None = None) -> str:
    with pytest.raises((ValueError, StartError)) as raised:
        ask(*argv, at=at, timeout=timeout)
    return str(raised.value)


def test_it_reads_json_and_answers_with_json(tmp_path: Path) -> None:
    assert ask("cat", at=tmp_path, given=({"a": ["ä\ud83d\n"]},)) == {"a": ["ä\ud83d\n"]}
    assert ask("cat", at=tmp_path, given=()) == {}
    assert ask("echo", "null", at=tmp_path) is None
    history = [{"text": "x" * 1000}] * 5000
    assert ask("cat", at=tmp_path, given=(history,)) == history


def test_one_that_reads_nothing_may_answer_all_the_same(tmp_path: Path) -> None:
    history = [{"text": "x" * 1000}] * 1000
    assert ask("echo", '["Be brief."]', at=tmp_path, given=(history,)) == ["Be brief."]


def test_a_program_of_the_spec_is_found(tmp_path: Path) -> None:
    script = tmp_path / "audit.sh"
    script.write_text("#!/bin/sh\necho '{\"block\": true}'", encoding="utf-8")
    script.chmod(0o755)
    assert ask("./audit.sh", at=tmp_path) == {"block": True}


def test_each_fault_is_told_apart(tmp_path: Path) -> None:
    assert "no-such-auditor-here\" can't be started" in fault("no-such-auditor-here", at=tmp_path)
    assert fault("sleep", "15", at=tmp_path, timeout=0.1) == "sleep timed out after 0.1 s"
    said = fault("sh", "-c", "echo it broke >&2; exit 3", at=tmp_path)
    assert said == "sh ended with exit code 3: it broke"
    assert fault("sh", "-c", "exit 3", at=tmp_path) == "sh ended with exit code 3"
    assert fault("echo", "yes!", at=tmp_path).startswith("echo said no JSON: ")
    assert fault("echo", "NaN", at=tmp_path).startswith("echo said no JSON: ")
    assert "said nothing" in fault("true", at=tmp_path)
    assert "more than" in fault("sh", "-c", "yes | head -c 40000000", at=tmp_path)
