"""A batch that is interrupted, or that the disk fails, ends in order and goes on."""

import json
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Rows = Callable[[list[dict[str, Any]]], str]
RUNS = 12


def ledger(place: Path) -> Counter[str]:
    return Counter((place / "ledger").read_text(encoding="utf-8").splitlines())


def stopped_calls(place: Path) -> set[str]:
    """What the calls would have written that a signal stopped."""
    stopped = set()
    for log in (place / "out/runs").iterdir():
        events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        said = {e["tool_call_id"]: e for e in events if e["type"] == "tool_execution_start"}
        for event in events:
            if event["type"] == "tool_execution_end" and "stopped" in event:
                text = said[event["tool_call_id"]]["arguments"]["text"]
                stopped.add(f"{events[0]['inputs']['n']} {text}")
    return stopped


@pytest.fixture
def slow(place: Path) -> Path:
    """The folder, whose spec waits before its second answer."""
    spec = (place / "ask.yaml").read_text(encoding="utf-8")
    spec = spec.replace('{text: "two"', '{delay: 0.3, text: "two"')
    (place / "ask.yaml").write_text(spec, encoding="utf-8")
    return place


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_it_whole_and_it_goes_on(
    slow: Path, batch: Any, rows: Rows, number: signal.Signals, code: int
) -> None:
    words = ["ask.yaml", "--inputs", rows([{"n": n} for n in range(RUNS)]), "-j", "3"]
    words += ["--out", "out", "--format", "json"]
    command = [sys.executable, "-m", "runner", "batch", *words]
    with subprocess.Popen(
        command, cwd=slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (slow / "ledger").exists():
            time.sleep(0.01)
        process.send_signal(number)
        out, told = process.communicate(timeout=20)
    assert process.returncode == code, told
    report = json.loads(out)
    assert report["stopped"] == "it was interrupted"
    assert report["totals"]["done"] < RUNS
    assert "the same command goes on with what is left" in told
    for log in (slow / "out/runs").iterdir():
        last = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])
        assert last["type"] == "run_end"

    done = batch(*words)
    assert done.returncode == 0, done.stderr
    # An answer that was stopped is a turn of its run, which is asked for anew in the next one.
    totals = json.loads(done.stdout)["totals"]
    assert (totals["done"], totals["passed"]) == (RUNS, RUNS)
    # So is a call that was stopped: perhaps before it wrote, and never done twice.
    stopped = stopped_calls(slow)
    every = {f"{n} {word}" for n in range(RUNS) for word in ("one", "two")}
    assert every - stopped <= ledger(slow).keys() <= every
    assert set(ledger(slow).values()) == {1}


def test_a_run_that_goes_on_knows_its_secrets_and_no_log_does(
    slow: Path, batch: Any, rows: Rows
) -> None:
    spec = (slow / "ask.yaml").read_text(encoding="utf-8")
    spec = spec.replace("  n: {type", "  key: {type: string, secret: true}\n  n: {type")
    spec = spec.replace('-, "{{ inputs.n }}', '-, "{{ inputs.key }}')
    (slow / "ask.yaml").write_text(spec, encoding="utf-8")
    words = ["ask.yaml", "--inputs", rows([{"n": 1, "key": "hunter2-hunter2"}]), "--out", "out"]
    with subprocess.Popen(
        [sys.executable, "-m", "runner", "batch", *words], cwd=slow, stderr=subprocess.DEVNULL
    ) as process:
        while not (slow / "ledger").exists():
            time.sleep(0.01)
        process.kill()
    done = batch(*words)
    assert done.returncode == 0, done.stderr
    [log] = (slow / "out/runs").iterdir()
    text = log.read_text(encoding="utf-8")
    assert '"run_resume"' in text
    assert "hunter2" not in text
    assert ledger(slow)["hunter2-hunter2 two"] == 1
    assert set(ledger(slow)) == {"hunter2-hunter2 one", "hunter2-hunter2 two"}


@pytest.mark.parametrize("most", [2_000, 5_000])
def test_a_full_disk_ends_it_with_6_and_it_goes_on(
    place: Path, batch: Any, rows: Rows, most: int
) -> None:
    # One bound is reached by the first log, the other by the results of all of them.
    words = ["ask.yaml", "--inputs", rows([{"n": n} for n in range(RUNS)]), "--out", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "runner", "batch", *words],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert done.returncode == 6, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr
    again = batch(*words, "--format", "json")
    assert again.returncode == 0, again.stderr
    report = json.loads(again.stdout)
    assert (report["totals"]["done"], report["totals"]["turns"]) == (RUNS, 3 * RUNS)
    lines = (place / "out/results.jsonl").read_text(encoding="utf-8").splitlines()
    assert len({json.loads(line)["key"] for line in lines}) == RUNS


def test_results_that_were_torn_or_lost_are_made_of_the_logs(
    place: Path, batch: Any, rows: Rows
) -> None:
    words = ["ask.yaml", "--inputs", rows([{"n": n} for n in range(4)]), "--out", "out"]
    words += ["--format", "json"]
    first = batch(*words)
    results = place / "out/results.jsonl"
    text = results.read_text(encoding="utf-8")
    results.write_text(text[:-20], encoding="utf-8")
    assert batch(*words).stdout == first.stdout
    results.write_text("what is this\n" + "\0" * 100, encoding="utf-8")
    assert batch(*words).stdout == first.stdout
    results.unlink()
    assert batch(*words).stdout == first.stdout
    assert sum(ledger(place).values()) == 8


def test_a_run_whose_log_is_gone_is_done_again(place: Path, batch: Any, rows: Rows) -> None:
    words = ["ask.yaml", "--inputs", rows([{"n": n} for n in range(3)]), "--out", "out"]
    assert batch(*words).returncode == 0
    next((place / "out/runs").iterdir()).unlink()
    assert batch(*words).returncode == 0
    assert sum(ledger(place).values()) == 8


@pytest.mark.parametrize("text", ["", "{}", "[1]", "\0", '{"format": "pi-run-batch/9"}'])
def test_a_folder_that_is_no_batch_is_told(place: Path, batch: Any, rows: Rows, text: str) -> None:
    (place / "out").mkdir()
    (place / "out/batch.json").write_text(text, encoding="utf-8")
    done = batch("ask.yaml", "--inputs", rows([{"n": 1}]), "--out", "out")
    assert done.returncode == 2
    assert "is no batch that this pi-run knows" in done.stderr
