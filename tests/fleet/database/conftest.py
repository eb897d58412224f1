"""A fleet for tests: workers as processes of their own, on SQLite and on a PostgreSQL."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos", reason="the extra `fleet` is not installed")

from runner.api import RunOptions
from runner.fleet import Work
from runner.fleet.database import listed, open_database
from runner.fleet.database.connect import Database
from runner.fleet.database.lines import read_lines
from runner.fleet.database.store import FleetControl

SPEC = """\
version: 1
name: ask
inputs:
  n: {type: integer}
  gate: {type: string, default: .}
model:
  provider: scripted
  script:
    - {text: "one", tool_calls: [{name: note, arguments: {text: one}}]}
    - {text: "two", tool_calls: [{name: note, arguments: {text: two}}]}
    - {text: "said {{ inputs.n }}"}
tools:
  - name: note
    description: Write a line into the ledger.
    parameters: {type: object, properties: {text: {type: string}}, required: [text]}
    command:
      [sh, -c, 'echo "$1" >> ledger; until [ -e "$2" ]; do sleep 0.3; done', -,
       "{{ inputs.n }} {{ args.text }}", "{{ inputs.gate }}"]
prompt: "Say {{ inputs.n }}."
expect: [{contains: said}]
"""
_PLACES = ("/usr/local/bin", "/usr/bin", "/usr/lib/postgresql/*/bin")


class Postgres:
    """A server with a cluster of its own, which is never root's."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        self._call("initdb", "-D", "data", "-A", "trust", "-U", "pi", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-k {self._folder} -p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._call("pg_ctl", "-D", "data", "-o", options, "-l", "log", "-w", "start")

    def stop(self) -> None:
        self._call("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")

    def new(self, name: str) -> str:
        """The URL of a new database."""
        self._call("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "pi", name)
        return f"postgresql://pi:not-to-be-seen@127.0.0.1:{self.port}/{name}"

    def _call(self, program: str, *words: str) -> None:
        root = os.geteuid() == 0
        subprocess.run(
            [self._programs / program, *words],
            cwd=self._folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user="nobody" if root else None,
            group="nogroup" if root else None,
        )


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server for all tests of this process."""
    found = [place for each in _PLACES for place in sorted(Path("/").glob(each[1:]))]
    programs = next((place for place in reversed(found) if (place / "initdb").exists()), None)
    if programs is None:
        pytest.skip("there is no PostgreSQL; on Debian: apt-get install postgresql")
    # Not below pytest's own folder, which only its user may enter.
    folder = Path(tempfile.mkdtemp(prefix="pi-run-postgres-"))
    server = Postgres(programs, folder)
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


class Fleet:
    """A folder with a spec, a database, and the workers of a test."""

    def __init__(self, place: Path, url: str) -> None:
        self.place, self.url = place, url
        known = {k: v for k, v in os.environ.items() if not k.startswith(("PI_RUN_", "GITHUB_"))}
        self.environ = known | {"PI_RUN_DATABASE": url}
        self.workers: list[subprocess.Popen[str]] = []
        (place / "ask.yaml").write_text(SPEC, encoding="utf-8")

    def worker(self, *words: str) -> subprocess.Popen[str]:
        """Start a worker."""
        errors = (self.place / f"worker-{len(self.workers)}.err").open("w", encoding="utf-8")
        with errors:
            worker = subprocess.Popen(
                [sys.executable, "-P", "-m", "runner", "worker", "--grace", "0", *words],
                cwd=self.place,
                env=self.environ,
                stderr=errors,
                stdout=subprocess.DEVNULL,
                text=True,
            )
        self.workers.append(worker)
        return worker

    def said(self, worker: subprocess.Popen[str]) -> str:
        """What a worker said so far."""
        path = self.place / f"worker-{self.workers.index(worker)}.err"
        return path.read_text(encoding="utf-8")

    def call(self, *words: str, code: int = 0) -> str:
        """Call pi-run; gives what it prints."""
        done = self.process(*words)
        assert done.returncode == code, done.stderr
        return done.stdout

    def process(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Call pi-run."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "runner", *words],
            cwd=self.place,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def put(self, count: int, *, first: int = 0, gate: str = ".") -> None:
        """Put runs into the database, whose tools wait until there is a file."""
        numbers = range(first, first + count)
        rows = "".join(json.dumps({"n": n, "gate": gate}) + "\n" for n in numbers)
        (self.place / "rows.jsonl").write_text(rows, encoding="utf-8")
        specs, options = [str(self.place / "ask.yaml")], RunOptions()
        work = Work.of(specs, options, rows=str(self.place / "rows.jsonl"))
        with self.database() as database:
            FleetControl(database).put(work, "ask")

    @contextlib.contextmanager
    def database(self) -> Iterator[Database]:
        """Its database."""
        database = open_database(self.url)
        try:
            yield database
        finally:
            database.close()

    def open(self, gate: str) -> None:
        """Let tools go on."""
        (self.place / gate).touch()

    def ready(self, *workers: subprocess.Popen[str]) -> None:
        """Wait until workers take up runs."""
        self.until(lambda: all("at a time" in self.said(worker) for worker in workers))

    def runs(self) -> list[dict[str, Any]]:
        """All runs, as `pi-run runs list` tells them."""
        with self.database() as database:
            return [run.as_json() for run in listed.every(database)]

    def log(self, run_id: str) -> list[dict[str, Any]]:
        """The lines of a run's log."""
        with self.database() as database:
            return [json.loads(line) for line in read_lines(database, run_id)]

    def ledger(self) -> list[str]:
        """What the tools of all runs wrote."""
        with contextlib.suppress(FileNotFoundError):
            return (self.place / "ledger").read_text(encoding="utf-8").splitlines()
        return []

    def until(self, holds: Callable[[], bool], seconds: float = 40.0) -> float:
        """Wait until something holds; gives how long that took."""
        began = time.monotonic()
        while not holds():
            assert time.monotonic() - began < seconds, self.last_words()
            time.sleep(0.05)
        return time.monotonic() - began

    def last_words(self) -> str:
        """What all workers said, and where the runs are."""
        said = "\n".join(map(self.said, self.workers))
        return f"{said}\n" + "\n".join(str(run)[:200] for run in self.runs())

    def all_ended(self) -> bool:
        """Whether something came of every run."""
        return all(run["outcome"] is not None for run in self.runs())

    def end(self) -> None:
        """End all workers."""
        for worker in self.workers:
            with contextlib.suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
            worker.terminate()
        for worker in self.workers:
            try:
                worker.wait(10)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet on SQLite."""
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.db")
    yield fleet
    fleet.end()


@pytest.fixture
def on_postgres(tmp_path: Path, postgres: Postgres) -> Iterator[Fleet]:
    """A fleet on PostgreSQL."""
    fleet = Fleet(tmp_path, postgres.new(f"fleet{time.monotonic_ns()}"))
    yield fleet
    fleet.end()


@pytest.fixture(params=["on_sqlite", "on_postgres"])
def fleet(request: pytest.FixtureRequest) -> Fleet:
    """A fleet on either."""
    found: Fleet = request.getfixturevalue(request.param)
    return found
