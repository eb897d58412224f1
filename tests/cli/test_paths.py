"""Paths that no system takes are told before anything is run."""

import subprocess
import sys
from pathlib import Path

import pytest

SPEC = "version: 1\nmodel: {provider: scripted, script: [{text: hello}]}\nprompt: Hello\n"


@pytest.mark.parametrize(
    ("more", "flags"),
    [
        ('log: {path: "a\\0b"}\n', []),
        ('workspace: "a\\0b"\n', []),
        ("", ["--log", ""]),
    ],
)
def test_no_path(more: str, flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC + more, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "runner", "spec.yaml", *flags],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "name a file or folder" in done.stderr
