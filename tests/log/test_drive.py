"""What of a run that went wrong has to come out again when its log is replayed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from runner.api import Control, RunOptions, run_spec_async
from runner.api.replay import replay

TOOLS = """\
tools:
  - {name: ok, description: Ok., parameters: {type: object}, command: ["true"]}
  - name: number
    description: Take a number.
    parameters: {type: object, properties: {n: {type: integer}}}
    command: [printf, "{{ args.n }}"]
"""


def recorded(folder: Path, spec: str, **options: Any) -> tuple[Path, str]:
    """Run a spec; gives its log and how it ended."""
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")
    log = folder / "log.jsonl"
    wanted = RunOptions(log=str(log), workspace=str(folder), **options)
    return log, asyncio.run(run_spec_async(folder / "spec.yaml", options=wanted)).status


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
@pytest.mark.parametrize(
    "calls",
    [
        "[{name: number, arguments: {n: x}}]",
        "[{name: ok}, {name: number, arguments: {n: x}}, {name: ok}]",
        "[{name: number, arguments: {n: x}}, {name: none}, {name: number, arguments: '{'}]",
    ],
)
def test_calls_that_were_refused_are_refused_again(tmp_path: Path, calls: str, mode: str) -> None:
    script = f"[{{tool_calls: {calls}}}, {{text: done}}]"
    spec = f"version: 1\nmodel: {{provider: scripted, script: {script}}}\nprompt: Go\n"
    log, status = recorded(tmp_path, f"{spec}tool_execution: {mode}\n{TOOLS}")
    assert status == "ok"
    found = replay(log)
    assert found.difference is None, found.difference


def test_a_call_whose_hook_was_interrupted_is_not_run(tmp_path: Path) -> None:
    spec = f"""\
version: 1
model: {{provider: scripted, script: [{{tool_calls: [{{name: ok}}]}}, {{text: done}}]}}
prompt: Go
hooks: {{before_tool_call: [{{command: [sleep, "60"]}}]}}
{TOOLS}"""
    (tmp_path / "spec.yaml").write_text(spec, encoding="utf-8")
    log = tmp_path / "log.jsonl"
    control = Control()

    def abort_at_the_call(event: dict[str, Any]) -> None:
        if event["type"] == "tool_execution_start":
            asyncio.get_running_loop().call_soon(control.abort)

    options = RunOptions(log=str(log), workspace=str(tmp_path))
    result = asyncio.run(
        run_spec_async(
            tmp_path / "spec.yaml", options=options, on_event=abort_at_the_call, control=control
        )
    )
    assert (result.status, result.tool_calls) == ("aborted", 0)
    found = replay(log)
    assert found.difference is None, found.difference


@pytest.mark.parametrize("secret", ["s", "system", "tools"])
def test_a_secret_that_is_part_of_our_own_names(tmp_path: Path, secret: str) -> None:
    spec = """\
version: 1
inputs: {k: {type: string, secret: true}}
model: {provider: scripted, script: [{text: done}]}
prompt: Go
"""
    log, status = recorded(tmp_path, spec, values={"k": secret})
    assert status == "ok"
    assert json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["type"] == "run_end"


@pytest.mark.parametrize("hook", ["", 'hooks: {stop_after_turn: [{command: [sleep, "60"]}]}'])
def test_a_run_that_was_aborted_at_a_turns_end(tmp_path: Path, hook: str) -> None:
    spec = f"""\
version: 1
model: {{provider: scripted, script: [{{tool_calls: [{{name: ok}}]}}, {{text: done, delay: 60}}]}}
prompt: Go
{hook}
{TOOLS}"""
    (tmp_path / "spec.yaml").write_text(spec, encoding="utf-8")
    log = tmp_path / "log.jsonl"
    control = Control()

    def abort_after_the_turn(event: dict[str, Any]) -> None:
        if event["type"] == "turn_end":
            asyncio.get_running_loop().call_soon(control.abort)

    options = RunOptions(log=str(log), workspace=str(tmp_path))
    result = asyncio.run(
        run_spec_async(
            tmp_path / "spec.yaml", options=options, on_event=abort_after_the_turn, control=control
        )
    )
    assert result.status == "aborted"
    found = replay(log)
    assert found.difference is None, found.difference


def test_options_may_be_shared_by_runs(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(
        "version: 1\ninputs: {k: {type: string}}\nprompt: Go\n"
        "model: {provider: scripted, script: [{text: '{{ inputs.k }}'}]}\n",
        encoding="utf-8",
    )
    options = RunOptions(log="none")
    run = run_spec_async(tmp_path / "spec.yaml", inputs={"k": "one"}, options=options)
    assert asyncio.run(run).text == "one"
    assert options.values == {}


def test_messages_that_came_from_outside_at_once(tmp_path: Path) -> None:
    script = "[{tool_calls: [{name: ok}]}, {text: a}, {text: b}, {text: c}]"
    spec = f"version: 1\nmodel: {{provider: scripted, script: {script}}}\nprompt: Go\n{TOOLS}"
    spec += "steering: {messages: [{after_tool: ok, text: By the spec.}]}\n"
    (tmp_path / "spec.yaml").write_text(spec, encoding="utf-8")
    log = tmp_path / "log.jsonl"
    control = Control()

    def put(event: dict[str, Any]) -> None:
        if event["type"] == "tool_execution_start":
            for text in ("one", "two"):
                control.steer(text)
                control.follow_up(f"Then {text}.")

    options = RunOptions(log=str(log), workspace=str(tmp_path))
    work = run_spec_async(tmp_path / "spec.yaml", options=options, control=control, on_event=put)
    assert asyncio.run(work).status == "ok"
    queued = [line for line in log.read_text("utf-8").splitlines() if '"message_queued"' in line]
    assert len(queued) == 5
    found = replay(log)
    assert found.difference is None, found.difference
