"""Runs pi-run in the side-by-side benchmark of ``../shared/bench``, with its log always on.

    python ../shared/bench/run.py --peers floor_httpx,floor_raw --workloads turns,stream \\
        --contender pi-run="python $PWD/tests/bench/shared_driver.py {spec} {log}"

It keeps the contract of that folder's README: what is measured is the run alone, after a small one
to warm up; imports and set-up stay outside, but for the workload ``cold``.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from runner.api import RunOptions, prepare, run


def cpu() -> float:
    """Seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_rss_mb() -> float:
    """The most memory that this process had, in MiB."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(text.split()[1]) for text in status if text.startswith("VmHWM")) / 1024


class Bench:
    """One measurement."""

    def __init__(self, spec: str, log: str) -> None:
        self.spec = spec
        self.log = Path(log)
        self.turns = 0
        self.deltas = 0

    async def one(self, number: int, model: str | None = None) -> None:
        """One run, with a listener that looks at its text deltas as a user would."""
        log = self.log.with_name(f"{self.log.stem}-{number}{self.log.suffix}")
        sets = [("model.id", model)] if model else []
        prepared = prepare(self.spec, RunOptions(log=str(log), sets=sets))
        result = await run(prepared, on_event=self.see)
        if result.status != "ok":
            raise SystemExit(f"the run ended as {result.status}: {result.error}")
        self.turns += result.turns

    def see(self, event: dict[str, Any]) -> None:
        """Count the text deltas."""
        if event["type"] == "message_update" and event["delta"]["kind"] == "text":
            self.deltas += 1

    async def measure(self, runs: int, cap: int, *, warm: bool) -> dict[str, Any]:
        """Run so many runs, at most so many at a time."""
        if warm:
            await self.one(-1, "bench-turns-1")
            self.log.with_name(f"{self.log.stem}--1{self.log.suffix}").unlink()
        self.turns = self.deltas = 0
        gate = asyncio.Semaphore(cap)

        async def gated(number: int) -> None:
            async with gate:
                await self.one(number)

        began, used = time.perf_counter(), cpu()
        await asyncio.gather(*map(gated, range(runs)))
        return {
            "wall_s": time.perf_counter() - began,
            "cpu_s": cpu() - used,
            "peak_rss_mb": peak_rss_mb(),
            "turns": self.turns,
            "deltas": self.deltas,
        }


def main() -> None:
    """Measure what the environment asks for, and print it as the last line."""
    workload = os.environ["BENCH_WORKLOAD"]
    if workload == "import":
        print(json.dumps({}))
        return
    bench = Bench(sys.argv[1], sys.argv[2])
    runs, cap = int(os.environ.get("BENCH_RUNS", "1")), int(os.environ.get("BENCH_CAP", "1"))
    print(json.dumps(asyncio.run(bench.measure(runs, cap, warm=workload != "cold"))))


if __name__ == "__main__":
    main()
