"""Forks of a log, whose own logs replay like any other's."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.log.read import read

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]

SPEC = """\
version: 1
model:
  provider: scripted
  script:
    - {tool_calls: [{name: look}]}
    - {text: "I see {{ last.text }}."}
    - {text: "So {{ last.text }}."}
system_prompt: You look.
prompt: Look.
tools: [{name: look, description: Look., parameters: {type: object}, command: [printf, rain]}]
follow_ups: {messages: [{text: And?}]}
"""


@pytest.fixture
def log(pi_run: PiRun, folder: Path) -> Path:
    (folder / "spec.yaml").write_text(SPEC, encoding="utf-8")
    pi_run("spec.yaml", "--log", "log.jsonl")
    return folder / "log.jsonl"


def test_a_fork_by_a_changed_spec_tells_that_spec(pi_run: PiRun, log: Path) -> None:
    changed = SPEC.replace("You look", "You listen").replace("So {{", "Thus {{")
    Path("new.yaml").write_text(changed, encoding="utf-8")
    words = ["--from-turn", "3", "--spec", "new.yaml", "--log", "fork.jsonl"]
    assert pi_run("replay", str(log), *words).stdout == "Thus And?.\n"
    start = next(event for _, event in read("fork.jsonl"))
    assert start["plan"]["system_prompt"] == "You listen."
    assert (start["spec"]["name"], start["forked_from"]["turn"]) == ("new", 3)
    assert pi_run("replay", "fork.jsonl").returncode == 0


@pytest.mark.parametrize("replaced", ["call_1", "m3", "m2", "m1"])
def test_a_fork_with_another_content_replays(pi_run: PiRun, log: Path, replaced: str) -> None:
    Path("other.txt").write_text("snow", encoding="utf-8")
    words = ["--from-turn", "2", "--override", f"{replaced}=other.txt", "--log", "fork.jsonl"]
    fork = pi_run("replay", str(log), *words)
    assert fork.returncode == 0
    again = pi_run("replay", "fork.jsonl")
    assert again.returncode == 0, again.stdout


def test_a_fork_prints_its_log(pi_run: PiRun, log: Path) -> None:
    fork = pi_run("replay", str(log), "--from-turn", "2", "--log", "-", "--quiet")
    Path("fork.jsonl").write_text(fork.stdout, encoding="utf-8")
    assert fork.stderr == ""
    assert pi_run("replay", "fork.jsonl").returncode == 0
    assert not Path("-").exists()
