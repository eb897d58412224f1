"""What a model may try to get out: a table of calls, each with what it was after."""

import json
from typing import Any

import pytest

from runner import run_spec
from runner.api import RunOptions

COMMANDS: list[Any] = [
    {"name": "show", "description": "x", "command": ["cat", "{{ args.path }}"]},
    {"name": "say", "description": "x", "command": ["sh", "-c", 'echo "$1"', "sh", "{{ args.x }}"]},
    {"name": "sort", "description": "x", "command": ["sort", "{{ args.path }}"]},
    {"name": "find", "description": "x", "command": ["find", "{{ args.path }}", "-maxdepth", "1"]},
]
ATTEMPTS: list[tuple[str, str, dict[str, Any]]] = [
    # by patterns
    ("glob up", "list_files", {"pattern": "../*"}),
    ("glob up within", "list_files", {"path": "sub", "pattern": "../../*"}),
    ("glob absolute", "list_files", {"pattern": "/*/*"}),
    ("search up", "search_files", {"pattern": "SECRET", "files": "../*"}),
    ("search by a link", "search_files", {"pattern": "SECRET", "path": "link"}),
    ("search all links", "search_files", {"pattern": "SECRET"}),
    # by paths
    ("up", "read_file", {"path": "../secret.txt"}),
    ("up through a folder", "read_file", {"path": "sub/../../secret.txt"}),
    ("by a link", "read_file", {"path": "link/secret.txt"}),
    ("by a proc link", "read_file", {"path": "/proc/self/cwd/../secret.txt"}),
    ("the environment", "read_file", {"path": "/proc/self/environ"}),
    ("a tilde", "read_file", {"path": "~/.ssh/id_rsa"}),
    ("a variable", "read_file", {"path": "$HOME/secret.txt"}),
    ("outputs that are none", "read_file", {"path": "$PI_RUN_OUTPUTS/../secret.txt"}),
    ("a file URL", "read_file", {"path": "file:///etc/hostname"}),
    # by quoting
    ("a semicolon", "say", {"x": '"; cat ../secret.txt; echo "'}),
    ("a substitution", "say", {"x": "$(cat ../secret.txt)"}),
    ("backticks", "say", {"x": "`cat ../secret.txt`"}),
    ("a line break", "say", {"x": "a\ncat ../secret.txt"}),
    ("a template", "say", {"x": "{{ env.SECRET_NAME }}{{ inputs }}{% raw %}"}),
    ("a dunder", "say", {"x": "{{ ''.__class__.__mro__ }}"}),
    # by options
    ("an option that writes", "sort", {"path": "--output=../made.txt"}),
    ("a short option that writes", "sort", {"path": "-o../made.txt"}),
    ("an option that reads", "sort", {"path": "--files0-from=../secret.txt"}),
    ("an expression that runs", "find", {"path": "-delete"}),
    ("an option of cat", "show", {"path": "--help"}),
    # by the environment
    ("env by shell", "shell", {"command": "env"}),
    ("env by python", "python", {"code": "import os; print(dict(os.environ))"}),
    ("env of the parent", "fetch", {"url": "file:///proc/self/environ"}),
    # by the network
    ("metadata", "fetch", {"url": "http://169.254.169.254/latest/"}),
    ("metadata as a number", "fetch", {"url": "http://2852039166/latest/"}),
    ("this machine", "fetch", {"url": "http://localhost:1/"}),
    ("mapped", "fetch", {"url": "http://[::ffff:7f00:1]:1/"}),
    ("a header of two lines", "fetch", {"url": "http://1.1.1.1/", "headers": {"A": "b\r\nC: d"}}),
    # by form
    ("a pattern that never ends", "search_files", {"pattern": "(a|a|a)*$b", "files": "long.txt"}),
    ("a deep path", "write_file", {"path": "d/" * 500 + "x", "content": ""}),
    ("a name too long", "write_file", {"path": "n" * 300, "content": ""}),
    ("a device", "write_file", {"path": "/dev/stderr", "content": "SECRET"}),
    ("a folder", "write_file", {"path": "sub", "content": ""}),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each attempt came to: one run makes them all."""
    top = tmp_path_factory.mktemp("top")
    room = top / "room"
    (room / "sub").mkdir(parents=True)
    (top / "secret.txt").write_text("SECRET outside\n", "utf-8")
    (room / "link").symlink_to("..")
    (room / "long.txt").write_text("a" * 5000, "utf-8")
    names = ["fetch", "list_files", "python", "read_file", "search_files", "shell", "write_file"]
    calls = [{"name": name, "arguments": arguments} for _, name, arguments in ATTEMPTS]
    model = {
        "provider": "scripted",
        "script": [{"tool_calls": calls}, {"text": "x"}],
        "api_key": {"env": "SECRET_NAME"},
    }
    spec = {"version": 1, "model": model, "prompt": "x", "tools": [*names, *COMMANDS]}
    (top / "spec.yaml").write_text(json.dumps(spec), "utf-8")
    before = sorted(str(each) for each in top.iterdir())
    said: dict[str, str] = {}

    def listen(event: dict[str, Any]) -> None:
        if event["type"] == "tool_execution_end":
            number = int(event["tool_call_id"].removeprefix("call_"))
            blocks = event["result"]["content"]
            said[ATTEMPTS[number - 1][0]] = "".join(b.get("text", "") for b in blocks)

    options = RunOptions(
        log="none", workspace=str(room), environ={"SECRET_NAME": "SECRET value of a key"}
    )
    assert run_spec(top / "spec.yaml", on_event=listen, options=options).status == "ok"
    assert sorted(str(each) for each in top.iterdir()) == before
    assert sorted(each.name for each in room.iterdir()) == ["link", "long.txt", "sub"]
    assert (top / "secret.txt").read_text("utf-8") == "SECRET outside\n"
    return said


@pytest.mark.parametrize("attempt", [name for name, _, _ in ATTEMPTS])
def test_nothing_gets_out(told: dict[str, str], attempt: str) -> None:
    assert "SECRET outside" not in told[attempt]
    assert "value of a key" not in told[attempt]
    assert "[secret" not in told[attempt]
    assert "Traceback" not in told[attempt]


def test_what_was_said_is_said_as_it_is(told: dict[str, str]) -> None:
    said = {name: arguments["x"] for name, tool, arguments in ATTEMPTS if tool == "say"}
    assert {name: told[name].removesuffix("\n") for name in said} == said


def test_each_attempt_is_its_own() -> None:
    names = [name for name, _, _ in ATTEMPTS]
    assert len(set(names)) == len(names)
