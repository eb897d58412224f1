"""Measures what a fleet asks of its database, and what one worker holds.

    python -m tests.bench.fleet                            SQLite, 200 runs
    python -m tests.bench.fleet --database postgresql://…  another database, which is to be empty
    python -m tests.bench.fleet --runs 1000 -j 64

The runs are those of a scripted model that streams in pieces: three turns, two calls of a Python
function. The database's own time for lines is measured by itself, without runs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from runner.api import RunOptions
from runner.fleet import Work
from runner.fleet.database import listed, open_database
from runner.fleet.database.connect import Database
from runner.fleet.database.lines import append
from runner.fleet.database.schema import LINES, RUNS, WORKERS
from runner.fleet.database.store import FleetControl

SPEC = """\
version: 1
inputs:
  n: {type: integer}
model:
  provider: scripted
  script:
    - {text: "Let me note that, and then go on.", deltas: 10, tool_calls: [{name: note}]}
    - {text: "Let me note that, and then go on.", deltas: 10, tool_calls: [{name: note}]}
    - {text: "Done with {{ inputs.n }}, as was asked for.", deltas: 10}
tools: [{python: "./tools.py:note"}]
prompt: Go
"""
TOOL = '''\
def note() -> str:
    """Note."""
    return "noted"
'''
_WORKER = "bench"


def put(folder: Path, count: int, database: Database) -> float:
    """Put runs into the database; gives the seconds that it took."""
    (folder / "tools.py").write_text(TOOL, encoding="utf-8")
    (folder / "spec.yaml").write_text(SPEC, encoding="utf-8")
    rows = folder / "rows.jsonl"
    rows.write_text("".join(f'{{"n": {n}}}\n' for n in range(count)), encoding="utf-8")
    work = Work.of([str(folder / "spec.yaml")], RunOptions(), rows=str(rows))
    control = FleetControl(database)
    began = time.perf_counter()
    control.put(work, "bench")
    return time.perf_counter() - began


def do(folder: Path, url: str, at_once: int) -> tuple[float, float, float]:
    """Have one worker do all; gives its seconds, those of its CPU, and its MiB at most."""
    command = [sys.executable, "-P", "-m", "runner", "worker", "--until-idle", "-q"]
    began = time.perf_counter()
    worker = subprocess.Popen(
        [*command, "-j", str(at_once)], cwd=folder, env={**os.environ, "PI_RUN_DATABASE": url}
    )
    _, status, used = os.wait4(worker.pid, 0)
    if status:
        raise SystemExit(f"the worker ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def lines_a_second(database: Database, at_once: int, rounds: int) -> float:
    """How many lines the database takes of one worker, five of each run in a transaction."""
    with database.begin() as connection:
        row = {"worker": _WORKER, "at_once": 1, "began_at": 0.0, "gone": True}
        connection.execute(sa.insert(WORKERS).values(**row))
        found = connection.execute(sa.select(RUNS).limit(at_once)).all()
        names = [f"bench-{n}" for n in range(len(found))]
        for name, one in zip(names, found, strict=True):
            changed = {**one._mapping, "run_id": name, "owner": _WORKER}
            connection.execute(sa.insert(RUNS).values(**changed))
    text = "x" * 300
    began = time.perf_counter()
    for number in range(rounds):
        append(
            database,
            _WORKER,
            [(name, 5 * number + n, text) for name in names for n in range(5)],
        )
    return 5 * rounds * len(names) / (time.perf_counter() - began)


def totals(database: Database) -> dict[str, Any]:
    """How much is in the database."""
    with database.read() as connection:
        row = connection.execute(
            sa.select(sa.func.count(), sa.func.sum(sa.func.length(LINES.c.line)))
        ).one()
        first, last = connection.execute(
            sa.select(sa.func.min(RUNS.c.claimed_at), sa.func.max(RUNS.c.ended_at))
        ).one()
    good = sum(run.state == "ok" for run in listed.every(database))
    return {"lines": row[0], "bytes": row[1], "seconds": last - first, "good": good}


def measure(folder: Path, words: argparse.Namespace) -> None:
    """Do all of it, and print what came of it."""
    url = words.database or f"sqlite:///{folder}/fleet.db"
    database = open_database(url)
    took = put(folder, words.runs, database)
    seconds, cpu, memory = do(folder, url, words.at_once)
    found = totals(database)
    if found["good"] != words.runs:
        raise SystemExit(f"{found['good']} of {words.runs} runs were good")
    busy, count = found["seconds"], words.runs
    print(f"{database.shown}: {count} runs, -j {words.at_once}")
    print(f"put in       {count / took:8,.0f} runs/s")
    print(f"done         {count / busy:8,.1f} runs/s, {seconds - busy:.1f} s to begin and end")
    print(
        f"lines        {found['lines'] / count:8,.0f} a run, {found['lines'] / busy:,.0f} a second"
    )
    print(
        f"bytes        {found['bytes'] / count:8,.0f} a run, {found['bytes'] / busy:,.0f} a second"
    )
    print(f"CPU          {1000 * cpu / count:8,.1f} ms a run")
    print(f"memory       {memory:8,.0f} MiB at most")
    most = lines_a_second(database, words.at_once, words.rounds)
    print(f"lines alone  {most:8,.0f} a second, {words.at_once * 5} in a transaction")
    database.close()


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--database", metavar="URL")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("-j", dest="at_once", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=200)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), parser.parse_args())


if __name__ == "__main__":
    main()
