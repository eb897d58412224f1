"""Measures `pi-run batch`: runs a second, and peak memory from 1,000 to 10,000 runs.

    python -m tests.bench.batch_many                     1,000 and 10,000 runs of 3 turns, -j 64
    python -m tests.bench.batch_many 1000 --rounds 3     the best of three
    python -m tests.bench.batch_many --check             exit 1 where memory grows with the runs

Each run is two calls of a tool and an answer, with its log: once with the scripted model, once with
a model server on this machine. What is measured is the whole command, its start included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench.run import model_server

TOOLS = Path(__file__).parent / "bench_tools.py"
SCRIPTED = """\
  provider: scripted
  script:
    - {tool_calls: [{name: echo, arguments: {text: "step 0 of some hundred characters"}}]}
    - {tool_calls: [{name: echo, arguments: {text: "step 1 of some hundred characters"}}]}
    - {text: "All done with {{ inputs.n }}."}
"""
SERVED = """\
  provider: openai
  id: turns-2
  base_url: "http://127.0.0.1:PORT/v1"
  api_key: {env: BENCH_KEY}
"""
SPEC = """\
version: 1
name: many
inputs: {n: {type: integer}}
model:
MODELtools: [{python: "TOOLS:echo"}]
prompt: "Do the steps of {{ inputs.n }}, then say that all is done."
"""
FLAT = 1.25
"""How much more memory ten times as many runs may take."""


@dataclass
class Measured:
    """One command."""

    wall: float
    cpu: float
    rss_mb: float


def measure(model: str, runs: int) -> Measured:
    """Do so many runs, in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        spec = SPEC.replace("MODEL", model).replace("TOOLS", str(TOOLS))
        (place / "many.yaml").write_text(spec, encoding="utf-8")
        rows = "".join(f'{{"n": {n}}}\n' for n in range(runs))
        (place / "rows.jsonl").write_text(rows, encoding="utf-8")
        words = ["batch", "many.yaml", "--inputs", "rows.jsonl", "-j", "64"]
        began = time.perf_counter()
        with (place / "report.jsonl").open("w", encoding="utf-8") as report:
            process = subprocess.Popen(
                [sys.executable, "-m", "runner", *words, "--quiet", "--format", "jsonl"],
                cwd=folder,
                stdout=report,
                env={**os.environ, "BENCH_KEY": "sk-bench"},
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        lines = (place / "report.jsonl").read_text(encoding="utf-8").splitlines()
        turns = sum(json.loads(line)["turns"] for line in lines)
        if process.returncode or turns != 3 * runs:
            raise SystemExit(f"the batch ended with {process.returncode} after {turns} turns")
    return Measured(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> int:
    """Measure, print, and give the exit code."""
    parser = argparse.ArgumentParser(description="Measure pi-run batch.")
    parser.add_argument("runs", nargs="*", type=int, default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="exit 1 where memory is not flat")
    options = parser.parse_args()
    grown = 0.0
    print("| model | runs | runs/s | CPU a run | peak RSS |\n| --- | ---: | ---: | ---: | ---: |")
    with model_server() as port:
        for name, model in (("scripted", SCRIPTED), ("HTTP", SERVED.replace("PORT", str(port)))):
            least = []
            for runs in options.runs:
                done = [measure(model, runs) for _ in range(options.rounds)]
                wall, cpu = min(each.wall for each in done), min(each.cpu for each in done)
                least.append(min(each.rss_mb for each in done))
                figures = f"{runs / wall:.0f} | {cpu / runs * 1e3:.2f} ms | {least[-1]:.1f} MB"
                print(f"| {name} | {runs:,} | {figures} |", flush=True)
            grown = max(grown, least[-1] / least[0])
    print(f"\nmemory of the most runs: {grown:.2f} times that of the fewest; bound {FLAT}")
    return int(options.check and grown > FLAT)


if __name__ == "__main__":
    sys.exit(main())
