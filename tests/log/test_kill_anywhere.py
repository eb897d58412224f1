"""A run that is killed after any line of its log goes on from there, and its log replays."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from runner.api import Control, RunOptions, run_spec_async
from runner.api.replay import replay
from runner.api.resume import ResumeOptions, Resumption

PLAIN = """\
version: 1
model:
  provider: scripted
  script: [{tool_calls: [{name: ok}, {name: ok}]}, {text: a b, deltas: 2}]
prompt: Go
tools: [{name: ok, description: Ok., command: ["true"], idempotent: true}]
"""


def run(folder: Path, spec: str, abort_after: int | None = None) -> list[str]:
    """Run a spec, perhaps aborted after a line; gives the lines of its log."""
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")
    options = RunOptions(log=str(folder / "log.jsonl"), workspace=str(folder))
    control = Control()

    def abort(event: dict[str, Any]) -> None:
        if event["seq"] == abort_after:
            control.abort(2)

    work = run_spec_async(folder / "spec.yaml", options=options, control=control, on_event=abort)
    asyncio.run(work)
    return (folder / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)


def go_on(log: Path) -> tuple[str, str]:
    """Resume a log; gives the status and the text of the run."""
    result = asyncio.run(Resumption(log, ResumeOptions()).run())
    return result.status, result.text


def test_killed_after_any_line(tmp_path: Path) -> None:
    lines = run(tmp_path, PLAIN)
    log = tmp_path / "log.jsonl"
    for count in range(1, len(lines)):
        log.write_text("".join(lines[:count]), encoding="utf-8")
        assert go_on(log) == ("ok", "a b"), lines[count - 1]
        assert replay(log).difference is None, lines[count - 1]


def test_killed_twice(tmp_path: Path) -> None:
    lines = run(tmp_path, PLAIN)
    log = tmp_path / "log.jsonl"
    for count in range(1, len(lines), 3):
        log.write_text("".join(lines[:count]), encoding="utf-8")
        go_on(log)
        again = log.read_text(encoding="utf-8").splitlines(keepends=True)
        for place in range(count, len(again), 2):
            log.write_text("".join(again[:place]), encoding="utf-8")
            assert go_on(log) == ("ok", "a b"), again[place - 1]
            assert replay(log).difference is None, again[place - 1]


def test_a_request_that_was_under_way_is_made_and_told_again(tmp_path: Path) -> None:
    lines = run(tmp_path, PLAIN)
    place = max(n for n, line in enumerate(lines) if '"model_request"' in line)
    log = tmp_path / "log.jsonl"
    log.write_text("".join(lines[: place + 1]), encoding="utf-8")
    go_on(log)
    more = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()[place + 1 :]]

    assert [event["type"] for event in more[:3]] == ["run_resume", "model_request", "message_start"]
    assert more[1]["attempt"] == 2


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_aborted_after_any_line(tmp_path: Path, mode: str) -> None:
    spec = f"{PLAIN}tool_execution: {mode}\n"
    count, log = len(run(tmp_path, spec)), tmp_path / "log.jsonl"
    for place in range(count - 2):
        kept = run(tmp_path, spec, abort_after=place)
        assert replay(log).difference is None, kept[place]
        if json.loads(kept[-1])["status"] == "aborted":
            assert go_on(log) == ("ok", "a b"), kept[place]
            assert replay(log).difference is None, kept[place]
        log.unlink()


FAN_OUT = """\
version: 1
model: {provider: scripted, script: [{text: Go on.}]}
prompt: Go
follow_ups:
  tasks: [{id: each, for_each: "['a', 'b']", agent: ./one.yaml, inputs: {item: "{{ item }}"}}]
"""
ONE = """\
version: 1
inputs: {item: {type: string}}
model: {provider: scripted, script: [{tool_calls: [{name: ok}]}, {text: "{{ inputs.item }}"}]}
prompt: "{{ inputs.item }}"
tools: [{name: ok, description: Ok., command: ["true"], idempotent: true}]
"""


def test_killed_after_any_line_of_a_fan_out(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(ONE, encoding="utf-8")
    lines = run(tmp_path, FAN_OUT)
    log = tmp_path / "log.jsonl"
    for count in range(1, len(lines)):
        log.write_text("".join(lines[:count]), encoding="utf-8")
        assert go_on(log) == ("ok", "a\nb"), lines[count - 1]
        assert replay(log).difference is None, lines[count - 1]


def test_a_fan_out_aborted_after_any_line(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(ONE, encoding="utf-8")
    count, log = len(run(tmp_path, FAN_OUT)), tmp_path / "log.jsonl"
    for place in range(count - 2):
        kept = run(tmp_path, FAN_OUT, abort_after=place)
        found = replay(log).difference
        assert found is None, (kept[place], found)
        if json.loads(kept[-1])["status"] == "aborted":
            assert go_on(log) == ("ok", "a\nb"), kept[place]
            assert replay(log).difference is None, kept[place]
        log.unlink()


def test_killed_before_a_retry_was_told(tmp_path: Path) -> None:
    failing = "{text: a b, deltas: 2, error: overloaded, status: 529}"
    script = PLAIN.replace("{text: a b, deltas: 2}", f"{failing}, {{text: a b}}")
    lines = run(
        tmp_path, script.replace("{provider:", "{retry: {attempts: 2, max_delay: 0.01}, provider:")
    )
    log = tmp_path / "log.jsonl"
    assert any('"model_retry"' in line for line in lines)
    for count in range(1, len(lines)):
        log.write_text("".join(lines[:count]), encoding="utf-8")
        assert go_on(log) == ("ok", "a b"), lines[count - 1]
        assert replay(log).difference is None, lines[count - 1]


@pytest.mark.parametrize("spec", [PLAIN, FAN_OUT])
def test_killed_while_an_abort_ends_it(tmp_path: Path, spec: str) -> None:
    (tmp_path / "one.yaml").write_text(ONE, encoding="utf-8")
    text = "a b" if spec == PLAIN else "a\nb"
    count, log = len(run(tmp_path, spec)), tmp_path / "log.jsonl"
    for place in range(2, count - 2, 4):
        kept = run(tmp_path, spec, abort_after=place)
        for cut in range(place + 2, len(kept), 3):
            log.write_text("".join(kept[:cut]), encoding="utf-8")
            assert go_on(log) == ("ok", text), (place, kept[cut - 1])
            found = replay(log).difference
            assert found is None, (place, kept[cut - 1], found)
        log.unlink()
