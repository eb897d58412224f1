import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SPEC = """\
version: 1
name: ask
inputs:
  n: {type: integer}
  word: {type: string, default: plain}
model:
  provider: scripted
  price: {input: 1000, output: 1000}
  script:
    - {text: "one", tool_calls: [{name: note, arguments: {text: one}}]}
    - {text: "two", tool_calls: [{name: note, arguments: {text: two}}]}
    - {text: "{{ inputs.word }} {{ inputs.n }}", usage: {input: 10, output: 5}}
tools:
  - name: note
    description: Write a line into the ledger.
    parameters: {type: object, properties: {text: {type: string}}, required: [text]}
    command: [sh, -c, 'echo "$1" >> ledger; echo "$1"', -, "{{ inputs.n }} {{ args.text }}"]
    idempotent: true
prompt: "Say {{ inputs.n }}."
expect: [{that: "not result.text.startswith('bad')"}]
"""
Batch = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a spec whose tool writes into a ledger."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ask.yaml").write_text(SPEC, encoding="utf-8")
    return tmp_path


@pytest.fixture
def batch(place: Path) -> Batch:
    """Runs `pi-run batch` in that folder."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PI_RUN_", "GITHUB_"))}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "runner", "batch", *words],
            cwd=place,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


@pytest.fixture
def rows(place: Path) -> Callable[[list[dict[str, Any]]], str]:
    """Writes rows into a file, and gives its name."""

    def write(given: list[dict[str, Any]]) -> str:
        text = "".join(json.dumps(row) + "\n" for row in given)
        (place / "rows.jsonl").write_text(text, encoding="utf-8")
        return "rows.jsonl"

    return write
