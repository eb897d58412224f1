from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]


def test_help_needs_no_server(pi_run: PiRun) -> None:
    told = pi_run("serve", "--help")
    assert told.returncode == 0
    assert "pi-run serve" in told.stdout
    code = (
        "import sys, runner.cli.serve; print({'starlette', 'uvicorn', 'httpx'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"


def test_a_missing_extra(folder: Path, spec: Callable[..., Path]) -> None:
    code = """\
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "uvicorn" else real(name, *rest)
sys.argv = ["pi-run", "serve", "spec.yaml"]
from runner.cli import main
main()
"""
    spec()
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert said.returncode == 2
    assert said.stderr == "pi-run: serve needs an extra; pip install 'pi-run[serve]'\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no.yaml"], "no.yaml"),
        (["spec.yaml", "spec.yaml"], 'there is a spec "spec" already'),
        (["spec.yaml", "-i", "topik=x"], "no spec has an input that is called"),
        (["spec.yaml", "--token", ""], "visible ASCII"),
        (["spec.yaml", "--token", "two words"], "visible ASCII"),
        (["spec.yaml", "--host", "0.0.0.0", "--token", "short"], "needs 16 characters"),
        (["spec.yaml", "--host", "no.such.host.invalid"], "can't listen on"),
        (["spec.yaml", "--port", "70000"], "--port"),
        (["spec.yaml", "--max-runs", "0"], "--max-runs"),
        (["spec.yaml", "--grace", "nan"], "--grace"),
    ],
)
def test_what_cannot_be_served(
    pi_run: PiRun, spec: Callable[..., Path], arguments: list[str], told: str
) -> None:
    spec()
    said = pi_run("serve", *arguments)
    assert said.returncode == 2
    assert told in said.stderr
    assert said.stdout == ""


def test_a_port_that_is_taken(pi_run: PiRun, spec: Callable[..., Path]) -> None:
    spec()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = pi_run("serve", "spec.yaml", "--port", port)
    assert said.returncode == 2
    assert f"can't listen on 127.0.0.1, port {port}" in said.stderr


def test_a_token_is_made_where_none_is_given(
    folder: Path, command: str, spec: Callable[..., Path]
) -> None:
    spec()
    arguments = [command, "serve", "spec.yaml", "--port", "0"]
    started: Any = subprocess.Popen(arguments, cwd=folder, stderr=subprocess.PIPE, text=True)
    with started as process:
        serving, token, link = (process.stderr.readline() for _ in range(3))
        process.terminate()
        assert process.wait(30) == 143
    assert serving.startswith("serving spec at http://127.0.0.1:")
    secret = token.removeprefix("token: ").strip()
    assert len(secret) > 40
    assert link.strip().endswith(f"/login#{secret}")
