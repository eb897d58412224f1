"""Secrets that are also a name, an id or a word of the log: it can be replayed all the same."""

import asyncio
from pathlib import Path

import pytest

from runner.api import RunOptions, run_spec_async
from runner.api.replay import replay
from runner.log.read import read

SUB = "version: 1\nmodel: {provider: scripted, script: [{text: hi}]}\nprompt: Go\n"
SPEC = """\
version: 1
name: tale
inputs: {k: {type: string, secret: true}}
model:
  provider: scripted
  script:
    - {tool_calls: [{name: roll}, {name: roll}, {name: helper}]}
    - {text: "It is {{ inputs.k }}.", deltas: 3}
    - {text: more, usage: {input: 500, output: 500}}
    - {text: again}
prompt: "Go, {{ inputs.k }}"
messages: [{role: user, text: "Hello, {{ inputs.k }}"}]
tools:
  - {name: roll, description: A die., parameters: {type: object}, command: [echo, six]}
  - {name: helper, description: A friend., agent: ./sub.yaml}
follow_ups: {tasks: [{id: extra, prompt: more}, {id: fan, agent: ./sub.yaml, for_each: "[1]"}]}
hooks: {before_tool_call: [{deny: {tool: roll, when: "args.x is defined", reason: never}}]}
steering: {messages: [{after_tool: roll, text: hello}]}
limits: {tool_calls: 500}
expect: [{tool_called: {name: roll}}, {contains: hi}]
"""
WORDS = (
    *("call_1", "call_", "m10", "roll", "rol", "helper", "main", "extra", "fan", "tale", "sub"),
    *("scripted", "user", "tool_use", "steering", "spec", "contains", "turns", "before_tool_call"),
    *("object", "string", "type", "command", "description", "messages", "500", "after_tool"),
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sub.yaml").write_text(SUB, encoding="utf-8")
    Path("spec.yaml").write_text(SPEC, encoding="utf-8")


def recorded(secret: str) -> Path:
    options = RunOptions(log="log.jsonl", values={"k": secret})
    assert asyncio.run(run_spec_async("spec.yaml", options=options)).status == "ok"
    return Path("log.jsonl")


@pytest.mark.parametrize("secret", WORDS)
def test_a_secret_that_is_a_word_of_the_log_breaks_no_replay(secret: str) -> None:
    log = recorded(secret)
    found = replay(log)
    assert found.difference is None, found.difference
    said = [e["message"]["content"] for _, e in read(log) if e["type"] == "message_end"]
    texts = [block["text"] for content in said for block in content if block["type"] == "text"]
    assert "Go, [secret:k]" in texts
    assert "It is [secret:k]." in texts


def test_a_real_secret_stands_nowhere() -> None:
    log = recorded("swordfish-19")
    assert "swordfish" not in log.read_text(encoding="utf-8")
    assert replay(log).difference is None


def test_a_pattern_takes_no_name_out_of_the_plan() -> None:
    Path("spec.yaml").write_text(SPEC + "log: {redact: ['[a-z]{3,}']}\n", encoding="utf-8")
    log = recorded("swordfish-19")
    found = replay(log)
    assert found.difference is None, found.difference


@pytest.mark.parametrize("changed", ["[secret:k] was", "[secret:j] xas"])
def test_what_stands_around_a_secret_is_still_compared(changed: str) -> None:
    log = recorded("roll")
    text = log.read_text(encoding="utf-8")
    assert text.count("[secret:k] was to be called") == 1
    log.write_text(text.replace("[secret:k] was to be", f"{changed} to bee"), encoding="utf-8")
    assert replay(log).difference is not None
