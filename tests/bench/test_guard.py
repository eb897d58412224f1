"""What a turn, a delta and a tool call cost is held by counts that no slow machine changes.

Bounds are some 15 % above today's counts. Who needs more says why, and raises them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    command = [sys.executable, "-m", "tests.bench.model_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout
        yield int(server.stdout.readline())
        server.kill()


def calls(model: str, port: int, folder: Path, plant: str = "") -> int:
    command = [sys.executable, "-m", "tests.bench.calls", model, str(port), str(folder), plant]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1])


def each(kind: str, few: int, many: int, port: int, folder: Path, plant: str = "") -> float:
    """The calls for one more turn, delta or tool call."""
    low, high = (calls(f"{kind}-{number}", port, folder, plant) for number in (few, many))
    return (high - low) / (many - few)


DELTA, TURN, TOOL = 113, 5000, 2150


@pytest.mark.parametrize(
    ("kind", "few", "many", "bound"),
    [("stream", 1000, 3000, DELTA), ("turns", 20, 60, TURN), ("sleep", 4, 32, TOOL)],
)
def test_one_more_costs_no_more_than_it_did(
    kind: str, few: int, many: int, bound: int, port: int, tmp_path: Path
) -> None:
    assert each(kind, few, many, port, tmp_path) < bound


def grown(port: int, folder: Path, plant: str = "") -> float:
    """By what factor a turn costs more calls later in a run."""
    early = each("turns", 5, 25, port, folder, plant)
    return each("turns", 100, 120, port, folder, plant) / early


def test_a_turn_costs_the_same_however_many_came_before(port: int, tmp_path: Path) -> None:
    assert grown(port, tmp_path) < 1.05


def test_a_planted_copy_of_each_event_is_seen(port: int, tmp_path: Path) -> None:
    assert each("stream", 1000, 3000, port, tmp_path, "delta") > DELTA


def test_a_planted_copy_of_the_history_is_seen(port: int, tmp_path: Path) -> None:
    assert grown(port, tmp_path, "history") > 1.05
