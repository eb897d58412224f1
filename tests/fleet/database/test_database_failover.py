"""What a fleet holds to while its workers, and its database, die."""

import signal
import subprocess
import time
from collections import Counter
from typing import Any

import pytest

TAKEOVER_SECONDS = 5.0


def of(fleet: Any, worker: subprocess.Popen[str]) -> dict[str, str]:
    """The runs that a worker has, with the name it has them under."""
    return {
        run["run_id"]: run["worker"]
        for run in fleet.runs()
        if run["worker"] and f"-{worker.pid}-" in run["worker"] and run["outcome"] is None
    }


def taken_over(fleet: Any, had: dict[str, str]) -> bool:
    now = {run["run_id"]: run for run in fleet.runs()}
    return all(now[i]["worker"] != w or now[i]["outcome"] is not None for i, w in had.items())


def hold_all(fleet: Any, count: int) -> None:
    """Hold that each run ended once, with a whole log, and no tool ran twice."""
    runs = fleet.runs()
    assert len(runs) == count
    assert [run["state"] for run in runs] == ["ok"] * count
    assert max(Counter(fleet.ledger()).values()) == 1, fleet.ledger()
    for run in runs:
        events = fleet.log(run["run_id"]) if run["claims"] > 1 else []
        assert [event["seq"] for event in events] == list(range(len(events)))
        assert [event["type"] for event in events].count("run_end") == bool(events)


@pytest.mark.slow
def test_runs_of_dead_and_of_stopped_workers_are_taken_over(on_postgres: Any) -> None:
    fleet = on_postgres
    dead, stopped = fleet.worker("-j", "4"), fleet.worker("-j", "4")
    fleet.ready(dead, stopped)
    fleet.put(8, gate="go")
    fleet.until(lambda: len(fleet.ledger()) == 8)
    had_dead, had_stopped = of(fleet, dead), of(fleet, stopped)
    assert had_dead
    assert had_stopped
    living = fleet.worker("-j", "12")
    fleet.ready(living)

    dead.send_signal(signal.SIGKILL)
    stopped.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    fleet.until(lambda: taken_over(fleet, had_dead), TAKEOVER_SECONDS)
    left = TAKEOVER_SECONDS - (time.monotonic() - began)
    fleet.until(lambda: taken_over(fleet, had_stopped), left)
    stopped.send_signal(signal.SIGCONT)
    fleet.put(12, first=8)
    fleet.open("go")
    fleet.until(fleet.all_ended)

    hold_all(fleet, 20)
    fleet.until(lambda: "begins anew" in fleet.said(stopped))
    claimed = {run["run_id"] for run in fleet.runs() if run["claims"] > 1}
    assert claimed == had_dead.keys() | had_stopped.keys()
    resumed = fleet.log(next(iter(had_dead)))
    assert [e["reason"] for e in resumed if e["type"] == "run_resume"] == ["killed"]
    for run_id in sorted(claimed)[:2]:
        (fleet.place / "log.jsonl").write_text(fleet.call("runs", "export", run_id))
        fleet.call("replay", "log.jsonl")


@pytest.mark.slow
def test_nothing_is_lost_when_the_database_is_restarted(on_postgres: Any, postgres: Any) -> None:
    fleet = on_postgres
    workers = [fleet.worker("-j", "4") for _ in range(2)]
    fleet.ready(*workers)
    fleet.put(16, gate="go")
    fleet.until(lambda: len(fleet.ledger()) == 8)
    postgres.stop()
    fleet.open("go")
    time.sleep(1.5)
    postgres.start()
    fleet.until(fleet.all_ended)
    hold_all(fleet, 16)
    assert [run["claims"] for run in fleet.runs()] == [1] * 16
    assert all("not-to-be-seen" not in fleet.said(each) for each in workers)


@pytest.mark.slow
def test_two_workers_share_a_file_and_one_takes_over_from_the_other(on_sqlite: Any) -> None:
    fleet = on_sqlite
    dead, living = fleet.worker("-j", "3"), fleet.worker("-j", "8")
    fleet.ready(dead, living)
    fleet.put(11, gate="go")
    fleet.until(lambda: len(fleet.ledger()) == 11)
    had = of(fleet, dead)
    assert len(had) == 3
    fleet.put(9, first=11)
    dead.send_signal(signal.SIGKILL)
    fleet.open("go")
    fleet.until(lambda: taken_over(fleet, had), TAKEOVER_SECONDS)
    fleet.until(fleet.all_ended)
    hold_all(fleet, 20)


def test_a_worker_that_is_told_to_end_leaves_its_runs_to_others(fleet: Any) -> None:
    fleet.put(3, gate="go")
    first = fleet.worker("-j", "3")
    fleet.until(lambda: len(fleet.ledger()) == 3)
    first.terminate()
    assert first.wait(15) == 143
    fleet.open("go")
    second = fleet.worker("-j", "3", "--until-idle")
    assert second.wait(30) == 0
    hold_all(fleet, 3)
    assert {run["claims"] for run in fleet.runs()} == {2}
    assert "is gone" not in fleet.said(second)


@pytest.mark.slow
def test_a_run_whose_worker_always_dies_is_given_up(on_sqlite: Any) -> None:
    fleet = on_sqlite
    spec = (fleet.place / "ask.yaml").read_text(encoding="utf-8")
    deadly = spec.replace('echo "$1" >> ledger', "kill -9 $PPID")
    deadly = deadly.replace('"{{ inputs.gate }}"]', '"{{ inputs.gate }}"]\n    idempotent: true')
    (fleet.place / "ask.yaml").write_text(deadly, encoding="utf-8")
    fleet.put(1)
    tries = 0
    while not fleet.all_ended():
        tries += 1
        assert tries < 8, fleet.last_words()
        fleet.worker("--until-idle").wait(30)
    (run,) = fleet.runs()
    assert run["state"] == "error"
    assert "died 4 times" in run["outcome"]["error"]
