import os
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

Write = Callable[..., Path]
Terminal = Callable[..., str]

TOOL = """\
version: 1
model: {provider: scripted, script: [{tool_calls: [{name: look}]}, {text: done}]}
prompt: Hello
tools:
  - python: ./tools.py:look
"""


@pytest.fixture
def on_a_terminal(command: str, folder: Path) -> Callable[..., str]:
    """Runs the command with a terminal for its streams, and gives all that the terminal got."""

    def run(*words: str, env: dict[str, str]) -> str:
        leader, follower = os.openpty()
        process = subprocess.Popen(
            [command, *words],
            cwd=folder,
            env={**os.environ, **env},
            stdin=follower,
            stdout=follower,
            stderr=follower,
        )
        os.close(follower)
        got = b""
        with suppress(OSError):  # all of its other ends are closed
            while data := os.read(leader, 65536):
                got += data
        os.close(leader)
        process.wait(timeout=30)
        return got.decode()

    return run


def test_a_terminal_gets_a_live_view_and_the_text_once(
    spec: Write, on_a_terminal: Terminal
) -> None:
    spec()
    got = on_a_terminal("spec.yaml", "--log", "none", env={"TERM": "xterm-256color"})

    assert "\x1b[?25l" in got
    assert got.endswith("hello\r\n")


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": "xterm", "GITHUB_ACTIONS": "true"}])
def test_a_terminal_that_can_do_nothing_gets_lines(
    spec: Write, on_a_terminal: Terminal, env: dict[str, str]
) -> None:
    spec()
    got = on_a_terminal("spec.yaml", "--log", "none", env=env)

    assert "\x1b" not in got
    assert "turn 1\r\n" in got


@pytest.mark.parametrize(
    ("words", "env"), [(["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"FORCE_COLOR": "1"})]
)
def test_colour_is_used_where_it_is_wanted(
    spec: Write,
    folder: Path,
    on_a_terminal: Terminal,
    words: list[str],
    env: dict[str, str],
) -> None:
    spec(text=TOOL)
    (folder / "tools.py").write_text("def look() -> str:\n    '''x'''\n    return ''\n", "utf-8")
    env = {"TERM": "xterm-256color", **env}
    got = on_a_terminal("spec.yaml", "--log", "none", *words, env=env)

    assert bool(re.search(r"\x1b\[(\d+;)*3\d", got)) == ("FORCE_COLOR" in env)
