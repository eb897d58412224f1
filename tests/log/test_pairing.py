"""Results belong to their calls by id alone: not by name, arguments, or who was first to finish."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from runner.api import RunOptions, run_spec
from runner.api.fork import Fork, ForkOptions
from runner.api.replay import replay
from runner.api.resume import ResumeOptions, Resumption

TOOLS = '''\
import itertools
import time

from runner import ToolContext

_COUNT = itertools.count(1)


def look(place: str, context: ToolContext) -> str:
    """Look at a place."""
    # The first call is the last to finish, and no two results are the same.
    time.sleep({"call_1": 0.2, "call_2": 0.1, "call_3": 0.05}.get(context.tool_call_id, 0))
    return f"{context.tool_call_id} saw it as number {next(_COUNT)}"


def listen(place: str, context: ToolContext) -> str:
    """Listen at a place."""
    return look(place, context)
'''
SPEC = """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls:
        - {name: look, arguments: {place: here}}
        - {name: look, arguments: {place: here}}
        - {name: look, arguments: {place: there}}
        - {name: listen, arguments: {place: here}}
    - text: >-
        {{ messages | selectattr('role', 'equalto', 'tool_result')
        | map(attribute='text') | join('; ') }}
    - {text: late}
prompt: Go
tools: [{python: "./tools.py:look"}, {python: "./tools.py:listen"}]
"""
CALLS = [f"call_{number}" for number in range(1, 5)]

Event = dict[str, Any]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    log = tmp_path / "log.jsonl"
    options = RunOptions(log=str(log), workspace=str(tmp_path))
    assert run_spec(tmp_path / "spec.yaml", options=options).status == "ok"
    return log


def read(log: Path) -> list[Event]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def text(content: list[Event]) -> str:
    return "".join(block["text"] for block in content)


def finished(events: list[Event]) -> list[tuple[str, str]]:
    """Each call's id and result, in the order in which they finished."""
    ends = [event for event in events if event["type"] == "tool_execution_end"]
    return [(end["tool_call_id"], text(end["result"]["content"])) for end in ends]


def results(events: list[Event]) -> list[tuple[str, str]]:
    """Each call's id and result, in the order in which the model reads them."""
    said = [event["message"] for event in events if event["type"] == "message_end"]
    return [
        (message["tool_call_id"], text(message["content"]))
        for message in said
        if message["role"] == "tool_result"
    ]


def test_the_run_itself(log: Path) -> None:
    events = read(log)
    said = dict(finished(events))
    assert [call for call, _ in finished(events)] == CALLS[::-1]
    assert results(events) == [(call, said[call]) for call in CALLS]
    assert len(set(said.values())) == 4
    assert events[-1]["text"] == "; ".join(said[call] for call in CALLS)


def test_replayed(log: Path) -> None:
    assert replay(log).difference is None


@pytest.mark.parametrize("pair", [("call_1", "call_2"), ("call_2", "call_4")])
def test_results_that_were_exchanged_are_noticed(log: Path, pair: tuple[str, str]) -> None:
    events = read(log)
    one, other = (
        next(e for e in events if e["type"] == "tool_execution_end" and e["tool_call_id"] == call)
        for call in pair
    )
    one["result"], other["result"] = other["result"], one["result"]
    log.write_text("".join(json.dumps(e) + "\n" for e in events), encoding="utf-8")

    parting = replay(log).difference

    assert parting is not None
    assert parting.type.startswith("message_")
    assert parting.path.endswith("content[0].text")


@pytest.mark.parametrize("whole", [1, 2, 3])
def test_resumed_when_some_had_finished(log: Path, whole: int) -> None:
    """What had finished keeps its result; what had not is unknown, and the ids say which."""
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    ends = [n for n, line in enumerate(lines) if '"tool_execution_end"' in line]
    before = dict(finished(read(log))[:whole])
    log.write_text("".join(lines[: ends[whole - 1] + 1]), encoding="utf-8")

    result = asyncio.run(Resumption(log, ResumeOptions()).run())

    assert result.status == "ok"
    events = read(log)
    after = dict(results(events))
    assert list(after) == CALLS
    for call in CALLS:
        assert after[call] == before[call] if call in before else "unknown" in after[call]
    assert [call for call, _ in finished(events)][:whole] == CALLS[::-1][:whole]
    assert replay(log).difference is None


def test_resumed_after_all_had_finished(log: Path) -> None:
    before = results(read(log))
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    last = [n for n, line in enumerate(lines) if '"tool_execution_end"' in line][-1]
    log.write_text("".join(lines[: last + 1]), encoding="utf-8")

    result = asyncio.run(Resumption(log, ResumeOptions()).run())

    assert result.text == "; ".join(said for _, said in before)
    assert results(read(log)) == before
    assert replay(log).difference is None


@pytest.mark.parametrize("call", CALLS)
def test_forked_with_another_result(log: Path, tmp_path: Path, call: str) -> None:
    before = results(read(log))
    other = tmp_path / "other.txt"
    other.write_text("nothing at all", encoding="utf-8")
    fork = tmp_path / "fork.jsonl"
    options = ForkOptions(2, overrides={call: str(other)}, log=str(fork), workspace=str(tmp_path))

    result = asyncio.run(Fork(log, options).run())

    expected = [(one, "nothing at all" if one == call else said) for one, said in before]
    assert results(read(fork)) == expected
    assert result.text == "; ".join(said for _, said in expected)
    assert [one for one, _ in finished(read(fork))] == CALLS[::-1]
    assert replay(fork).difference is None
