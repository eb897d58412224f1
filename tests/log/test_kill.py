"""A kill -9 at any moment leaves a log that is whole but for its last line."""

import json
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

SPEC = """\
version: 1
model:
  provider: scripted
  script:
    - {text: one two three four five six, deltas: 6, delay: 0.002, repeat: 40,
       tool_calls: [{name: note}, {name: note}]}
    - {text: done}
prompt: Hello
limits: {turns: null, repeats: null}
tools:
  - {name: note, description: Note., parameters: {type: object}, command: ["true"]}
"""
MOMENTS = 50


@pytest.mark.slow
def test_kill_at_random_moments(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    chance = random.Random(9)
    moments = [chance.uniform(0, 0.8) for _ in range(MOMENTS)]
    with ThreadPoolExecutor(4) as pool:
        sizes = list(pool.map(lambda n: kill_after(tmp_path, n, moments[n]), range(MOMENTS)))
    # The moments are worth something only if some of them fell into runs.
    assert sum(size > 5 for size in sizes) > MOMENTS // 5


def kill_after(folder: Path, number: int, seconds: float) -> int:
    """Run, kill so long after the log began, and hold what is left. Gives its whole lines."""
    log = folder / f"{number}.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "runner", "spec.yaml", "--log", str(log), "--quiet"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (log.exists() and log.stat().st_size) and process.poll() is None:
        time.sleep(0.005)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    *lines, torn = log.read_bytes().split(b"\n")
    events = [json.loads(line) for line in lines]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert torn == b"" or process.returncode == -signal.SIGKILL
    return len(events)
