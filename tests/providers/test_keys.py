"""Where keys come from, and what is told when there is none."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.error import ProviderError
from runner.providers import keys

SECRET = "sk-very-secret-4711"


def resolved(given: keys.KeySource | None) -> str | None:
    assert given is not None

    async def resolve() -> str | None:
        key = given()
        return await key if isinstance(key, Awaitable) else key

    return asyncio.run(resolve())


def fault(given: keys.KeySource | None) -> str:
    with pytest.raises(ProviderError) as caught:
        resolved(given)
    assert caught.value.kind == "auth"
    assert not caught.value.retryable
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    return str(caught.value)


def python(*lines: str) -> dict[str, Any]:
    return {"command": [sys.executable, "-c", "\n".join(lines)]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_a_variable_is_read_at_each_call(folder: Path) -> None:
    environ = {"KEY": " one\n"}
    source = keys.resolver({"env": "KEY"}, folder=folder, environ=environ)
    assert resolved(source) == "one"
    environ["KEY"] = "two"
    assert resolved(source) == "two"


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}])
def test_a_variable_that_is_not_set_has_a_default_or_is_a_fault(
    folder: Path, environ: Mapping[str, str]
) -> None:
    with_default = keys.resolver({"env": "KEY", "default": "d"}, folder=folder, environ=environ)
    assert resolved(with_default) == "d"
    no_key = keys.resolver({"env": "KEY", "default": ""}, folder=folder, environ=environ)
    assert resolved(no_key) is None
    assert "KEY is not set" in fault(keys.resolver({"env": "KEY"}, folder=folder, environ=environ))


def test_a_file_is_relative_to_its_folder_and_read_at_each_call(folder: Path) -> None:
    source = keys.resolver({"file": "key.txt"}, folder=folder)
    assert str(folder / "key.txt") in fault(source)
    (folder / "key.txt").write_text("\n one \n", "utf-8")
    assert resolved(source) == "one"
    (folder / "key.txt").write_text("two", "utf-8")
    assert resolved(source) == "two"


def test_a_file_without_a_key_is_a_fault(folder: Path) -> None:
    source = keys.resolver({"file": "key"}, folder=folder)
    (folder / "key").write_bytes(b" \n")
    assert "is empty" in fault(source)
    (folder / "key").write_bytes(SECRET.encode() + b"\xff")
    assert "not UTF-8" in fault(source)
    assert "can't be read" in fault(keys.resolver({"file": "."}, folder=folder))


def test_a_command_prints_the_key(folder: Path) -> None:
    assert resolved(keys.resolver(python("print('  one  ')"), folder=folder)) == "one"


def test_a_commands_stdin_is_empty_and_it_runs_in_the_workspace(folder: Path) -> None:
    place = folder / "work"
    place.mkdir()
    config = python("import os, sys", "print(repr(sys.stdin.read()), os.getcwd())")
    shown = resolved(keys.resolver(config, folder=folder, workspace=place))
    assert shown == f"'' {place.resolve()}"


def test_a_program_may_be_relative_to_the_folder(folder: Path) -> None:
    program = folder / "key.sh"
    program.write_text("#!/bin/sh\necho from here\n", "utf-8")
    program.chmod(0o755)
    workspace = folder / "work"
    workspace.mkdir()
    source = keys.resolver({"command": ["./key.sh"]}, folder=folder, workspace=workspace)
    assert resolved(source) == "from here"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (python(f"print('{SECRET}'); raise SystemExit(3)"), "ended with 3"),
        (python(f"import sys; sys.stderr.write('{SECRET}')"), "printed nothing"),
        (python("import sys; sys.stdout.buffer.write(b'\\xff')"), "not UTF-8"),
        ({"command": ["/no/such/program", SECRET]}, "can't be started: there is no such program"),
        ({"command": ["echo", "a\0b"]}, "can't be started"),
    ],
)
def test_a_command_that_gives_no_key_is_a_fault_without_its_output(
    folder: Path, config: Mapping[str, Any], message: str
) -> None:
    assert message in fault(keys.resolver(config, folder=folder))


def test_a_command_is_not_waited_for_without_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "COMMAND_SECONDS", 0.3)
    # The grandchild keeps the pipe open after its parent was killed.
    config = {"command": ["sh", "-c", "sleep 60 & echo $! > pid; wait"]}
    assert "within 0.3 s" in fault(keys.resolver(config, folder=folder))
    pid = int((folder / "pid").read_text("utf-8"))
    assert not Path(f"/proc/{pid}/exe").exists()


def test_a_function_gives_the_key(folder: Path) -> None:
    async def later() -> str:
        return "later"

    config = {"python": "./keys.py:key"}
    assert resolved(keys.resolver(config, folder=folder, function=lambda: " now ")) == "now"
    assert resolved(keys.resolver(config, folder=folder, function=later)) == "later"
    assert resolved(keys.resolver(config, folder=folder, function=lambda: None)) is None


def test_a_function_that_fails_is_a_fault_without_its_words(folder: Path) -> None:
    def broken() -> str:
        raise RuntimeError(f"{SECRET} has expired")

    config = {"python": "./keys.py:key"}
    assert "./keys.py:key" in fault(keys.resolver(config, folder=folder, function=broken))
    assert "gave bytes" in fault(
        keys.resolver(config, folder=folder, function=lambda: SECRET.encode())
    )


@pytest.mark.parametrize(
    ("provider", "base_url", "names"),
    [
        ("openai", None, ("OPENAI_API_KEY",)),
        ("openai-responses", "https://api.openai.com/v1", ("OPENAI_API_KEY",)),
        ("anthropic", None, ("ANTHROPIC_API_KEY",)),
        ("google", None, ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
        ("openai", "http://127.0.0.1:8080/v1", ()),
        ("openai", "https://api.openai.com.example.org/v1", ()),
        ("scripted", None, ()),
        ("a-plug-in", None, ()),
    ],
)
def test_a_usual_variable_is_only_for_the_public_address(
    provider: str, base_url: str | None, names: tuple[str, ...]
) -> None:
    assert keys.default_names(provider, base_url) == names


def test_the_first_usual_variable_that_is_set_counts() -> None:
    environ = {"GEMINI_API_KEY": "", "GOOGLE_API_KEY": "two"}
    source = keys.default_resolver("google", None, environ)
    assert resolved(source) == "two"
    environ["GEMINI_API_KEY"] = "one"
    assert resolved(source) == "one"
    environ.clear()
    assert "set GEMINI_API_KEY" in fault(source)


def test_another_server_needs_no_key() -> None:
    assert keys.default_resolver("openai", "http://127.0.0.1:1/v1", {"OPENAI_API_KEY": "x"}) is None
