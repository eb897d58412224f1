import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COMMAND = str(Path(sysconfig.get_path("scripts")) / "pi-run")

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]

HELLO = """\
version: 1
model: {provider: scripted, script: [{text: hello}]}
prompt: Hello
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, away from any CI."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("PI_RUN_", "GITHUB_")) or name in ("CI", "NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def command() -> str:
    """The command's path."""
    return COMMAND


@pytest.fixture
def pi_run(folder: Path) -> PiRun:
    """Runs the command in a process of its own, with an empty stdin."""

    def run(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        environ = {**os.environ, **options.pop("env", {})}
        options.setdefault("input", "")
        return subprocess.run(
            [COMMAND, *arguments],
            cwd=folder,
            env=environ,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
            **options,
        )

    return run


@pytest.fixture
def spec(folder: Path) -> Callable[..., Path]:
    """Writes a spec that says hello, and what is added to it."""

    def write(name: str = "spec.yaml", more: str = "", text: str = HELLO) -> Path:
        path = folder / name
        path.write_text(text + more, encoding="utf-8")
        return path

    return write
