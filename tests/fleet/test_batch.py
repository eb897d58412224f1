"""What `pi-run batch` does, by its options."""

import csv
import fcntl
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Rows = Callable[[list[dict[str, Any]]], str]


def few(count: int = 4) -> list[dict[str, Any]]:
    return [{"n": n} for n in range(count)]


def some_bad() -> list[dict[str, Any]]:
    return [{"n": 0}, {"n": 1, "word": "bad"}, {"n": 2}, {"n": 3}]


def test_each_row_is_a_run_with_a_log_of_its_own(place: Path, batch: Any, rows: Rows) -> None:
    done = batch("ask.yaml", "--inputs", rows(few()), "-j", "2", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run["text"] for run in runs] == [f"plain {n}" for n in range(4)]
    assert [run["line"] for run in runs] == [1, 2, 3, 4]
    folder = place / ".pi-run/batches/ask"
    assert {run["log"] for run in runs} == {
        str(log.relative_to(place)) for log in (folder / "runs").iterdir()
    }
    for run in runs:
        first, *_, last = (place / run["log"]).read_text(encoding="utf-8").splitlines()
        assert json.loads(first)["inputs"] == run["inputs"]
        assert json.loads(last)["type"] == "run_end"
    assert (place / ".pi-run/.gitignore").read_text(encoding="utf-8") == "*\n"


def test_the_same_command_does_nothing_twice(place: Path, batch: Any, rows: Rows) -> None:
    words = ["ask.yaml", "--inputs", rows(few()), "--format", "json"]
    first, second = batch(*words), batch(*words)
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout == second.stdout
    assert len((place / "ledger").read_text(encoding="utf-8").splitlines()) == 8


def test_the_report(place: Path, batch: Any, rows: Rows) -> None:
    done = batch("ask.yaml", "--inputs", rows(some_bad()), "--out", "out", "--format", "json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["totals"].pop("seconds") >= 0
    assert report["specs"][0].pop("seconds") >= 0
    totals = {
        "runs": 4,
        "done": 4,
        "passed": 3,
        "pass_rate": 0.75,
        "pass_rate_95": [0.300642, 0.954413],
        "statuses": {"failed": 1, "ok": 3},
        "turns": 12,
        "tool_calls": 8,
        "usage": {"input": 40, "output": 20, "cache_read": 0, "cache_write": 0, "reasoning": 0},
        "cost_usd": 0.06,
    }
    run = report["runs"][1]
    assert {**report, "runs": [run]} == {
        "format": "pi-run-batch-report/1",
        "folder": "out",
        "stopped": None,
        "totals": totals,
        "specs": [{"name": "ask", "path": "ask.yaml", **totals}],
        "runs": [run],
    }
    assert run.pop("seconds") > 0
    assert len(run.pop("row_key")) == len(key := run.pop("key")) == 20
    assert run == {
        "spec": "ask",
        "line": 2,
        "number": 1,
        "inputs": {"n": 1, "word": "bad"},
        "status": "failed",
        "exit_code": 1,
        "text": "bad 1",
        "output": None,
        "error": "an expectation was not met: that: not result.text.startswith('bad') is false",
        "failed": ["not result.text.startswith('bad') is false"],
        "turns": 3,
        "tool_calls": 2,
        "usage": {"input": 10, "output": 5, "cache_read": 0, "cache_write": 0, "reasoning": 0},
        "cost_usd": 0.015,
        "log": f"out/runs/{key}.jsonl",
    }
    assert "rows.jsonl:2: failed: " in done.stderr


def test_text_and_tables(place: Path, batch: Any, rows: Rows) -> None:
    words = ["ask.yaml", "--inputs", rows(some_bad())]
    text = batch(*words)
    first, second = text.stdout.splitlines()
    assert first == ("ask.yaml: 3 of 4 runs passed (75.0%, 95% interval 30.1% to 95.4%), 1 failed")
    assert second.startswith("12 turns, 8 tool calls, 60 tokens, $0.06")
    table = list(csv.DictReader(io.StringIO(batch(*words, "--format", "csv").stdout)))
    assert [row["status"] for row in table] == ["ok", "failed", "ok", "ok"]
    assert [row["inputs.word"] for row in table] == ["plain", "bad", "plain", "plain"]
    assert table[1]["text"] == "bad 1"


def test_files_for_a_ci_and_for_people(place: Path, batch: Any, rows: Rows) -> None:
    words = ["ask.yaml", "--inputs", rows(some_bad()), "--junit", "out.xml", "--html", "out.html"]
    assert batch(*words).returncode == 1
    suite = ElementTree.parse(place / "out.xml").getroot()
    cases = list(suite.iter("testcase"))
    assert len(cases) == 4
    assert len(list(suite.iter("failure"))) == 1
    page = (place / "out.html").read_text(encoding="utf-8")
    assert page.count("<tr") == 5
    assert "<script" not in page
    assert not list(place.glob("*.part"))


def test_text_of_models_commands_no_page_or_table(place: Path, batch: Any, rows: Rows) -> None:
    odd = "<b>&\u2028'\"\x1b[31m ]]>"
    words = ["ask.yaml", "--inputs", rows([{"n": 1, "word": odd}])]
    done = batch(*words, "--junit", "out.xml", "--html", "out.html", "--format", "csv")
    assert done.returncode == 0, done.stderr
    page = (place / "out.html").read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "\x1b" not in page
    ElementTree.parse(place / "out.xml")
    assert len(list(csv.DictReader(io.StringIO(done.stdout)))) == 1


def test_a_file_that_can_not_be_written_is_told_before_a_run(
    place: Path, batch: Any, rows: Rows
) -> None:
    for option in ("--junit", "--html"):
        done = batch("ask.yaml", "--inputs", rows(few()), option, "ask.yaml/out")
        assert done.returncode == 6
        assert "ask.yaml/out" in done.stderr
    assert not (place / "ledger").exists()


def test_repeat_and_min_pass(place: Path, batch: Any, rows: Rows) -> None:
    words = ["ask.yaml", "--inputs", rows(some_bad()), "--repeat", "2", "--format", "json"]
    report = json.loads(batch(*words).stdout)
    assert (report["totals"]["runs"], report["totals"]["passed"]) == (8, 6)
    assert [run["number"] for run in report["runs"]] == [1, 2] * 4
    assert len({run["row_key"] for run in report["runs"]}) == 4
    assert batch(*words, "--min-pass", "0.75").returncode == 0
    assert batch(*words, "--min-pass", "0.76").returncode == 1


def test_fail_fast_stops_and_the_same_command_goes_on(place: Path, batch: Any, rows: Rows) -> None:
    words = ["ask.yaml", "--inputs", rows(some_bad()), "-j", "1", "--format", "json"]
    done = batch(*words, "--fail-fast")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["stopped"] == "a run failed, and --fail-fast is set"
    assert report["totals"]["done"] == 2
    assert "2 runs not done" in done.stderr
    report = json.loads(batch(*words).stdout)
    assert (report["stopped"], report["totals"]["done"]) == (None, 4)


def test_retry_failed_does_what_failed_again_and_nothing_else(
    place: Path, batch: Any, rows: Rows
) -> None:
    words = ["ask.yaml", "--inputs", rows(some_bad()), "--format", "json"]
    first = json.loads(batch(*words).stdout)
    ledger = (place / "ledger").read_text(encoding="utf-8").splitlines()
    again = batch(*words, "--retry-failed")
    assert again.returncode == 1
    more = (place / "ledger").read_text(encoding="utf-8").splitlines()[len(ledger) :]
    assert more == ["1 one", "1 two"]
    second = json.loads(again.stdout)
    assert [run["key"] for run in second["runs"]] == [run["key"] for run in first["runs"]]
    assert {**second["totals"], "seconds": 0} == {**first["totals"], "seconds": 0}


def test_an_error_is_retried_from_where_it_broke_off(place: Path, batch: Any, rows: Rows) -> None:
    spec = (place / "ask.yaml").read_text(encoding="utf-8")
    broken = spec.replace('{text: "{{ inputs.word }} {{ inputs.n }}", usage', '{error: "no", usage')
    (place / "ask.yaml").write_text(broken, encoding="utf-8")
    words = ["ask.yaml", "--inputs", rows(few(1)), "--format", "json"]
    assert batch(*words).returncode == 3
    done = batch(*words, "--retry-failed")
    assert done.returncode == 3
    assert (place / "ledger").read_text(encoding="utf-8").splitlines() == ["0 one", "0 two"]


def test_a_shard_does_its_part_and_all_of_them_the_whole(
    place: Path, batch: Any, rows: Rows
) -> None:
    name = rows(few(5))
    counts = []
    for part in ("1/2", "2/2"):
        done = batch("ask.yaml", "--inputs", name, "--shard", part, "--format", "json")
        assert done.returncode == 0, done.stderr
        counts.append(json.loads(done.stdout)["totals"]["done"])
    assert counts == [3, 2]
    whole = batch("ask.yaml", "--inputs", name, "--format", "json")
    assert json.loads(whole.stdout)["totals"]["done"] == 5
    assert len((place / "ledger").read_text(encoding="utf-8").splitlines()) == 10


@pytest.mark.parametrize(
    ("option", "value", "word"), [("--max-cost", "0.03", "cost"), ("--max-tokens", "30", "used")]
)
def test_budgets_hold_for_the_whole_batch_and_over_its_calls(
    place: Path, batch: Any, rows: Rows, option: str, value: str, word: str
) -> None:
    words = ["ask.yaml", "--inputs", rows(few(6)), "-j", "1", "--format", "json", option, value]
    first = batch(*words)
    assert first.returncode == 4
    report = json.loads(first.stdout)
    assert report["stopped"].startswith(f"it {word}")
    assert report["totals"]["done"] == 2
    again = batch(*words)
    assert again.returncode == 4
    assert json.loads(again.stdout)["totals"]["done"] == 2


def test_a_cost_that_is_not_known_can_have_no_bound(place: Path, batch: Any, rows: Rows) -> None:
    (place / "ask.yaml").write_text(
        "version: 1\ninputs: {n: {type: integer}}\nprompt: hi\nmodel: {provider: openai, "
        'id: unheard-of, base_url: "http://127.0.0.1:9/v1", api_key: {env: A, default: x}}\n',
        encoding="utf-8",
    )
    done = batch("ask.yaml", "--inputs", rows(few()), "--max-cost", "1")
    assert done.returncode == 2
    assert "the price of its model is not known" in done.stderr


def test_baseline_tells_what_got_worse(place: Path, batch: Any, rows: Rows) -> None:
    good = [{"n": 0}, {"n": 1}, {"n": 2}]
    words = ["ask.yaml", "--inputs", rows(good), "--format", "json"]
    (place / "last.json").write_text(batch(*words, "--out", "a").stdout, encoding="utf-8")
    spec = (place / "ask.yaml").read_text(encoding="utf-8")
    worse = spec.replace("startswith('bad')", "endswith('1')").replace("{input: 10,", "{input: 15,")
    (place / "ask.yaml").write_text(worse, encoding="utf-8")
    words += ["--out", "b", "--baseline", "last.json", "--min-pass", "0.5"]
    done = batch(*words)
    assert done.returncode == 1
    told = json.loads(done.stdout)["baseline"]
    assert [(one["line"], one["what"]) for one in told["worse"]] == [
        (1, "cost_usd"),
        (2, "cost_usd"),
        (2, "pass_rate"),
        (3, "cost_usd"),
    ]
    assert "4 things got worse than in the baseline" in done.stderr
    assert batch(*words, "--tolerance", "1").returncode == 0


@pytest.mark.parametrize("text", ["", "[]", '{"format": "x"}', '{"runs": 1}', "null"])
def test_a_baseline_that_is_none_is_told(place: Path, batch: Any, rows: Rows, text: str) -> None:
    (place / "last.json").write_text(text, encoding="utf-8")
    done = batch("ask.yaml", "--inputs", rows(few()), "--baseline", "last.json")
    assert done.returncode == 2
    assert "last.json: is no report of a batch" in done.stderr
    assert not (place / "ledger").exists()


def test_two_batches_in_one_folder_refuse_each_other(place: Path, batch: Any, rows: Rows) -> None:
    words = ["ask.yaml", "--inputs", rows(few()), "--out", "out"]
    (place / "out").mkdir()
    with (place / "out/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = batch(*words)
        assert done.returncode == 6
        assert "another batch runs in this folder" in done.stderr
    assert batch(*words).returncode == 0


def test_a_folder_of_another_batch_is_left_alone(place: Path, batch: Any, rows: Rows) -> None:
    batch("ask.yaml", "--inputs", rows(few()))
    for change in (["--repeat", "2"], ["-i", "word=other"]):
        done = batch("ask.yaml", "--inputs", "rows.jsonl", *change)
        assert done.returncode == 2
        assert "changed since this batch was begun" in done.stderr
    rows(few(5))
    assert batch("ask.yaml", "--inputs", "rows.jsonl").returncode == 2


def test_how_fast_a_model_is_asked_changes_no_batch(place: Path, batch: Any, rows: Rows) -> None:
    words = ["ask.yaml", "--inputs", rows(few())]
    assert batch(*words).returncode == 0
    assert batch(*words, "--set", "model.rate={requests: 100, per: 1}").returncode == 0


def test_a_rate_of_a_spec_is_kept_to(place: Path, batch: Any, rows: Rows) -> None:
    words = ["ask.yaml", "--inputs", rows(few(10)), "-j", "10", "--format", "jsonl"]
    done = batch(*words, "--set", "model.rate={requests: 30, per: 1}")
    assert done.returncode == 0, done.stderr
    # Thirty requests, of which the last is the last of its run, which began with all others.
    assert max(json.loads(line)["seconds"] for line in done.stdout.splitlines()) > 0.9


def test_no_row_is_no_success(place: Path, batch: Any) -> None:
    for name in ("rows.jsonl", "rows.csv", "rows.yaml"):
        (place / name).write_text("", encoding="utf-8")
        done = batch("ask.yaml", "--inputs", name)
        assert done.returncode == 2
        assert "it has no rows" in done.stderr
    missing = batch("ask.yaml", "--inputs", "none.jsonl")
    assert missing.returncode == 2
    assert not (place / ".pi-run").exists()


def test_bad_rows_and_specs_are_told_all_at_once_and_nothing_is_run(
    place: Path, batch: Any
) -> None:
    (place / "rows.jsonl").write_text('{"n": 1}\n{"n": "x"}\n{,}\n', encoding="utf-8")
    done = batch("ask.yaml", "--inputs", "rows.jsonl")
    assert done.returncode == 2
    assert "rows.jsonl:2:1: " in done.stderr
    assert "rows.jsonl:3:2: " in done.stderr
    assert not (place / ".pi-run").exists()


def test_rows_that_say_the_same_are_run_once(place: Path, batch: Any, rows: Rows) -> None:
    done = batch("ask.yaml", "--inputs", rows([{"n": 1}, {"n": 1}]), "--format", "jsonl")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert "1 row not run again: others say the same" in done.stderr


def test_secret_inputs_are_in_no_report_and_no_file(place: Path, batch: Any, rows: Rows) -> None:
    spec = (place / "ask.yaml").read_text(encoding="utf-8")
    spec = spec.replace("  n: {type", "  key: {type: string, secret: true}\n  n: {type")
    (place / "ask.yaml").write_text(spec, encoding="utf-8")
    name = rows([{"n": 1, "key": "hunter2-hunter2"}])
    done = batch(
        "ask.yaml", "--inputs", name, "--out", "out", "--html", "p.html", "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    files = [file for file in (place / "out").rglob("*") if file.is_file()]
    texts = [file.read_text(encoding="utf-8") for file in [*files, place / "p.html"]]
    assert not [text for text in [done.stdout, done.stderr, *texts] if "hunter2" in text]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_can_not_be_written_is_told(place: Path, batch: Any, rows: Rows) -> None:
    (place / "out").mkdir(mode=0o500)
    done = batch("ask.yaml", "--inputs", rows(few()), "--out", "out")
    assert done.returncode == 6


def test_a_folder_that_is_a_file_is_told(place: Path, batch: Any, rows: Rows) -> None:
    (place / "out").write_text("", encoding="utf-8")
    done = batch("ask.yaml", "--inputs", rows(few()), "--out", "out")
    assert done.returncode == 6
    assert done.stderr.startswith("pi-run: out")
    assert len(done.stderr.splitlines()) == 1
