"""What differed from its log in a replay, though nothing was another: each fault once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from runner.api import RunOptions, run_spec_async
from runner.api.replay import replay
from runner.log.read import read

OK = "tools: [{name: ok, description: Ok., parameters: {type: object}, command: ['true']}]\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where the spec is, by which a replay finds Python that runs again."""
    monkeypatch.chdir(tmp_path)


def recorded(folder: Path, spec: str, **options: Any) -> tuple[Path, str]:
    """Run a spec; gives its log and how it ended."""
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")
    log = folder / "log.jsonl"
    wanted = RunOptions(log=str(log), workspace=str(folder), **options)
    return log, asyncio.run(run_spec_async("spec.yaml", options=wanted)).status


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


@pytest.mark.parametrize(
    "body", ["raise ValueError(f'no {object()}')", "return object()", "return [len, object(), 1]"]
)
@pytest.mark.parametrize("on_error", ["warn", "fail"])
def test_a_hook_that_failed_with_the_address_of_an_object(
    tmp_path: Path, body: str, on_error: str
) -> None:
    (tmp_path / "hooks.py").write_text(f"def change(messages):\n    {body}\n", encoding="utf-8")
    log, status = recorded(
        tmp_path,
        "version: 1\nmodel: {provider: scripted, script: [{text: done}]}\nprompt: Go\n"
        f"hooks: {{transform_context: [{{python: './hooks.py:change', on_error: {on_error}}}]}}\n",
    )
    assert status == ("ok" if on_error == "warn" else "error")
    reasons = [e["reason"] for _, e in read(log) if e["type"] == "hook_decision"]
    assert len(reasons) == 1
    assert "0x" not in reasons[0]
    holds(log)


def test_what_was_taken_out_of_a_log_is_counted_once(tmp_path: Path) -> None:
    log, status = recorded(
        tmp_path,
        "version: 1\ninputs: {k: {type: string, secret: true}}\n"
        "system_prompt: It is {{ inputs.k }}\n"
        "prompt: Say {{ inputs.k }} and sk-ant-0123456789abcdefghij.\n"
        "model: {provider: scripted, script: [{tool_calls: [{name: ok}]}, "
        "{text: 'It is {{ inputs.k }}.', deltas: 9}, {text: 'Again {{ inputs.k }}'}]}\n"
        "log: {redact: [Say]}\nfollow_ups: {messages: [{text: Say more}]}\n" + OK,
        values={"k": "swordfish"},
    )
    assert status == "ok"
    text = log.read_text(encoding="utf-8")
    end = [event for _, event in read(log)][-1]
    assert end["redactions"] == text.count("[secret:k]") + text.count("[redacted")
    holds(log)


def test_a_hook_that_does_not_end_keeps_no_replay_from_ending(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(
        "import asyncio\n"
        "async def stubborn():\n"
        "    while True:\n"
        "        try:\n"
        "            await asyncio.sleep(60)\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n"
        "async def change(messages):\n"
        "    change.task = asyncio.get_running_loop().create_task(stubborn())\n"
        "    return messages\n",
        encoding="utf-8",
    )
    spec = "version: 1\nmodel: {provider: scripted, script: [{text: done}]}\nprompt: Go\n"
    log, _ = recorded(tmp_path, spec)
    # Recorded without the hook, since its own run would leave the task in this test's loop.
    spec += "hooks: {transform_context: [{python: './hooks.py:change'}]}\n"
    (tmp_path / "spec.yaml").write_text(spec, encoding="utf-8")
    assert replay(log, spec="spec.yaml").difference is None
