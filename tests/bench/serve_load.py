"""Measures what readers cost the runs of a server: `pi-run serve` with many of both.

    python -m tests.bench.serve_load                    200 runs, 400 readers, 100 of them stalled
    python -m tests.bench.serve_load --runs 20 --readers 40 --stalled 10

The same runs are done with nobody watching, then with the readers: each run is mostly waiting for
its model, as real ones are. A stalled reader asks for the events and then takes nothing. Exit 1
where a run took over 1.5 times as long, or a reader that reads has a gap or a double.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

BOUND = 1.5
TOKEN = "a-token-of-the-benchmark"
SPEC = """\
version: 1
name: load
model:
  provider: scripted
  script: [{text: "{{ 'word ' * 60 }}", deltas: 30, delay: 0.1, repeat: forever}]
prompt: Go.
follow_ups: {messages: [{text: And on.}, {text: And on.}, {text: And on.}]}
"""
_ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)


@dataclass
class Round:
    """What one round of runs came to."""

    slowest: float
    """Seconds of the slowest run, as its log says."""
    mean: float
    rss_mb: float
    """Of the server, at its end."""
    peak_mb: float
    gaps: int = 0
    """Readers that did not get each event of their run once, in order."""
    events: int = 0
    """Events that all readers got."""


@contextlib.contextmanager
def serving(folder: Path, runs: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server, and its address."""
    (folder / "load.yaml").write_text(SPEC, encoding="utf-8")
    program = str(Path(sysconfig.get_path("scripts")) / "pi-run")
    bounds = ["--max-runs", str(runs), "--port", "0", "--token", TOKEN, "--grace", "0"]
    server = subprocess.Popen(
        [program, "serve", "load.yaml", *bounds], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    try:
        yield server, server.stderr.readline().rsplit(" ", 1)[1].strip()
    finally:
        server.terminate()
        server.wait(60)
        server.stderr.close()


def memory(pid: int, what: str) -> float:
    """MB of a process: ``VmRSS``, or ``VmHWM`` for the most so far."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(rf"{what}:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else 0.0


def request(url: str, run_id: str) -> bytes:
    """What asks for the events of a run."""
    head = f"GET /runs/{run_id}/events HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
    return f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode()


async def read(url: str, run_id: str) -> list[int]:
    """Read a run to its end; gives the numbers of its events as they came."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(request(url, run_id))
    await reader.readuntil(b"\r\n\r\n")
    body = bytearray()
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    writer.close()
    return [int(number) for number in _ID.findall(body)]


def stall(url: str, run_id: str) -> socket.socket:
    """Ask for the events of a run, and take none."""
    place = urlsplit(url)
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    one.connect((place.hostname, place.port))
    one.sendall(request(url, run_id))
    return one


async def measure(url: str, pid: int, runs: int, readers: int, stalled: int) -> Round:
    """Do the runs, with so many readers, some of them stalled."""
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=url, headers=bearer, timeout=120) as client:
        ids = [
            (await client.post("/runs", json={"spec": "load"})).json()["id"] for _ in range(runs)
        ]
        asleep = [stall(url, ids[n % runs]) for n in range(stalled)]
        work = [asyncio.create_task(read(url, ids[n % runs])) for n in range(readers - stalled)]
        told = [await _ended(client, run_id) for run_id in ids]
        got = await asyncio.gather(*work)
        for one in asleep:
            one.close()
        wanted = {
            run_id: len((await client.get(f"/runs/{run_id}/log")).content.splitlines())
            for run_id in ids
        }
    seconds = [run["seconds"] for run in told]
    gaps = sum(numbers != list(range(wanted[ids[n % runs]])) for n, numbers in enumerate(got))
    return Round(
        max(seconds),
        sum(seconds) / len(seconds),
        memory(pid, "VmRSS"),
        memory(pid, "VmHWM"),
        gaps,
        sum(map(len, got)),
    )


async def _ended(client: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    while (run := (await client.get(f"/runs/{run_id}")).json())["live"]:  # noqa: ASYNC110 - by HTTP
        await asyncio.sleep(0.5)
    assert run["status"] == "ok", run
    told: dict[str, Any] = run
    return told


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="Measure what readers cost the runs of a server.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--readers", type=int, default=400)
    parser.add_argument("--stalled", type=int, default=100)
    given = parser.parse_args()
    rounds = []
    for readers, stalled in ((0, 0), (given.readers, given.stalled)):
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder), given.runs) as started:
            server, url = started
            rounds.append(asyncio.run(measure(url, server.pid, given.runs, readers, stalled)))
    alone, watched = rounds
    ratio = watched.slowest / alone.slowest
    print(f"{given.runs} runs at once; {given.readers} readers, {given.stalled} of them stalled")
    for name, each in (("alone", alone), ("watched", watched)):
        print(
            f"{name:8} slowest {each.slowest:6.2f} s  mean {each.mean:6.2f} s  "
            f"memory {each.rss_mb:6.1f} MB, at most {each.peak_mb:6.1f} MB"
        )
    print(f"slowest, watched to alone: {ratio:.2f} (at most {BOUND})")
    print(f"memory that readers cost: {watched.peak_mb - alone.peak_mb:.1f} MB")
    print(f"{watched.events:,} events were read; readers with a gap or a double: {watched.gaps}")
    return 0 if ratio <= BOUND and not watched.gaps else 1


if __name__ == "__main__":
    sys.exit(main())
