"""One measurement of one contender, in a process of its own.

    python -m tests.bench.contender floor|pi-run MODEL PORT FOLDER [RUNS [AT_ONCE]]

Prints one JSON object: seconds of wall time and of CPU, peak memory, turns, deltas, bytes of log.
What is measured are the runs alone; imports, set-up and one small run to warm up stay outside.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

HERE = Path(__file__).parent
SPEC = """\
version: 1
name: bench
model: {{provider: openai, id: turns-1, base_url: "http://127.0.0.1:{port}/v1", api_key: {{env: BENCH_KEY}}}}
system_prompt: You are a benchmark's agent. Call the tools that you are told to call.
prompt: Do the steps one after another, then say that all is done.
tools:
  - python: "{tools}:echo"
  - python: "{tools}:sleep"
  - python: "{tools}:block"
max_parallel_tools: 64
limits: {{turns: null, tool_calls: null, repeats: null}}
"""  # noqa: E501 (a spec as its user writes it)


class Contender(Protocol):
    """What is measured."""

    async def one(self, model: str, number: int) -> tuple[int, int]:
        """One run, with its log; gives its turns and its deltas of text."""


class PiRun:
    """pi-run by its Python interface, with a listener that looks at each delta, as a user would."""

    def __init__(self, port: int, folder: Path, also: Callable[[Any], None] | None = None) -> None:
        self.also = also
        os.environ["BENCH_KEY"] = "sk-bench"
        self.folder = folder
        self.spec = folder / "bench.yaml"
        text = SPEC.format(port=port, tools=HERE / "bench_tools.py")
        self.spec.write_text(text, encoding="utf-8")

    async def one(self, model: str, number: int) -> tuple[int, int]:
        """See `Contender`."""
        from runner.api import RunOptions, prepare, run

        deltas = 0

        def see(event: dict[str, Any]) -> None:
            nonlocal deltas
            if event["type"] == "message_update" and event["delta"]["kind"] == "text":
                deltas += 1
            if self.also:
                self.also(event)

        log = str(self.folder / f"pi-run-{number}.jsonl")
        prepared = prepare(str(self.spec), RunOptions(log=log, sets=[("model.id", model)]))
        result = await run(prepared, on_event=see)
        if result.status != "ok":
            raise SystemExit(f"the run ended as {result.status}: {result.error}")
        return result.turns, deltas


def cpu() -> float:
    """Seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def written(folder: Path, name: str) -> int:
    """The bytes of the logs of the runs that were measured."""
    return sum(log.stat().st_size for log in folder.glob(f"{name}-[0-9]*.jsonl"))


async def measure(name: str, model: str, port: int, folder: Path, runs: int, cap: int) -> Any:
    """Run so many runs, at most ``cap`` at a time, after a small one that warms up."""
    contender: Contender
    if name == "floor":
        from tests.bench.floor import Floor

        contender = Floor(port, folder)
    else:
        contender = PiRun(port, folder)
    await contender.one("turns-1", -1)
    gate = asyncio.Semaphore(cap)

    async def gated(number: int) -> tuple[int, int]:
        async with gate:
            return await contender.one(model, number)

    began, used = time.perf_counter(), cpu()
    done = await asyncio.gather(*map(gated, range(runs)))
    return {
        "wall": time.perf_counter() - began,
        "cpu": cpu() - used,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "turns": sum(turns for turns, _ in done),
        "deltas": sum(deltas for _, deltas in done),
        "log_bytes": written(folder, name),
    }


def main() -> None:
    """Measure, and print."""
    name, model, port, folder, *counts = sys.argv[1:]
    runs, cap = (*map(int, counts), 1, 1)[:2]
    print(json.dumps(asyncio.run(measure(name, model, int(port), Path(folder), runs, cap))))


if __name__ == "__main__":
    main()
