"""However long a log is: it is read in constant memory, and each event costs the same.

What it costs in time is told by ``python -m tests.bench.log``.
"""

import math
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runner.api import RunOptions, run_spec
from runner.api.replay import Recording, replay
from runner.json_text import line
from runner.log.compare import compare_logs
from runner.log.context import context_at
from runner.log.read import read
from runner.views.show import Account

Event = dict[str, Any]

USAGE = {"input": 1, "output": 1, "cache_read": 0, "cache_write": 0, "reasoning": 0}
TEXT = "What a model says, in one piece of its answer. " * 2


def events(turns: int, pieces: int = 4, text: str = TEXT) -> Iterator[Event]:
    """A run of so many turns, a call in each, that was killed before its end."""
    plan = {"system_prompt": "", "prompt": "Go", "messages": []}
    yield {
        "type": "run_start",
        "format": "pi-run-log/1",
        "spec": {"name": "spec", "sha256": "0"},
        "plan": plan,
        "inputs": {},
    }
    yield {"type": "agent_start"}
    yield {"type": "task_start", "task_id": "main", "iteration": 1}
    for turn in range(1, turns + 1):
        answer, result, call = f"m{2 * turn}", f"m{2 * turn + 1}", f"call_{turn}"
        yield {"type": "turn_start", "turn": turn}
        if turn == 1:
            user = {"id": "m1", "role": "user", "content": [{"type": "text", "text": "Go"}]}
            yield {"type": "message_start", "message": user}
            yield {"type": "message_end", "message": user}
        change = {"added": ["m1"] if turn == 1 else [f"m{2 * turn - 2}", f"m{2 * turn - 1}"]}
        yield {
            "type": "model_request",
            "model": "m",
            "provider": "p",
            "attempt": 1,
            "context_digest": "0",
            "system_digest": "0",
            "tools_digest": "0",
            "context_change": {**change, "dropped": []},
        }
        begun = {"id": answer, "role": "assistant", "model": "m", "provider": "p"}
        yield {"type": "message_start", "message": begun}
        for _ in range(pieces):
            delta = {"kind": "text", "index": 0, "text": text}
            yield {"type": "message_update", "message_id": answer, "delta": delta}
        calls = {"kind": "tool_call", "index": 1, "arguments": "", "id": call, "name": "look"}
        yield {"type": "message_update", "message_id": answer, "delta": calls}
        said = [
            {"type": "text", "text": text * pieces},
            {"type": "tool_call", "id": call, "name": "look", "arguments": {}},
        ]
        whole = {**begun, "content": said, "stop_reason": "tool_use", "usage": USAGE}
        yield {"type": "message_end", "message": whole}
        tool = {"tool_call_id": call, "tool_name": "look"}
        yield {"type": "tool_execution_start", **tool, "arguments": {}}
        seen = {"content": [{"type": "text", "text": text}]}
        yield {"type": "tool_execution_end", **tool, "result": seen, "is_error": False}
        message = {"id": result, "role": "tool_result", **seen, **tool, "is_error": False}
        yield {"type": "message_start", "message": message}
        yield {"type": "message_end", "message": message}
        yield {
            "type": "turn_end",
            "turn": turn,
            "stop_reason": "tool_use",
            "message_id": answer,
            "tool_result_ids": [result],
        }


def write(path: Path, turns: int, **how: Any) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for number, event in enumerate(events(turns, **how)):
            file.write(line({"seq": number, "t": number / 1000, **event}) + "\n")
    return path


# --- memory ---------------------------------------------------------------------------------------


def read_all(path: Path) -> None:
    for _ in read(path):
        pass


def show_all(path: Path) -> None:
    account = Account(lambda line: None)
    for _, event in read(path):
        account.event(event)
    account.finish()


def compare_all(path: Path) -> None:
    assert list(compare_logs(path, path)) == []


def look_at_a_turn(path: Path) -> None:
    context_at((event for _, event in read(path)), 3)


def read_for_a_replay(path: Path) -> None:
    Recording(path)


WAYS = [read_all, show_all, compare_all, look_at_a_turn, read_for_a_replay]


def peak(way: Callable[[Path], None], path: Path) -> int:
    """Bytes that reading a log takes at most."""
    tracemalloc.start()
    way(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


@pytest.mark.parametrize(
    "turns", [60, pytest.param(720, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]
)
@pytest.mark.parametrize("way", WAYS)
def test_ten_times_the_events_take_no_more_memory(
    way: Callable[[Path], None], turns: int, tmp_path: Path
) -> None:
    short, long = write(tmp_path / "a", turns), write(tmp_path / "b", 10 * turns)
    way(short)  # imports, and tables that are made once

    few = peak(way, short)

    assert peak(way, long) < 1.25 * few + 65536


COMMANDS = {
    "show": ["show", "LOG"],
    "show, as JSON": ["show", "LOG", "--format", "json"],
    "show of a context": ["show", "LOG", "--context", "3"],
    "print": ["replay", "LOG", "--print"],
    "diff": ["diff", "LOG", "LOG"],
    "logs": ["logs"],
}
MIB = 1 << 20
MOST = 100
"""MiB of memory that a process may have, whatever the size of its log."""


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A log of more than 200 MiB."""
    path = tmp_path_factory.mktemp("huge") / ".pi-run" / "logs" / "huge.jsonl"
    path.parent.mkdir(parents=True)
    yield write(path, 1400, pieces=8, text="x" * 9000)
    path.unlink()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_huge_log_is_read_in_little_memory(huge: Path, words: list[str]) -> None:
    assert huge.stat().st_size > 200 * MIB
    given = [str(huge) if word == "LOG" else word for word in words]

    assert most_memory("-m", "runner", *given, folder=huge.parents[2]) < MOST * MIB


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_replay_reads_a_huge_log_in_little_memory(huge: Path) -> None:
    code = "import sys; from runner.api.replay import Recording; Recording(sys.argv[1])"

    assert most_memory("-c", code, str(huge), folder=huge.parent) < MOST * MIB


MEASURED = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def most_memory(*words: str, folder: Path) -> int:
    """The most bytes that Python holds while it runs `words`.

    The process is started by a small one, since Linux counts what its parent held at the start.
    """
    command = [sys.executable, "-c", MEASURED, sys.executable, *words]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout) * 1024


# --- work -----------------------------------------------------------------------------------------

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


def calls(work: Callable[[], Any]) -> int:
    """How many functions something calls, of Python and of C."""
    count = 0

    def see(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("way", [*WAYS[:3], replay])
def test_each_event_takes_as_many_calls(way: Callable[[Path], Any], tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        'def note():\n    """Note."""\n    return "noted"\n', "utf-8"
    )
    logs = []
    for turns in (25, 50, 200):
        (tmp_path / "spec.yaml").write_text(SPEC.format(turns=turns), encoding="utf-8")
        log = tmp_path / f"{turns}.jsonl"
        assert run_spec(tmp_path / "spec.yaml", options=RunOptions(log=str(log))).status == "ok"
        logs.append(log)
    way(logs[0])
    counts = [calls(partial(way, log)) for log in logs]
    lengths = [sum(1 for _ in read(log)) for log in logs]

    # What each process does once falls out of the differences.
    one, other = counts[1] - counts[0], counts[2] - counts[0]
    growth = math.log(other / one) / math.log((lengths[2] - lengths[0]) / (lengths[1] - lengths[0]))
    assert growth < 1.05
