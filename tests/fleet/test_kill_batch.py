"""A batch that is killed at any moment goes on as if it never had been."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def totals(report: dict[str, Any]) -> dict[str, Any]:
    """What a report says but for times."""
    return {k: v for k, v in report["totals"].items() if k != "seconds"}


def size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


@pytest.mark.parametrize(
    ("runs", "kills"), [(24, 3), pytest.param(120, 20, marks=pytest.mark.slow)]
)
def test_a_batch_killed_at_random_comes_to_the_same(
    place: Path,
    batch: Any,
    rows: Callable[[list[dict[str, Any]]], str],
    runs: int,
    kills: int,
) -> None:
    spec = (place / "ask.yaml").read_text(encoding="utf-8")
    slow = spec.replace('{text: "one"', '{delay: 0.1, text: "one"')
    (place / "ask.yaml").write_text(slow, encoding="utf-8")
    words = ["ask.yaml", "--inputs", rows([{"n": n} for n in range(runs)]), "-j", "4"]
    done = batch(*words, "--out", "whole", "--format", "json")
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    (place / "ledger").unlink()

    chance = random.Random(7)
    command = [sys.executable, "-m", "runner", "batch", *words, "--out", "killed"]
    for _ in range(kills):
        before = size(place / "ledger")
        with subprocess.Popen(command, cwd=place, stderr=subprocess.DEVNULL) as process:
            # Most of them in the middle of runs, and some before there are any.
            while chance.random() < 0.99 and size(place / "ledger") == before:
                time.sleep(0.01)
            time.sleep(chance.random() * 0.2)
            process.send_signal(signal.SIGKILL)
    finished = [
        event["result"]["content"][0]["text"].strip()
        for log in (place / "killed/runs").glob("*.jsonl")
        for line in log.read_text(encoding="utf-8").splitlines()
        if line.endswith("}") and (event := json.loads(line))["type"] == "tool_execution_end"
    ]
    called = Counter((place / "ledger").read_text(encoding="utf-8").splitlines())
    last = batch(*words, "--out", "killed", "--format", "json")
    assert last.returncode == 0, last.stderr
    report = json.loads(last.stdout)

    assert totals(report) == totals(whole)
    keys = [run["key"] for run in report["runs"]]
    assert len(set(keys)) == len(keys) == runs
    assert keys == [run["key"] for run in whole["runs"]]
    lines = (place / "killed/results.jsonl").read_text(encoding="utf-8").splitlines()
    assert Counter(json.loads(line)["key"] for line in lines) == Counter(keys)
    after = Counter((place / "ledger").read_text(encoding="utf-8").splitlines())
    assert {text: after[text] for text in finished} == {text: called[text] for text in finished}
    assert set(after) == {f"{n} {word}" for n in range(runs) for word in ("one", "two")}
