"""What people do with the runs of a fleet: put them in, look, cancel, retry, export."""

import json
import time
from typing import Any

import pytest

WORDS = ("one", "two")


def totals(report: dict[str, Any]) -> dict[str, Any]:
    """What a report says but for times."""
    return {k: v for k, v in report["totals"].items() if k != "seconds"}


def test_a_batch_does_its_runs_itself_and_tells_the_same_as_without_a_database(fleet: Any) -> None:
    fleet.put(5)
    again = fleet.call("batch", "ask.yaml", "--inputs", "rows.jsonl", "--detach")
    assert again == "ask: 0 of 5 runs put in, 5 were there\n"

    words = ("batch", "ask.yaml", "--inputs", "rows.jsonl", "--format", "json")
    stored = json.loads(fleet.call(*words, "-j", "4"))
    del fleet.environ["PI_RUN_DATABASE"]
    plain = json.loads(fleet.call(*words))
    fleet.environ["PI_RUN_DATABASE"] = fleet.url
    assert totals(plain) == totals(stored)
    assert stored["totals"]["passed"] == 5
    assert stored["totals"]["turns"] == 15
    assert sorted(fleet.ledger()) == sorted(2 * [f"{n} {w}" for n in range(5) for w in WORDS])

    kept = json.loads(fleet.call(*words))
    assert kept == stored
    assert len(fleet.ledger()) == 20


def test_a_log_that_is_exported_is_read_by_all_other_commands(on_sqlite: Any) -> None:
    fleet = on_sqlite
    fleet.put(1)
    fleet.worker("--until-idle").wait(40)
    (run,) = json.loads(fleet.call("runs", "list", "--format", "json"))
    text = fleet.call("runs", "export", run["run_id"][:6])
    (fleet.place / "log.jsonl").write_text(text, encoding="utf-8")
    assert "said 0" in fleet.call("show", "log.jsonl")
    fleet.call("replay", "log.jsonl")
    assert "state     ok" in fleet.call("runs", "show", run["run_id"])
    shown = json.loads(fleet.call("runs", "show", run["run_id"], "--format", "json"))
    assert shown["outcome"]["text"] == "said 0"
    assert "said 0" in fleet.call("runs", "list", "--state", "ok")
    assert fleet.call("runs", "list", "--state", "failed", "--format", "jsonl") == ""


def test_a_cancelled_run_is_stopped_within_a_second_and_goes_on_when_it_is_retried(
    fleet: Any,
) -> None:
    fleet.put(2, gate="go")
    worker = fleet.worker("-j", "1")
    fleet.until(lambda: len(fleet.ledger()) == 1)
    running, waiting = sorted(fleet.runs(), key=lambda run: run["worker"] is None)
    cancelled = fleet.call("runs", "cancel", running["run_id"], waiting["run_id"])
    assert cancelled == "2 of 2 cancelled\n"
    stored = {run["run_id"]: run for run in fleet.runs()}
    fleet.until(fleet.all_ended, 5)
    assert {run["state"] for run in fleet.runs()} == {"aborted"}
    assert stored[waiting["run_id"]]["outcome"]["error"] == "it was cancelled before it ended"
    log = fleet.log(running["run_id"])
    assert [e["status"] for e in log if e["type"] == "run_end"] == ["aborted"]

    fleet.open("go")
    assert fleet.call("runs", "retry", "--batch", "ask") == "2 of 2 to be done again\n"
    fleet.until(fleet.all_ended)
    assert {run["state"] for run in fleet.runs()} == {"ok"}
    log = fleet.log(running["run_id"])
    assert [e["reason"] for e in log if e["type"] == "run_resume"] == ["aborted"]
    assert fleet.call("runs", "retry", "--batch", "ask") == "0 of 0 to be done again\n"
    worker.terminate()
    assert worker.wait(15) == 143


def test_a_waiting_tool_hears_of_a_cancellation_within_a_second(on_postgres: Any) -> None:
    from runner.fleet.database import listed
    from runner.fleet.database.store import FleetControl

    fleet = on_postgres
    fleet.put(1, gate="never")
    fleet.worker()
    fleet.until(lambda: len(fleet.ledger()) == 1)
    with fleet.database() as database:
        control = FleetControl(database)
        (run,) = listed.every(database)
        asked = time.time()
        control.cancel([run.run_id])
        fleet.until(fleet.all_ended, 5)
        (run,) = listed.every(database)
    assert run.ended_at is not None
    assert run.ended_at - asked < 1


def test_a_run_that_failed_begins_anew_and_one_with_an_error_goes_on(on_sqlite: Any) -> None:
    fleet = on_sqlite
    spec = (fleet.place / "ask.yaml").read_text(encoding="utf-8")
    spec = spec.replace("contains: said", "that: \"'bad' not in result.text\"")
    spec = spec.replace('said {{ inputs.n }}"}', "said {{ ['bad', 'good'][inputs.n] }}\"}")
    (fleet.place / "ask.yaml").write_text(spec, encoding="utf-8")
    fleet.put(2)
    fleet.worker("--until-idle").wait(40)
    states = {run["inputs"]["n"]: run["state"] for run in fleet.runs()}
    assert states == {0: "failed", 1: "ok"}
    assert fleet.call("runs", "retry", "--batch", "ask") == "1 of 1 to be done again\n"
    fleet.worker("--until-idle").wait(40)
    failed = next(run for run in fleet.runs() if run["state"] == "failed")
    log = fleet.log(failed["run_id"])
    assert [event["type"] for event in log].count("run_start") == 1
    assert fleet.ledger().count("0 one") == 2


def test_what_a_worker_has_not_is_told_and_no_secret_gets_in(
    on_sqlite: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = on_sqlite
    secret = "inputs:\n  n: {type: integer}\n  key: {type: string, secret: true}\n"
    spec = (fleet.place / "ask.yaml").read_text(encoding="utf-8")
    (fleet.place / "secret.yaml").write_text(
        spec.replace("inputs:\n  n: {type: integer}\n", secret)
    )
    (fleet.place / "rows.jsonl").write_text('{"n": 1, "key": "hush-hush"}\n')
    refused = fleet.process("batch", "secret.yaml", "--inputs", "rows.jsonl", "--detach")
    assert refused.returncode == 2
    assert "the input key is secret" in refused.stderr
    assert "hush" not in refused.stderr

    (fleet.place / "own.py").write_text(
        "import helping\n\n\ndef note(text: str) -> str:\n    "
        '"""Say."""\n    return helping.said(text)\n'
    )
    (fleet.place / "helping.py").write_text("def said(text):\n    return text.upper()\n")
    tool = "tools:\n  - python: ./own.py:note\nprompt"
    head, _, tail = spec.partition("tools:")
    (fleet.place / "ask.yaml").write_text(head + tool + tail.partition("prompt")[2])
    fleet.put(1)
    for name in ("ask.yaml", "own.py", "helping.py"):
        (fleet.place / name).unlink()
    fleet.worker("--until-idle").wait(40)
    (run,) = fleet.runs()
    assert run["outcome"]["error"] is None

    missing = fleet.place / "missing"
    missing.mkdir()
    (missing / "only_here.py").write_text("def note(text: str) -> str:\n    return text\n")
    monkeypatch.syspath_prepend(missing)
    other = head + tool.replace("./own.py:note", "only_here:note") + tail.partition("prompt")[2]
    (fleet.place / "ask.yaml").write_text(other)
    fleet.put(1)
    fleet.worker("--until-idle").wait(40)
    run = next(run for run in fleet.runs() if run["state"] != "ok")
    assert run["state"] == "error"
    assert "ask.yaml:13:13: tools[0].python: there is no module" in run["outcome"]["error"]


def test_options_that_mean_nothing_together_are_refused(on_sqlite: Any) -> None:
    fleet = on_sqlite
    for words, why in (
        (("--detach", "--max-cost", "1"), "--max-cost can't be given with --database"),
        (("--out", "there"), "--out can't be given with --database"),
        (("--detach", "--database", "mysql://a:hush@h/b"), "--database is a URL of mysql"),
        (("--database", "nonsense:hush"), "--database is no URL of a database"),
        (("--database", "sqlite:////no/such/folder/f.db"), "there is no folder /no/such/folder"),
    ):
        done = fleet.process("batch", "ask.yaml", "-i", "n=1", *words)
        assert done.returncode == 2
        assert why in done.stderr
        assert "hush" not in done.stderr
    missing = fleet.process("runs", "list", "--database", "sqlite:///nothing.db")
    assert missing.returncode == 2
    assert "nothing.db: there is no such database" in missing.stderr
    gone = "postgresql://pi:hush@127.0.0.1:9/none"
    done = fleet.process("worker", "--database", gone)
    assert done.returncode == 6
    assert "hush" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_needs_no_database(on_sqlite: Any) -> None:
    on_sqlite.environ["PYTHONPROFILEIMPORTTIME"] = "1"
    for words in (("batch",), ("worker",), ("runs",), ("runs", "cancel")):
        done = on_sqlite.process(*words, "--help")
        assert done.returncode == 0
        assert "runner.cli" in done.stderr
        assert not any(name in done.stderr for name in ("sqlalchemy", "dbos", "psycopg"))


def test_without_the_extra_it_is_said_what_to_install(on_sqlite: Any) -> None:
    fleet = on_sqlite
    (fleet.place / "sitecustomize.py").write_text(
        "import importlib.util as u\nold = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'dbos' else old(name, *a)\n"
    )
    fleet.environ["PYTHONPATH"] = str(fleet.place)
    done = fleet.process("worker")
    assert done.returncode == 2
    assert done.stderr == (
        "pi-run: --database needs dbos, which is not installed; pip install 'pi-run[fleet]'\n"
    )
