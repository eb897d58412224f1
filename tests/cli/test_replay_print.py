"""A log shown as its run looked: the same text, in its own time or at once, and nothing run."""

import os
import signal
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.cli.playback import play
from runner.cli.streams import Streams
from runner.json_text import line, parse

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]

HELLO = """\
version: 1
model: {provider: scripted, script: [{text: hello}]}
prompt: Hello
"""

SPEC = """\
version: 1
model:
  provider: scripted
  script:
    - {text: Let me roll., tool_calls: [{name: roll}, {name: none}], deltas: 3}
    - text: "It was {{ last.text }}."
prompt: Roll.
tools:
  - {name: roll, description: Roll., parameters: {type: object}, command: [printf, six]}
follow_ups: {messages: [{text: Again}]}
"""


@pytest.fixture
def log(pi_run: PiRun, folder: Path) -> Path:
    """The log of a run that ended in an error."""
    (folder / "spec.yaml").write_text(SPEC, encoding="utf-8")
    pi_run("spec.yaml", "--log", "log.jsonl")
    (folder / "spec.yaml").unlink()
    return folder / "log.jsonl"


def edited(log: Path, change: Callable[[list[str]], list[str]]) -> None:
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    log.write_text("".join(change(lines)), encoding="utf-8")


@pytest.mark.parametrize("verbose", [[], ["--verbose"]])
def test_it_is_shown_as_it_looked(
    pi_run: PiRun, spec: Callable[..., Path], verbose: list[str]
) -> None:
    spec(text=SPEC)
    run = pi_run("run", "spec.yaml", "--log", "log.jsonl", *verbose)
    assert run.stderr.count("\n") > 6
    shown = pi_run("replay", "log.jsonl", "--print", *verbose)
    looked = [x for x in run.stderr.splitlines() if not x.startswith(("pi-run: ", "log: "))]
    assert shown.stdout.splitlines() == looked + run.stdout.splitlines()
    assert (shown.stderr, shown.returncode) == ("", 0)


def test_the_final_text_is_shown(pi_run: PiRun, spec: Callable[..., Path]) -> None:
    spec()
    pi_run("spec.yaml", "--log", "log.jsonl")
    shown = pi_run("replay", "log.jsonl", "--print")
    assert shown.stdout.splitlines()[-1] == "hello"


@pytest.mark.parametrize(
    "words",
    [
        ["--spec", "spec.yaml"],
        ["--live", "tools"],
        ["--from-turn", "1"],
        ["--log", "fork.jsonl"],
        ["--format", "json"],
    ],
)
def test_it_takes_nothing_that_would_run(pi_run: PiRun, log: Path, words: list[str]) -> None:
    found = pi_run("replay", str(log), "--print", *words)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("pi-run: --print ")


def test_a_speed_without_it_is_refused(pi_run: PiRun, log: Path) -> None:
    assert pi_run("replay", str(log), "--print", "--speed", "nan").returncode == 2
    found = pi_run("replay", str(log), "--speed", "1")
    assert (found.returncode, found.stdout) == (2, "")


def test_a_log_that_breaks_off_is_shown_as_far_as_it_goes(pi_run: PiRun, log: Path) -> None:
    edited(log, lambda lines: [*lines[:12], lines[12][:9]])
    shown = pi_run("replay", str(log), "--print")
    assert "turn 1\n" in shown.stdout
    assert shown.returncode == 0
    assert [x.split(": ")[-1] for x in shown.stderr.splitlines()] == [
        "line 13, the last, was cut off by a crash; it is dropped",
        "the log breaks off before its run ended",
    ]
    assert pi_run("replay", str(log), "--print", "--quiet").stderr == ""


def test_a_broken_line_is_told_after_what_comes_before_it(pi_run: PiRun, log: Path) -> None:
    edited(log, lambda lines: [*lines[:5], "{}\n", *lines[6:]])
    shown = pi_run("replay", str(log), "--print")
    assert "turn 1\n" in shown.stdout
    assert (shown.returncode, shown.stderr.count("\n")) == (6, 1)
    assert "line 6" in shown.stderr


def test_time_passes_as_fast_as_is_asked_for(pi_run: PiRun, log: Path) -> None:
    def slower(lines: list[str]) -> list[str]:
        events = [parse(one) for one in lines]
        return [line({**event, "t": 0.5 * event["seq"]}) + "\n" for event in events]

    edited(log, slower)
    lines = len(log.read_text(encoding="utf-8").splitlines())
    at_once, started = pi_run("replay", str(log), "--print"), time.monotonic()
    in_time = pi_run("replay", str(log), "--print", "--speed", "50")
    assert in_time.stdout == at_once.stdout
    assert time.monotonic() - started >= (lines - 1) * 0.5 / 50


def test_a_canonical_log_has_no_time_to_wait_for(pi_run: PiRun, spec: Callable[..., Path]) -> None:
    spec()
    pi_run("run", "spec.yaml", "--frozen", "--log", "log.jsonl")
    shown = pi_run("replay", "log.jsonl", "--print", "--speed", "0.0001")
    assert (shown.returncode, shown.stdout.splitlines()[-1]) == (0, "hello")


@pytest.fixture
def waits(log: Path, folder: Path, command: str) -> Callable[[], "subprocess.Popen[str]"]:
    """Starts the command on a log whose second half comes in a year."""

    def later(lines: list[str]) -> list[str]:
        events = [parse(one) for one in lines]
        middle = len(events) // 2
        return [line({**e, "t": 0 if e["seq"] < middle else 3e7}) + "\n" for e in events]

    edited(log, later)
    words = [command, "replay", str(log), "--print", "--speed", "1"]

    def start() -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        )
        assert process.stdout is not None
        assert process.stdout.readline().startswith("spec: started")
        return process

    return start


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_quietly(
    waits: Callable[[], "subprocess.Popen[str]"], number: signal.Signals
) -> None:
    process = waits()
    process.send_signal(number)
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 128 + number


def test_it_ends_quietly_when_nobody_reads_it(
    waits: Callable[[], "subprocess.Popen[str]"],
) -> None:
    process = waits()
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        assert stderr.read() == ""
    assert process.wait(timeout=30) == 0


def test_memory_does_not_grow_with_the_log(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = log.read_text(encoding="utf-8").splitlines()
    streams = Streams()
    null = os.open(os.devnull, os.O_WRONLY)
    monkeypatch.setattr(streams, "_result", null)

    def peak(times: int) -> int:
        middle = [parse(one) for one in lines[3:-1]] * times
        events = [*map(parse, lines[:3]), *middle, parse(lines[-1])]
        with log.open("w", encoding="utf-8") as file:
            for seq, event in enumerate(events):
                file.write(line({**event, "seq": seq, "t": 0.0}) + "\n")
        del events, middle
        tracemalloc.start()
        assert play(streams, str(log), speed=0, quiet=True, color=False) == 0
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1)  # what is imported and cached once
    assert peak(100) < 1.2 * peak(10)
    os.close(null)


def test_a_quiet_replay_tells_only_what_differs(pi_run: PiRun, spec: Callable[..., Path]) -> None:
    spec()
    pi_run("spec.yaml", "--log", "log.jsonl")
    same = pi_run("replay", "log.jsonl", "--quiet")
    assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    spec(text=HELLO.replace("prompt: Hello", "prompt: Bye"))
    other = pi_run("replay", "log.jsonl", "--quiet", "--spec", "spec.yaml")
    assert (other.returncode, other.stderr) == (1, "")
    assert "differs at seq" in other.stdout
