"""Where the pages of `show`, `diff` and `replay` go."""

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def log(folder: Path, spec: Callable[..., Path], pi_run: PiRun) -> Path:
    """A log, `log.jsonl`."""
    spec()
    assert pi_run("spec.yaml", "--log", "log.jsonl").returncode == 0
    return folder / "log.jsonl"


@pytest.mark.parametrize(
    "command", [("show", "log.jsonl"), ("diff", "log.jsonl", "log.jsonl"), ("replay", "log.jsonl")]
)
def test_a_page_is_written_and_its_place_told(
    log: Path, pi_run: PiRun, command: tuple[str, ...]
) -> None:
    done = pi_run(*command, "--html", "page.html")

    assert (done.returncode, done.stdout) == (0, "")
    assert "page.html: written" in done.stderr
    assert (log.parent / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in log.parent.glob(".*")) == []


def test_stdout_gets_it_alone(log: Path, pi_run: PiRun) -> None:
    done = pi_run("show", "log.jsonl", "--html", "-")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("<!doctype html>")
    assert done.stdout.rstrip().endswith("</html>")


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_a_log_is_never_overwritten_by_its_page(
    log: Path, pi_run: PiRun, link: Callable[..., None]
) -> None:
    before = log.read_bytes()
    link(log, log.parent / "other.html")

    for name in ("log.jsonl", "other.html"):
        for command in (("show", "log.jsonl"), ("diff", "log.jsonl", "log.jsonl")):
            done = pi_run(*command, "--html", name)
            assert done.returncode == 2
            assert f"--html {name}: it is the log; name another file" in done.stderr
    assert log.read_bytes() == before


def test_a_page_that_stands_there_is_replaced_with_its_rights(log: Path, pi_run: PiRun) -> None:
    page = log.parent / "page.html"
    page.write_text("old", encoding="utf-8")
    page.chmod(0o640)

    pi_run("show", "log.jsonl", "--html", "page.html")

    assert page.stat().st_size > 1000
    assert stat.S_IMODE(page.stat().st_mode) == 0o640


def test_a_page_of_nothing_replaces_none(log: Path, pi_run: PiRun) -> None:
    page = log.parent / "page.html"
    page.write_text("old", encoding="utf-8")

    done = pi_run("show", "log.jsonl", "--turn", "7", "--html", "page.html")

    assert done.returncode == 2
    assert "turn 7" in done.stderr
    assert page.read_text(encoding="utf-8") == "old"
    assert [path.name for path in log.parent.glob(".*")] == []


@pytest.mark.parametrize(
    ("place", "why", "code"),
    [
        (".", "--html .: it is a folder; name a file in it", 2),
        ("none/page.html", "none/page.html: can't be written: No such file or directory", 6),
        ("/dev/full", "/dev/full: can't be written: No space left on device", 6),
    ],
)
def test_a_place_that_is_none(log: Path, pi_run: PiRun, place: str, why: str, code: int) -> None:
    done = pi_run("show", "log.jsonl", "--html", place)

    assert done.returncode == code
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_two_logs_of_a_page_are_files(log: Path, pi_run: PiRun) -> None:
    text = log.read_text(encoding="utf-8")

    assert pi_run("show", "/dev/stdin", "--html", "page.html", input=text).returncode == 0
    done = pi_run("diff", "log.jsonl", "/dev/stdin", "--html", "page.html", input=text)

    assert done.returncode == 6
    assert "is a pipe, which gives its lines only once" in done.stderr


def test_a_device_gets_it_as_it_is(log: Path, pi_run: PiRun) -> None:
    assert pi_run("show", "log.jsonl", "--html", "/dev/null").returncode == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--print",), "pi-run show LOG --html FILE writes a page"),
        (("--from-turn", "1"), "of a fork's log: pi-run show LOG --html"),
    ],
)
def test_replays_that_have_no_page(
    log: Path, pi_run: PiRun, flags: tuple[str, ...], why: str
) -> None:
    done = pi_run("replay", "log.jsonl", *flags, "--html", "page.html")

    assert done.returncode == 2
    assert why in done.stderr


def test_a_replay_keeps_stdout_for_itself(log: Path, pi_run: PiRun) -> None:
    done = pi_run("replay", "log.jsonl", "--html", "-")

    assert done.returncode == 2
    assert "name a file" in done.stderr


def test_a_replay_with_a_model_has_a_page_too(log: Path, pi_run: PiRun) -> None:
    spec = log.parent / "spec.yaml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("hello", "bye"), encoding="utf-8")
    flags = ("--live", "model", "--spec", "spec.yaml", "--log", "none")

    done = pi_run("replay", "log.jsonl", *flags, "--html", "page.html")

    assert "page.html: written" in done.stderr
    assert '"kind":"report"' in (log.parent / "page.html").read_text(encoding="utf-8")
