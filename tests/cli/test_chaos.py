"""Runs that are made to fail wherever they can."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.api.chaos import Chaos
from runner.log.invariants import broken
from runner.log.read import read

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]

SPEC = """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls: [{name: note, arguments: {text: one}}, {name: note, arguments: {text: two}}]
    - {text: Noted., deltas: 3}
prompt: Note it.
tools:
  - name: note
    description: Note a text.
    parameters: {type: object, properties: {text: {type: string}}}
    command: [sh, -c, 'echo "$1" >> notes.txt', sh, "{{ args.text }}"]
steering: {messages: [{after_tool: note, text: Be brief.}]}
expect: [{contains: Noted}, {tool_called: {name: note, times: 2}}]
"""
HOOKS = """\
hooks:
  transform_context: [{trim: {max_tokens: 1000}}]
  before_tool_call:
    - {deny: {tool: note, when: "args.text == 'two'", reason: no}}
    - {python: "./hooks.py:before"}
  after_tool_call: [{truncate: {max_chars: 100}}, {python: "./hooks.py:after"}]
  stop_after_turn: [{command: ["false"], on_error: warn}]
  steering_messages: [{python: "./hooks.py:steer"}]
"""
HOOKS_FILE = """\
given = []


def before(call):
    return {"arguments": {"text": "three"}}


def after(call):
    return {"content": "changed"}


def steer():
    given.append(1)
    return ["Be kind."] if len(given) == 1 else []
"""


def told(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.stdout, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_every_point_of_a_sound_run_is_survived(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec(text=SPEC)
    done = pi_run("chaos", "spec.yaml", "--log", "log.jsonl", "--format", "json")

    result = told(done)
    assert [point for point in result["points"] if not point["survived"]] == []
    assert (done.returncode, result["broken"]) == (0, 0)
    assert {point["kind"] for point in result["points"]} == {"model", "tool", "crash", "abort"}
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert list(folder.glob("*.jsonl")) == [folder / "log.jsonl"]


def test_hooks_fail_as_well(pi_run: PiRun, spec: Write, folder: Path) -> None:
    text = SPEC.replace("expect: [{contains: Noted}, {tool_called: {name: note, times: 2}}]\n", "")
    spec(text=text + HOOKS)
    spec("hooks.py", text=HOOKS_FILE)
    result = told(pi_run("chaos", "spec.yaml", "--format", "json"))

    assert [point for point in result["points"] if not point["survived"]] == []
    hooks = {p["where"]: p["status"] for p in result["points"] if p["kind"] == "hook"}
    assert hooks == {
        "hooks.before_tool_call[1], call 1": "ok",
        "hooks.after_tool_call[1], call 1": "ok",
        "hooks.stop_after_turn[0], call 1": "ok",
        "hooks.steering_messages[0], call 1": "error",
        "hooks.stop_after_turn[0], call 2": "ok",
        "hooks.steering_messages[0], call 2": "error",
    }


def test_the_same_seed_does_the_same(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec(text=SPEC)
    pi_run("spec.yaml", "--log", "log.jsonl")
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = ("--points", "12", "--seed", str(seed), "--keep", name, "--keep-all")
        assert pi_run("chaos", "log.jsonl", *options).returncode == 0
    a, b, c = (
        {file.name: file.read_bytes() for file in (folder / name).iterdir()} for name in "abc"
    )

    assert len(a) == 12
    assert a == b
    assert a != c


def test_an_expectation_that_is_missed_is_no_survival(
    pi_run: PiRun, spec: Write, folder: Path
) -> None:
    spec(
        text="""\
version: 1
model: {provider: scripted, script: [{text: a}, {tool_calls: [{name: ok}]}, {text: b}]}
prompt: Go
tools: [{name: ok, description: Ok., command: ["true"]}]
follow_ups: {tasks: [{id: more, prompt: More., on_error: continue}]}
expect: [{tool_called: ok}, {equals: b}]
"""
    )
    done = pi_run("chaos", "spec.yaml", "--only", "model", "--keep", "kept")

    assert done.returncode == 1
    assert "model call 2  bad_request       failed  broken\n  an expectation of main" in done.stdout
    assert done.stdout.endswith("22 points: 20 survived, 2 broken\n")
    kept = sorted((folder / "kept").iterdir())
    assert len(kept) == 2
    for log in kept:
        assert broken(event for _, event in read(log)) == []
        assert pi_run("replay", str(log)).returncode == 0


def test_what_is_wrong_with_the_call_is_told(pi_run: PiRun, spec: Write) -> None:
    spec(text=SPEC)
    pi_run("spec.yaml", "--log", "log.jsonl")
    for words, code, said in (
        (["log.jsonl", "--only", "hook"], 2, "no point of kind hook"),
        (["log.jsonl", "-i", "a=b"], 2, "is a log"),
        (["log.jsonl", "--keep-all"], 2, "--keep DIR"),
        (["nothing"], 2, "nothing"),
        (["nothing.yaml"], 2, "nothing.yaml"),
        (["spec.yaml", "--log", "none"], 2, "name a file"),
    ):
        done = pi_run("chaos", *words)
        assert (done.returncode, done.stdout) == (code, ""), words
        assert said in done.stderr


@pytest.mark.parametrize("kind", ["crash", "abort", "tool"])
def test_a_fan_out_survives(pi_run: PiRun, spec: Write, folder: Path, kind: str) -> None:
    one = """\
version: 1
inputs: {item: {type: string}}
model: {provider: scripted, script: [{tool_calls: [{name: ok}]}, {text: "{{ inputs.item }}"}]}
prompt: "{{ inputs.item }}"
tools: [{name: ok, description: Ok., command: ["true"], idempotent: true}]
"""
    spec("one.yaml", text=one)
    task = """{id: each, for_each: "['a', 'b']", agent: ./one.yaml, inputs: {item: "{{ item }}"}}"""
    spec(more=f"follow_ups: {{tasks: [{task}]}}\n")
    pi_run("spec.yaml", "--log", "log.jsonl")
    chaos = Chaos(folder / "log.jsonl")
    found = [chaos.run(point) for point in chaos.points() if point.kind == kind]

    assert len(found) > 5
    assert [(one.point, one.broken) for one in found if one.broken] == []


def test_a_log_that_broke_off_does_too(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec(text=SPEC)
    pi_run("spec.yaml", "--log", "log.jsonl")
    log = folder / "log.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    log.write_text("".join(lines[:20]) + lines[20][:10], encoding="utf-8")
    done = pi_run("chaos", "log.jsonl", "--points", "30")

    assert done.returncode == 0
    assert "is dropped" in done.stderr
    assert "it broke off" in done.stderr
