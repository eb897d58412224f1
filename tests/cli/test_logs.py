import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]


def test_lists_those_of_a_folder_that_is_named(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec()
    pi_run("spec.yaml", "--log", "runs/a.jsonl")

    done = pi_run("logs", "runs")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("runs/a.jsonl\n")
    assert pi_run("logs").stdout == ""
    assert pi_run("logs", "runs", "--incomplete").stdout == ""


@pytest.mark.parametrize("name", ["none", "spec.yaml"])
def test_a_folder_that_is_none_is_told(pi_run: PiRun, spec: Write, name: str) -> None:
    spec()
    done = pi_run("logs", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"pi-run: {name}: there is no such folder\n"


def test_a_log_may_come_by_a_pipe_where_it_is_read_once(
    pi_run: PiRun, spec: Write, folder: Path
) -> None:
    spec()
    pi_run("spec.yaml", "--log", "a.jsonl")
    log = (folder / "a.jsonl").read_text(encoding="utf-8")

    assert pi_run("show", "/dev/stdin", input=log).stdout == pi_run("show", "a.jsonl").stdout
    assert pi_run("diff", "/dev/stdin", "a.jsonl", input=log).returncode == 0
    for words in (["replay"], ["replay", "--from-turn", "1"], ["chaos"]):
        done = pi_run(*words, "/dev/stdin", input=log)
        assert (done.returncode, done.stdout) == (6, "")
        assert done.stderr.startswith("pi-run: /dev/stdin: is a pipe, which gives its lines only")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["show", "folder/"], 2, "folder: it is a folder; name a log in it"),
        (["chaos", "torn.jsonl"], 6, "torn.jsonl: line 1: is cut off, and there is nothing before"),
        (["replay", "first.jsonl", "--from-turn", "1"], 2, "there is no turn 1; it has none"),
    ],
)
def test_what_is_no_log_of_any_use_is_told(
    pi_run: PiRun, spec: Write, folder: Path, words: list[str], code: int, says: str
) -> None:
    spec()
    pi_run("spec.yaml", "--log", "a.jsonl")
    first = (folder / "a.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)[0]
    (folder / "first.jsonl").write_text(first, encoding="utf-8")
    (folder / "torn.jsonl").write_text(first[:-5], encoding="utf-8")
    (folder / "folder").mkdir()

    done = pi_run(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
