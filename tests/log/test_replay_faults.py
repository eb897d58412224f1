"""What differed from its log in a replay, though nothing was another: each fault once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from runner.api import RunOptions, run_spec_async
from runner.api.replay import replay
from runner.log.read import read

OK = "tools: [{name: ok, description: Ok., parameters: {type: object}, command: ['true']}]\n"


def recorded(folder: Path, spec: str, **options: Any) -> tuple[Path, str]:
    """Run a spec; gives its log and how it ended."""
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")
    log = folder / "log.jsonl"
    wanted = RunOptions(log=str(log), workspace=str(folder), **options)
    return log, asyncio.run(run_spec_async(folder / "spec.yaml", options=wanted)).status


def holds(log: Path) -> None:
    """A log replays as it was recorded."""
    found = replay(log)
    assert found.difference is None, found.difference


@pytest.mark.parametrize("point", ["stop_after_turn", "steering_messages", "follow_up_messages"])
def test_time_was_up_while_a_hook_at_a_turns_end_was_asked(tmp_path: Path, point: str) -> None:
    script = "[{text: done}]" if point.startswith("follow") else "[{tool_calls: [{name: ok}]}]"
    log, status = recorded(
        tmp_path,
        f"version: 1\nmodel: {{provider: scripted, script: {script}}}\nprompt: Go\n"
        f"hooks: {{{point}: [{{command: [sleep, '60']}}]}}\nlimits: {{seconds: 0.6}}\n{OK}",
    )
    assert status == "limit"
    holds(log)


@pytest.mark.parametrize("whose", ["the agent's", "the run's"])
def test_time_was_up_in_a_hook_of_an_agent(tmp_path: Path, whose: str) -> None:
    limits = "limits: {seconds: 0.6}\n"
    (tmp_path / "sub.yaml").write_text(
        "version: 1\nmodel: {provider: scripted, script: [{tool_calls: [{name: ok}]}]}\n"
        "prompt: Go\nhooks: {stop_after_turn: [{command: [sleep, '60']}]}\n"
        + (limits if whose == "the agent's" else "")
        + OK,
        encoding="utf-8",
    )
    log, _ = recorded(
        tmp_path,
        "version: 1\nprompt: Go\n"
        "model: {provider: scripted, script: [{tool_calls: [{name: sub}]}, {text: x}]}\n"
        "tools: [{agent: ./sub.yaml}]\n" + (limits if whose == "the run's" else ""),
    )
    assert [e["limit"] for _, e in read(log) if e["type"] == "limit_reached"] == ["seconds"]
    holds(log)
