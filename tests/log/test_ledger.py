"""A run that is killed at any moment and resumed has had each of its effects once."""

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runner.api import RunOptions, run_spec

DRIVER = Path(__file__).with_name("killed_runs.py")

TOOLS = '''\
from runner import ToolContext, tool


@tool
def note(word: str, context: ToolContext) -> str:
    """Write a word down."""
    with open(f"{context.workspace}/ledger.txt", "a", encoding="utf-8") as ledger:
        ledger.write(f"main {word}\\n")
    return f"noted {word}"


@tool(idempotent=True)
def again(word: str, context: ToolContext) -> str:
    """Write a word down, once or more."""
    return note(word, context)
'''
SPEC = """\
version: 1
model:
  provider: scripted
  script:
    - {text: one two, deltas: 2, tool_calls: [
        {name: note, arguments: {word: a}}, {name: again, arguments: {word: b}},
        {name: note, arguments: {word: c}}]}
    - {tool_calls: [{name: note, arguments: {word: d}}, {name: ask, arguments: {item: z}}]}
    - {text: '{"items": ["x", "y"]}'}
    - {tool_calls: [{name: again, arguments: {word: e}}]}
    - {text: the end}
prompt: Go
output: {schema: {type: object, properties: {items: {type: array}}}}
tools:
  - {python: ./tools.py:note}
  - {python: ./tools.py:again}
  - {agent: ./item.yaml, name: ask}
follow_ups:
  tasks:
    - id: each
      agent: ./item.yaml
      for_each: tasks.main.output.items
      inputs: {item: "{{ item }}"}
    - {id: last, prompt: "{{ tasks.each.text }}"}
"""
ITEM = """\
version: 1
inputs: {item: {type: string}}
model:
  provider: scripted
  script:
    - {tool_calls: [{name: write, arguments: {word: f}}, {name: rewrite, arguments: {word: g}}]}
    - {text: "{{ inputs.item }} is done"}
prompt: "{{ inputs.item }}"
tools:
  - name: write
    description: Write.
    parameters: {type: object, properties: {word: {type: string}}}
    command: [sh, -c, 'echo "$0" >> ledger.txt', "{{ inputs.item }} {{ args.word }}"]
  - name: rewrite
    description: Write again.
    idempotent: true
    parameters: {type: object, properties: {word: {type: string}}}
    command: [sh, -c, 'echo "$0" >> ledger.txt', "{{ inputs.item }} {{ args.word }}"]
"""
IDEMPOTENT = {"b", "e", "g"}
WHO = {"main": "main", "main/item#1": "z", "main/item#2": "x", "main/item#3": "y"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("tools.py", TOOLS), ("spec.yaml", SPEC), ("item.yaml", ITEM)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def killed_runs(folder: Path, seed: int, runs: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(folder), str(seed), str(runs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def hold(run: dict[str, Any]) -> None:
    """What is promised of a run that was killed and went on."""
    if not run["begun"]:
        assert run["ledger"] == []
        return
    assert run["difference"] is None, run
    assert (run["status"], run["text"]) == ("ok", "the end"), run
    effects = Counter(run["ledger"])
    for word, times in effects.items():
        assert times == 1 or word.split()[1] in IDEMPOTENT, run
    for finished in run["finished"]:
        for call in finished:
            agent, word = call.rsplit(" ", 1)
            if agent in WHO and word != "None":
                assert effects[f"{WHO[agent]} {word}"] >= 1, (call, run)


def hold_finished_are_not_run_again(run: dict[str, Any]) -> None:
    """What had ended when the run was killed is there once, even of idempotent tools."""
    effects = Counter(run["ledger"])
    first, *_ = run["finished"]
    if len(run["moments"]) == 1:
        for call in first:
            agent, word = call.rsplit(" ", 1)
            if word != "None":
                assert effects[f"{WHO[agent]} {word}"] == 1, (call, run)


def test_the_run_itself(folder: Path) -> None:
    result = run_spec(folder / "spec.yaml", options=RunOptions(log="none", workspace=str(folder)))

    assert (result.status, result.text) == ("ok", "the end")
    ledger = (folder / "ledger.txt").read_text(encoding="utf-8").split("\n")[:-1]
    own = [f"main {word}" for word in "abcde"]
    assert sorted(ledger) == sorted([*own, *(f"{item} {word}" for item in "xyz" for word in "fg")])


@pytest.mark.parametrize(
    "runs", [6, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]
)
def test_killed_at_random_moments(folder: Path, runs: int) -> None:
    parts = [folder / "one", folder / "two"]
    for part in parts:
        part.mkdir()
        for name in ("tools.py", "spec.yaml", "item.yaml"):
            (part / name).write_bytes((folder / name).read_bytes())

    with ThreadPoolExecutor(2) as pool:
        told = [
            run
            for part in pool.map(lambda n: killed_runs(parts[n], n, runs), range(2))
            for run in part
        ]

    assert len(told) == 2 * runs
    for run in told:
        hold(run)
        hold_finished_are_not_run_again(run)
    # The moments are worth something only where most fell into the run's work.
    assert sum(bool(run["begun"] and run["finished"][0]) for run in told) > runs
