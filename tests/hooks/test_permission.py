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
        "env -u A rm x",
        "env -S 'rm x'",
        "timeout -s KILL 5 /bin/rm x",
        "nice -n 5 rm x",
        "setsid stdbuf -o0 rm x",
        "echo x | xargs -n 1 rm",
        "find . -exec rm {} ;",
        "sh -c 'rm x'",
        "bash -ec 'cd /; \"rm\" x'",
        "sh -c \"sh -c 'rm x'\"",
        "eval 'rm x'",
        'eval "r"m x',
        "trap 'rm x' EXIT",
        "function f { rm x; }; f",
        "exec -a foo rm x",
    ],
)
def test_a_denied_command_is_found_in_any_dress(command: str) -> None:
    assert verdict({"allow": ["shell"], "deny": ["shell(rm *)"]}, "shell", command=command) == (
        "deny"
    )


def test_what_is_only_said_is_not_denied() -> None:
    rules = {"allow": ["shell"], "deny": ["shell(rm *)"]}
    assert verdict(rules, "shell", command="echo 'a; rm x'") == "allow"
    assert verdict(rules, "shell", command="git commit -m 'no rm x'; echo rm x") == "allow"


HIDDEN = [
    "a=rm; $a x",
    "a=r; ${a}m x",
    "for i in rm; do $i x; done",
    "$(echo rm) x",
    "`echo rm` x",
    '"$a" x',
    "/bin/r? x",
    "/bin/[r]m x",
    "echo rm x | sh",
    "echo rm x | bash -s",
    "A='rm x' sh -c '$A'",
    "exec $a x",
    "$'\\x72m' x",
]
PLAIN = [
    "[ -n $x ] && echo *",
    "[[ $x ]]",
    "for i in *; do echo $i; done",
    "A=$x ls ?",
    "sh build.sh",
    "grep $x [a-z]*",
]


@pytest.mark.parametrize("command", HIDDEN)
def test_a_command_that_hides_what_it_runs_is_asked_for_where_some_are_denied(command: str) -> None:
    rules = {"allow": ["shell"], "deny": ["shell(rm *)"]}
    assert verdict(rules, "shell", command=command) == "ask"
    assert verdict({"allow": ["shell"], "deny": ["write_file"]}, "shell", command=command) == (
        "allow"
    )


@pytest.mark.parametrize("command", PLAIN)
def test_a_command_whose_programs_are_told_hides_none(command: str) -> None:
    rules = {"allow": ["shell"], "deny": ["shell(rm *)"]}
    assert verdict(rules, "shell", command=command) == "allow"


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


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/docs/../admin",
        "https://a.example/docs/%2e%2E/admin",
        "https://a.example/docs/./../admin?x",
        "https://A.example:443/admin",
        "HTTPS://a.example./admin",
    ],
)
def test_urls_are_held_as_a_server_comes_to_see_them(url: str) -> None:
    allow, deny = "fetch(https://a.example/docs/*)", "fetch(https://a.example/admin*)"
    assert verdict({"allow": [allow]}, "fetch", url=url) == "ask"
    assert verdict({"allow": ["fetch"], "deny": [deny]}, "fetch", url=url) == "deny"


def test_urls_that_are_plain_are_held_as_they_are() -> None:
    for url in ("https://a.example/docs/x?y=1", "https://A.example:443/docs/z/../x"):
        assert verdict({"allow": ["fetch(https://a.example/docs/*)"]}, "fetch", url=url) == "allow"
    assert verdict({"allow": ["fetch(http://[[]::1]:8080)"]}, "fetch", url="http://[::1]:8080")
    assert verdict({"allow": ["fetch(https://*)"]}, "fetch", url="https://a:x/") == "allow"
    assert verdict({"allow": ["fetch(https://a)"]}, "fetch", url="https://a") == "allow"


def test_other_arguments_have_no_way_up() -> None:
    assert verdict({"allow": ["move(src/*)"]}, "move", source="src/a", to="src/../b") == "ask"
    assert verdict({"allow": ["move(src/*)"]}, "move", source="src/a", to="src/b/../c") == "allow"


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
