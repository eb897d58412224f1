"""Measures what it takes to read, show, compare and replay a log, and how that grows with it.

    python -m tests.bench.log                     logs of 14,000 and 112,000 events, 3 rounds
    python -m tests.bench.log --turns 500 8000    of other lengths; a turn has 14 events
    python -m tests.bench.log --check             exit 1 where an exponent is over its bound

The logs are those of real runs with the scripted model. What a process takes to start is measured
by itself and left out. Every figure is the least of the rounds.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

GROWTH = 1.05
"""The bound of the exponents; 1 is linear."""
COMMANDS = {
    "read": ["-c", "import sys; from runner.log.read import read; [0 for _ in read(sys.argv[1])]"],
    "show": ["-m", "runner", "show"],
    "print": ["-m", "runner", "replay", "--print"],
    "diff": ["-m", "runner", "diff"],
    "replay": ["-m", "runner", "replay"],
}
SPEC = """\
version: 1
model:
  provider: scripted
  script:
    - {{text: one two three, deltas: 3, tool_calls: [{{name: note}}], repeat: {turns}}}
    - {{text: done}}
prompt: Go
limits: {{turns: null, repeats: null, tool_calls: null}}
tools: [{{python: "./tools.py:note"}}]
"""
TOOL = '''\
def note() -> str:
    """Note."""
    return "noted"
'''


def record(folder: Path, turns: int) -> Path:
    """The log of a run of so many turns."""
    (folder / "tools.py").write_text(TOOL, encoding="utf-8")
    spec = folder / f"{turns}.yaml"
    spec.write_text(SPEC.format(turns=turns), encoding="utf-8")
    log = spec.with_suffix(".jsonl")
    command = [sys.executable, "-m", "runner", str(spec), "--log", str(log), "--quiet"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return log


def measure(words: list[str]) -> tuple[float, float]:
    """Seconds of CPU time, and MiB of memory at most, of a Python process."""
    null = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, *words], **null) as process:  # type: ignore[call-overload]
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def least(words: list[str], rounds: int) -> tuple[float, float]:
    """The least of both figures in some rounds."""
    figures = [measure(words) for _ in range(rounds)]
    return min(cpu for cpu, _ in figures), min(mib for _, mib in figures)


def main() -> int:
    """Print a line a command; 1 where one grows too much and that is to be checked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, nargs=2, default=(1000, 8000))
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--check", action="store_true")
    given = options.parse_args()
    too_much = False
    with tempfile.TemporaryDirectory() as folder:
        one, few, many = (record(Path(folder), turns) for turns in (1, *given.turns))
        events = [sum(1 for _ in log.open("rb")) for log in (few, many)]
        sizes = math.log(many.stat().st_size / few.stat().st_size) / math.log(
            given.turns[1] / given.turns[0]
        )
        print(f"{events[0]} and {events[1]} events; bytes grow with the turns by {sizes:.3f}")
        for name, words in COMMANDS.items():
            logs = [
                [*words, *([str(log)] * (2 if name == "diff" else 1))] for log in (one, few, many)
            ]
            start, short, long = (least(command, given.rounds) for command in logs)
            growth = math.log((long[0] - start[0]) / (short[0] - start[0])) / math.log(
                events[1] / events[0]
            )
            each = (long[0] - start[0]) / events[1] * 1e6
            memory = f"{short[1]:5.0f} MiB {long[1]:5.0f} MiB"
            print(f"{name:8}{each:7.1f} us an event, exponent {growth:.2f}, {memory}", flush=True)
            too_much = too_much or growth > GROWTH
    return int(given.check and too_much)


if __name__ == "__main__":
    sys.exit(main())
