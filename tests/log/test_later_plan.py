"""A run that was resumed by another plan replays by both, each in its part."""

import asyncio
from pathlib import Path

import pytest

from runner.api import RunOptions, run_spec
from runner.api.replay import replay
from runner.api.resume import ResumeOptions, Resumption

SPEC = """\
version: 1
model: {provider: scripted, script: [{tool_calls: [{name: ok}], repeat: 3}, {text: done}]}
system_prompt: Be short.
prompt: Go
limits: {turns: 2}
tools: [{name: ok, description: Ok., parameters: {type: object}, command: ["true"]}]
"""
CHANGES = {"turns: 2": "turns: 9", "Be short": "Be long", "Ok.": "Okay.", "done": "well done"}


def resume(log: Path) -> str:
    return asyncio.run(Resumption(log, ResumeOptions(accept_spec_change=True)).run()).status


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """That of a run which ended at a limit."""
    spec, log = tmp_path / "spec.yaml", tmp_path / "log.jsonl"
    spec.write_text(SPEC, encoding="utf-8")
    assert run_spec(spec, options=RunOptions(log=str(log))).status == "limit"
    return log


def change_spec(folder: Path) -> None:
    text = SPEC
    for old, new in CHANGES.items():
        text = text.replace(old, new)
    (folder / "spec.yaml").write_text(text, encoding="utf-8")


def test_after_an_end(log: Path) -> None:
    change_spec(log.parent)

    assert resume(log) == "ok"

    assert replay(log).difference is None


@pytest.mark.parametrize("cut", ['"type":"turn_end"', '"type":"tool_execution_end"'])
def test_after_a_kill(log: Path, cut: str) -> None:
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    last = next(n for n, line in enumerate(lines) if cut in line)
    log.write_text("".join(lines[:last]), encoding="utf-8")
    change_spec(log.parent)

    assert resume(log) == "ok"

    assert replay(log).difference is None


def test_twice(log: Path) -> None:
    change_spec(log.parent)
    spec = log.parent / "spec.yaml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("turns: 9", "turns: 3"), "utf-8")
    assert resume(log) == "limit"
    change_spec(log.parent)
    assert resume(log) == "ok"

    assert replay(log).difference is None
