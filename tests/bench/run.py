"""Measures pi-run against its floor, one after the other in turns, and prints a table of ratios.

    python -m tests.bench.run                          all workloads, 3 rounds
    python -m tests.bench.run turns stream --rounds 5
    python -m tests.bench.run --check                  exit 1 where a ratio is over its bound

Only ratios of one run mean something: machines differ, and are shared. Every figure is the least of
the rounds, since whatever else a machine does only adds to it.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTENDERS = ("floor", "pi-run")


@dataclass(frozen=True)
class Workload:
    """What is done, and how much more than the floor it may take."""

    model: str
    """For the model server: what to do, and how often."""
    figure: str
    """What is compared: ``cpu``, ``wall`` or ``rss_mb``."""
    bound: float
    """The ratio to the floor that a regression would pass, and a slow machine would not."""
    runs: int = 1
    """How many runs there are in one process."""
    at_once: int = 1
    """How many of them at a time."""


WORKLOADS = {
    "turns": Workload("turns-200", "cpu", 1.3),
    "turns-400": Workload("turns-400", "cpu", 1.3),
    "stream": Workload("stream-20000", "cpu", 1.2),
    "stream-memory": Workload("stream-20000", "rss_mb", 1.5),
    "parallel": Workload("sleep-32", "wall", 2.0),
    "parallel-blocking": Workload("block-32", "wall", 2.0),
    "many": Workload("turns-2", "cpu", 1.7, runs=200, at_once=64),
    "many-memory": Workload("turns-2", "rss_mb", 2.0, runs=200, at_once=64),
}
GROWTH = 1.15
"""The bound of the exponent by which CPU time grows from 50 to 400 turns; 1 is linear."""

Figures = dict[str, float]


@contextmanager
def model_server() -> Iterator[int]:
    """The port of a model server in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.model_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        try:
            assert server.stdout is not None
            yield int(server.stdout.readline())
        finally:
            server.kill()


def measure(contender: str, workload: Workload, port: int) -> Figures:
    """One measurement, in a new process and an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        counts = [str(workload.runs), str(workload.at_once)]
        command = [sys.executable, "-m", "tests.bench.contender", contender, workload.model]
        done = subprocess.run(
            [*command, str(port), folder, *counts], capture_output=True, text=True, cwd=ROOT
        )
    if done.returncode:
        raise SystemExit(f"{contender} failed at {workload.model}: {done.stderr[-2000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def least(workload: Workload, port: int, rounds: int) -> dict[str, Figures]:
    """The least of each figure over the rounds, by contender; these take turns."""
    best: dict[str, Figures] = {}
    for number in range(rounds):
        for contender in CONTENDERS[:: 1 if number % 2 else -1]:
            figures = measure(contender, workload, port)
            known = best.setdefault(contender, figures)
            best[contender] = {name: min(known[name], value) for name, value in figures.items()}
    return best


def ratio(name: str, port: int, rounds: int) -> float:
    """How much of a workload's figure pi-run takes, for what the floor takes of it."""
    workload = WORKLOADS[name]
    best = least(workload, port, rounds)
    return best["pi-run"][workload.figure] / best["floor"][workload.figure]


def growth(port: int, rounds: int, few: int = 50, many: int = 400) -> float:
    """The exponent by which pi-run's CPU time grows with the number of turns."""
    seconds = [
        min(measure("pi-run", Workload(f"turns-{n}", "cpu", 0), port)["cpu"] for _ in range(rounds))
        for n in (few, many)
    ]
    return math.log(seconds[1] / seconds[0]) / math.log(many / few)


def main() -> int:
    """Measure what is asked for; gives the exit code."""
    parser = argparse.ArgumentParser(description="Measure pi-run against its floor.")
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true", help="exit 1 where a bound is passed")
    options = parser.parse_args()
    if unknown := set(options.names) - {*WORKLOADS, "growth"}:
        parser.error(f"no such workload: {', '.join(sorted(unknown))}")
    passed = []
    print("| workload | figure | pi-run ÷ floor | bound |\n| --- | --- | ---: | ---: |")
    with model_server() as port:
        for name in options.names or [*WORKLOADS, "growth"]:
            if name == "growth":
                figure, found, bound = "exponent of CPU, 50 → 400 turns", growth(port, 2), GROWTH
            else:
                workload = WORKLOADS[name]
                figure, bound = workload.figure, workload.bound
                found = ratio(name, port, options.rounds)
            print(f"| {name} | {figure} | {found:.2f} | {bound:.2f} |", flush=True)
            passed += [name] * (found > bound)
    if passed and options.check:
        print(f"over the bound: {', '.join(passed)}", file=sys.stderr)
    return int(bool(passed and options.check))


if __name__ == "__main__":
    sys.exit(main())
