"""The command that lists tools and calls one by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PiRun = Callable[..., Any]

SPEC = """\
version: 1
inputs: {word: {type: string}}
env: [USED]
model: {provider: openai, id: gpt-5-mini}
prompt: "{{ inputs.word }}"
tools:
  - shell
  - name: say
    description: Say a word.
    command: [echo, "{{ inputs.word }}", "{{ args.more }}"]
permissions: {allow: [say, "shell(echo *)"], deny: ["shell(rm *)"]}
hooks:
  after_tool_call: [{redact: {pattern: 'se\\w+t', with: '[gone]'}}]
  stop_after_turn: [{python: "./none.py:none"}]
output: {schema: {type: object}}
limits: {turns: 1}
expect: [{contains: nothing}]
"""


@pytest.fixture
def call(pi_run: PiRun, folder: Path) -> Callable[..., Any]:
    (folder / "spec.yaml").write_text(SPEC, "utf-8")
    (folder / "none.py").write_text("def none(turn):\n    raise ValueError\n", "utf-8")

    def run(name: str, arguments: Any, *more: str, **options: Any) -> Any:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        words = ["tools", "spec.yaml", "-i", "word=a", "--call", name, text, *more]
        return pi_run(*words, env={"USED": "x"}, **options)

    return run


@pytest.mark.parametrize(
    ("name", "arguments", "code", "said"),
    [
        ("say", {"more": "b"}, 0, "a b"),
        ("shell", {"command": "echo my secret"}, 0, "my [gone]"),
        ("say", {"more": "-n"}, 1, 'Not run: "-n" begins with "-"'),
        ("say", {}, 1, "The command can't be made"),
        ("shell", {}, 1, "at command: it is missing"),
        ("shell", {"command": "rm x"}, 5, "denied by the rule deny: shell(rm *)"),
        ("shell", {"command": "touch x"}, 5, "nobody can be asked"),
    ],
)
def test_a_call_is_made_as_a_model_makes_it(
    call: Callable[..., Any], folder: Path, name: str, arguments: Any, code: int, said: str
) -> None:
    done = call(name, arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stdout
    assert done.stderr == ""
    assert not (folder / ".pi-run").exists()


def test_what_is_wrong_with_a_call_is_told(call: Callable[..., Any]) -> None:
    for name, arguments, told in (
        ("shel", {}, 'spec.yaml has no tool "shel"; did you mean "shell"?'),
        ("shell", "{", "the arguments are no JSON"),
        ("shell", "[]", "the arguments are a JSON object"),
    ):
        done = call(name, arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert told in done.stderr


def test_flags_hold_for_a_call(call: Callable[..., Any], folder: Path) -> None:
    done = call("shell", {"command": "touch x"}, "--yes", "--workspace", ".")
    assert done.returncode == 0
    assert (folder / "x").exists()
    done = call("say", "-", "--read-only", "--format", "json", input='{"more": "b"}')
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["name"], told["is_error"]) == ("say", True)
    assert "read-only" in told["content"][0]["text"]


def test_a_built_in_needs_no_spec(pi_run: PiRun, folder: Path) -> None:
    (folder / "a.txt").write_text("hello\n", "utf-8")
    done = pi_run("tools", "--call", "read_file", '{"path": "a.txt"}')
    assert (done.returncode, done.stdout) == (0, "hello\n")
    done = pi_run("tools", "--call", "read_fil", "{}")
    assert done.returncode == 2
    assert 'did you mean "read_file"' in done.stderr


def test_all_built_ins_are_listed(pi_run: PiRun) -> None:
    told = json.loads(pi_run("tools", "--format", "json").stdout)
    names = {"ask_user", "edit_file", "fetch", "finish", "list_files", "python", "read_file"}
    names |= {"search_files", "shell", "todo", "write_file"}
    assert {tool["name"] for tool in told} >= names
    assert all(tool["source"].startswith(("built-in ", "plug-in ")) for tool in told)
