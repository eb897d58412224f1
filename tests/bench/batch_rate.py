"""Holds a batch against a model server that takes 10 requests a second and refuses the others.

    python -m tests.bench.batch_rate                 200 runs of 3 turns, -j 64: about a minute
    python -m tests.bench.batch_rate --check         exit 1 where it does not settle

The server answers 429 with Retry-After, in whole seconds, to all that is above its rate in any one
second. Nothing in the spec says so: the batch is to learn it. It settles where, of the requests in
the later two thirds of the time, those that were taken come to the rate within 10 %, and under 5 %
of all were refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import re
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from tests.bench.batch_many import SERVED, SPEC, TOOLS
from tests.bench.model_server import RESULT, answer

WITHIN, REFUSED = 0.10, 0.05


class Server:
    """Takes so many requests in any one second."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.taken: list[float] = []
        self.refused = 0
        self._recent: deque[float] = deque()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request after the other."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                wait = self._wait(time.monotonic())
                if wait is not None:
                    writer.write(refusal(wait))
                else:
                    await asyncio.sleep(0.05)
                    writer.write(answer("turns", 2, len(RESULT.findall(body))))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _wait(self, now: float) -> float | None:
        while self._recent and self._recent[0] <= now - 1:
            self._recent.popleft()
        if len(self._recent) >= self.rate:
            self.refused += 1
            return self._recent[0] + 1 - now
        self._recent.append(now)
        self.taken.append(now)
        return None


def refusal(wait: float) -> bytes:
    """The answer to a request that came too soon."""
    body = json.dumps({"error": {"message": "Rate limit reached", "type": "requests"}}).encode()
    head = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n"
    head += f"retry-after: {max(1, math.ceil(wait))}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def measure(rate: int, runs: int) -> tuple[float, float, int]:
    """Do a batch; gives the rate at which it settled, the part that was refused, and its code."""
    server = Server(rate)
    listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        spec = SPEC.replace("MODEL", SERVED.replace("PORT", str(port)))
        (place / "many.yaml").write_text(spec.replace("TOOLS", str(TOOLS)), encoding="utf-8")
        rows = "".join(f'{{"n": {n}}}\n' for n in range(runs))
        (place / "rows.jsonl").write_text(rows, encoding="utf-8")
        words = ["batch", "many.yaml", "--inputs", "rows.jsonl", "-j", "64"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "runner", *words),
            cwd=folder,
            env={**os.environ, "BENCH_KEY": "sk-bench"},
        )
        code = await process.wait()
    begun, ended = server.taken[0], server.taken[-1]
    since = begun + (ended - begun) / 3
    settled = sum(moment >= since for moment in server.taken) / (ended - since)
    return settled, server.refused / (server.refused + len(server.taken)), code


def main() -> int:
    """Measure, print, and give the exit code."""
    parser = argparse.ArgumentParser(description="Hold a batch against a server's rate.")
    parser.add_argument("--rate", type=int, default=10)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--check", action="store_true", help="exit 1 where it does not settle")
    options = parser.parse_args()
    settled, refused, code = asyncio.run(measure(options.rate, options.runs))
    print(f"settled at {settled:.2f} requests/s of {options.rate}, {refused:.1%} refused")
    good = abs(settled / options.rate - 1) <= WITHIN and refused < REFUSED and code == 0
    return int(options.check and not good)


if __name__ == "__main__":
    sys.exit(main())
