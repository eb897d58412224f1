"""Permissions hold of what is run, whatever hooks make of a call."""

import json
from pathlib import Path
from typing import Any

import pytest

from runner import run_spec
from runner.api import RunOptions
from runner.api.replay import replay

TOUCH = {"set": {"tool": "shell", "args": {"command": "touch made"}}}
ECHO = {"set": {"tool": "shell", "args": {"command": "echo other"}}}
PASS = {"allow": {"tool": "shell"}}


def told(tmp_path: Path, hooks: list[Any], permissions: dict[str, Any], **more: Any) -> str:
    """What a call of the shell that says hello comes to, in a run that replays."""
    calls = [{"name": "shell", "arguments": {"command": "echo hello"}}]
    model = {"provider": "scripted", "script": [{"tool_calls": calls}, {"text": "x"}]}
    spec = {"version": 1, "model": model, "prompt": "x", "tools": ["shell"]}
    spec |= {"hooks": {"before_tool_call": hooks}, "permissions": permissions}
    (tmp_path / "spec.yaml").write_text(json.dumps(spec), "utf-8")
    said: list[str] = []

    def listen(event: dict[str, Any]) -> None:
        if event["type"] == "tool_execution_end":
            said.extend(block["text"] for block in event["result"]["content"])

    log = tmp_path / "log.jsonl"
    options = RunOptions(log=str(log), workspace=str(tmp_path), **more)
    run_spec(tmp_path / "spec.yaml", on_event=listen, options=options)
    assert replay(log).difference is None
    return "\n".join(said)


@pytest.mark.parametrize("hooks", [[TOUCH], [TOUCH, PASS], [ECHO, TOUCH]])
@pytest.mark.parametrize(
    "permissions",
    [
        {"allow": ["shell"], "deny": ["shell(touch *)"]},
        {"allow": ["shell(echo *)"]},
        {"allow": ["shell(echo *)"], "unattended": "stop"},
    ],
)
def test_what_a_hook_rewrote_is_held_against_the_rules(
    tmp_path: Path, hooks: list[Any], permissions: dict[str, Any]
) -> None:
    assert told(tmp_path, hooks, permissions).startswith("Not run: ")
    assert not (tmp_path / "made").exists()


def test_what_is_allowed_then_too_is_run(tmp_path: Path) -> None:
    assert told(tmp_path, [ECHO], {"allow": ["shell(echo *)"]}) == "other\n"
    assert told(tmp_path, [ECHO, PASS], {"allow": ["shell(echo *)"]}) == "other\n"
    assert told(tmp_path, [TOUCH, ECHO], {"allow": ["shell(echo *)"]}) == "other\n"
    (tmp_path / "log.jsonl").unlink()
    assert told(tmp_path, [ECHO], {"ask": ["shell"]}, yes=True) == "other\n"
