"""What programs see of the environment: what any needs, and what their spec gives them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from runner import run_spec
from runner.api import RunOptions

GIVEN = {
    "OTHER": "stays",
    "OPENAI_API_KEY": "sk-of-another",
    "MY_TOKEN": "robin-0815",
    "LC_ALL": "C",
}
TELL = "import json, os; print(json.dumps(dict(os.environ)))"
OWN = {"MINE": "{{ inputs.who }}", "KEY": {"env": "MY_TOKEN", "prefix": "Bearer "}}


def command(**more: Any) -> dict[str, Any]:
    return {"name": "tell", "description": "x", "command": [sys.executable, "-c", TELL], **more}


def seen(tmp_path: Path, tool: Any, name: str, **arguments: str) -> dict[str, str]:
    """The environment that the programs of a tool see."""
    model = {
        "provider": "scripted",
        "script": [{"tool_calls": [{"name": name, "arguments": arguments}]}, {"text": "x"}],
    }
    inputs = {"who": {"type": "string", "default": "Ada"}}
    spec = {"version": 1, "model": model, "prompt": "x", "inputs": inputs, "tools": [tool]}
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps(spec), "utf-8")
    (tmp_path / "own.py").write_text(OWN_TOOL, "utf-8")
    said: list[Any] = []

    def listen(event: dict[str, Any]) -> None:
        if event["type"] == "tool_execution_end":
            said.extend(event["result"]["content"])

    options = RunOptions(log="none", workspace=str(tmp_path), environ=GIVEN)
    assert run_spec(path, on_event=listen, options=options).status == "ok"
    told: dict[str, str] = json.loads(said[0]["text"])
    return told


OWN_TOOL = f"""\
import sys
from runner import ToolContext

async def own(context: ToolContext) -> str:
    done = await context.run([sys.executable, "-c", {TELL!r}])
    return done.stdout
"""
SHELL = {"command": f"{sys.executable} -c '{TELL}'"}
BY_MODELS: list[tuple[str, Any, str, dict[str, str]]] = [
    ("shell", "shell", "shell", SHELL),
    ("shell with options", {"use": "shell", "timeout": 20}, "shell", SHELL),
    ("python", "python", "python", {"code": TELL}),
    ("a function", {"python": "./own.py:own"}, "own", {}),
    ("a command that names some", command(env={}), "tell", {}),
]
GIVING: list[tuple[str, Any, str, dict[str, str]]] = [
    ("shell", {"use": "shell", "env": OWN}, "shell", SHELL),
    ("python", {"use": "python", "env": OWN}, "python", {"code": TELL}),
    ("a function", {"python": "./own.py:own", "env": OWN}, "own", {}),
    ("a command", command(env=OWN), "tell", {}),
]


@pytest.mark.parametrize(("tool", "name", "arguments"), [c[1:] for c in BY_MODELS])
def test_what_a_model_writes_sees_what_any_program_needs(
    tmp_path: Path, tool: Any, name: str, arguments: dict[str, str]
) -> None:
    found = seen(tmp_path, tool, name, **arguments)
    assert not found.keys() & {"OTHER", "OPENAI_API_KEY", "MY_TOKEN", "PYTEST_CURRENT_TEST"}
    assert (found["LC_ALL"], found["PI_RUN_SPEC_DIR"]) == ("C", str(tmp_path))
    assert found["PATH"]


@pytest.mark.parametrize(("tool", "name", "arguments"), [c[1:] for c in GIVING])
def test_a_spec_gives_more_and_its_secrets_are_told_to_nobody_else(
    tmp_path: Path, tool: Any, name: str, arguments: dict[str, str]
) -> None:
    found = seen(tmp_path, tool, name, **arguments)
    assert (found["MINE"], found["KEY"]) == ("Ada", "Bearer [secret:MY_TOKEN]")
    assert not found.keys() & {"OTHER", "OPENAI_API_KEY", "MY_TOKEN"}


def test_a_command_of_the_spec_sees_all_but_secrets(tmp_path: Path) -> None:
    found = seen(tmp_path, command(), "tell")
    assert (found["OTHER"], found["MY_TOKEN"]) == ("stays", "robin-0815")
    assert "OPENAI_API_KEY" not in found


def test_what_starts_no_program_is_given_no_variables(tmp_path: Path) -> None:
    tool = {"use": "read_file", "env": {"A": "b"}}
    with pytest.raises(Exception, match="read_file takes no `env`"):
        seen(tmp_path, tool, "read_file", path="x")


def test_a_secret_that_is_not_there_is_found_before_the_run(tmp_path: Path) -> None:
    tool = command(env={"A": {"env": "NOWHERE_SET"}})
    with pytest.raises(Exception, match="NOWHERE_SET is not set"):
        seen(tmp_path, tool, "tell")


def test_a_secret_that_can_not_be_had_is_told_to_the_model(tmp_path: Path) -> None:
    for tool, name in [
        (command(env={"A": {"command": ["false"]}}), "tell"),
        ({"python": "./own.py:own", "env": {"A": {"command": ["false"]}}}, "own"),
    ]:
        with pytest.raises(json.JSONDecodeError) as raised:
            seen(tmp_path, tool, name)
        assert "can't be made: false, which is to print the key" in raised.value.doc


def test_a_hook_may_be_given_variables(tmp_path: Path) -> None:
    spec = {
        "version": 1,
        "model": {"provider": "scripted", "script": [{"text": "x", "repeat": 2}]},
        "prompt": "x",
        "hooks": {
            "steering_messages": [
                {"command": ["sh", "-c", 'echo "[\\"$A $OTHER\\"]"'], "env": {"A": "given"}}
            ]
        },
        "limits": {"turns": 2},
    }
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps(spec), "utf-8")
    told: list[Any] = []
    options = RunOptions(log="none", workspace=str(tmp_path), environ=GIVEN)
    run_spec(path, on_event=told.append, options=options)
    texts = [
        block["text"]
        for event in told
        if event["type"] == "message_end"
        for block in event["message"]["content"]
    ]
    assert "given " in texts
