"""Which calls are let through, which are asked for and which are denied."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.hooks.permission import (
    Rules,
    Terminal,
    always,
    permission_hook,
    refused_command,
    unattended,
)
from runner.hooks.shell_parts import split


def verdict(
    rules: dict[str, list[str]], tool: str, workspace: str = "/nowhere", **arguments: Any
) -> str:
    made = Rules.read(rules.get("allow", []), rules.get("ask", []), rules.get("deny", []))
    call = {"tool_name": tool, "tool_call_id": "call_1", "arguments": arguments}
    return made.verdict(call, workspace)[0]


def test_deny_comes_before_allow_and_allow_before_ask() -> None:
    assert verdict({"allow": ["a"], "deny": ["a"], "ask": ["a"]}, "a") == "deny"
    assert verdict({"allow": ["a"], "ask": ["a"]}, "a") == "allow"
    assert verdict({"allow": ["b"]}, "a") == "ask"
    assert verdict({}, "a") == "ask"
    assert verdict({"allow": ["mcp_*"]}, "mcp_read") == "allow"


ALLOWED = [
    "echo one",
    "echo",
    "echo   one\ttwo",
    "echo one && echo two",
    "echo a | echo b; echo c & echo d",
    "echo 'a; touch x'",
    'echo "a | touch x"',
    r"echo a\; b",
    "echo $(echo x)",
    'echo "$(echo x) `echo y`"',
    "echo a 2>&1 >/dev/null",
    "(echo a)",
    "echo a # touch x",
    "echo ${HOME} $HOME",
    "echo a \\\n b",
    "echo a \\# '\ntouch x #'",
]
ESCAPES = [
    "touch x",
    "echo one; touch x",
    "touch x; echo one",
    "echo one | tee x",
    "echo one & touch x",
    "echo one && touch x",
    "echo one || touch x",
    "echo one\ntouch x",
    "echo $(touch x)",
    "echo `touch x`",
    'echo "$(touch x)"',
    'echo "`touch x`"',
    'echo "$(echo "$(touch x)")"',
    "echo ${X:-$(touch x)}",
    "echo one > x",
    "echo one >> x",
    "echo one >| x",
    "echo one <> x",
    "echo one &> x",
    "echo < secret",
    "> x echo one",
    "echo <(touch x)",
    "echo $((1 + $(touch x)))",
    "(touch x)",
    "{ touch x; }",
    "if touch x; then echo a; fi",
    "PATH=. echo one",
    "echo a # '\ntouch x #'",
    "echo $'\\'' ; touch x ; echo \\'",
    "echo $'a\\'; touch x #'",
    "echo <<E\necho '\nE\ntouch x #'",
    "echo 'unclosed\ntouch x",
    'echo "unclosed; touch x',
    "echo `echo \\`touch x\\``",
    "echo '\\\n'; touch x",
    "echo # \\\ntouch x",
    "echo \\\\\ntouch x",
    "e\\cho one",
    "echo\u00a0one",
    "",
    "   ",
    "\n",
]


@pytest.mark.parametrize("command", ALLOWED)
def test_a_command_of_allowed_parts_is_allowed(command: str) -> None:
    assert verdict({"allow": ["shell(echo *)"]}, "shell", command=command) == "allow"
    assert refused_command(command, ["echo *"]) is None


@pytest.mark.parametrize("command", ESCAPES)
def test_a_rule_for_one_command_lets_no_second_one_through(command: str) -> None:
    assert verdict({"allow": ["shell(echo *)"]}, "shell", command=command) == "ask"
    assert refused_command(command, ["echo *"])


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "rm",
        "rm  x",
        "/bin/rm x",
        "'rm' x",
        "r\\m x",
        "X=1 rm x",
        "env -i X=1 rm x",
        "command rm x",
        "sudo nohup rm x",
        "! rm x",
        "if true; then rm x; fi",
        "{ rm x; }",
        "echo a; rm x",
        "echo $(rm x)",
        'echo "`rm x`"',
        ">f rm x",
        "r\\\nm x",
        "echo <<E\n'\nE\nrm x #'",
        "echo 'unclosed; rm x",
        "echo ${X:-$(rm x)}",
        "$(" * 5000 + "; rm x",
    ],
)
def test_a_denied_command_is_found_in_any_dress(command: str) -> None:
    assert verdict({"allow": ["shell"], "deny": ["shell(rm *)"]}, "shell", command=command) == (
        "deny"
    )


def test_what_is_only_said_is_not_denied() -> None:
    rules = {"allow": ["shell"], "deny": ["shell(rm *)"]}
    assert verdict(rules, "shell", command="echo 'a; rm x'") == "allow"


def test_one_part_that_is_asked_for_is_enough() -> None:
    rules = {"allow": ["shell(echo *)"], "ask": ["shell(git *)"]}
    assert verdict(rules, "shell", command="echo a; git push") == "ask"


def test_paths_are_held_as_they_come_out(tmp_path: Path) -> None:
    workspace = str(tmp_path.resolve())
    (tmp_path / "src").mkdir()
    (tmp_path / "keys").mkdir()
    (tmp_path / "src" / "link").symlink_to("../keys")
    for path in ("src/../keys/a", "src/link/a", "keys/a", "./keys/a", f"{workspace}/keys/a"):
        allow, deny = {"allow": ["read(src/*)"]}, {"deny": ["read(keys/*)"]}
        assert verdict(allow, "read", workspace, path=path) == "ask"
        assert verdict(deny, "read", workspace, path=path) == "deny"
    for path in ("src/a", "./src/a", f"{workspace}/src/a", "keys/../src/a"):
        assert verdict({"allow": ["read(src/*)"]}, "read", workspace, path=path) == "allow"


def test_other_arguments_fit_when_all_texts_do() -> None:
    allow, deny = {"allow": ["t(a*)"]}, {"deny": ["t(b*)"]}
    assert verdict(allow, "t", x="a1", y=["a2"]) == "allow"
    assert verdict(allow, "t", x="a1", y=["b"]) == "ask"
    assert verdict(allow, "t") == "ask"
    assert verdict(deny, "t", x="a1", y={"z": "b"}) == "deny"


def test_where_nobody_can_be_asked_the_spec_says_what_becomes_of_a_call() -> None:
    rules = Rules.read((), ("t",), ("no",))
    call = {"tool_name": "t", "tool_call_id": "call_1", "arguments": {}}
    denied = permission_hook(rules, ".", unattended(stop=False))(call)
    assert denied["block"]
    assert "nobody can be asked" in denied["reason"]
    assert "stop" not in denied
    assert permission_hook(rules, ".", unattended(stop=True))(call)["stop"]
    assert permission_hook(rules, ".", always)(call) is None
    assert permission_hook(rules, ".", always)({**call, "tool_name": "no"})["block"]


@given(st.text("ab '\"\\$()`;&|<>\n#{}0", max_size=40))
def test_any_text_is_taken_apart(command: str) -> None:
    parts = split(command)
    assert all(part == part.strip() for part in parts.texts)


@pytest.mark.parametrize(
    ("typed", "allowed"),
    [("y", True), (" YES ", True), ("n", False), ("", False), ("yes please", False)],
)
def test_a_person_is_asked(
    typed: str,
    allowed: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    leader, follower = os.openpty()
    call = {"tool_name": "t", "tool_call_id": "call_1", "arguments": {"x": "key \x1b[2J"}}
    os.write(leader, b"y\n")  # before the question: no answer to it

    async def ask() -> Any:
        asked = asyncio.ensure_future(Terminal(lambda text: text.replace("key", "[secret]"))(call))
        while not (shown := capsys.readouterr().err):  # noqa: ASYNC110 - a terminal tells nobody
            await asyncio.sleep(0)
        assert shown == 'pi-run: may this be run? [y/N]\n  t {"x":"[secret] \\u001b[2J"}\n'
        os.write(leader, f"{typed}\n".encode())
        return await asked

    with open(follower, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        decision = asyncio.run(ask())
    os.close(leader)
    assert decision is None if allowed else decision["block"]
