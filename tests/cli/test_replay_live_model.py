"""Replays whose model is asked anew: what it calls is answered by the log, or parts from it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.json_text import line, parse
from runner.log.read import read

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]

TOOLS = """\
prompt: Look.
tools:
  - name: look
    description: Look.
    parameters: {type: object, properties: {at: {type: string}}}
    command: [sh, -c, "echo x >> ran.txt; wc -l < ran.txt"]
    concurrency: 1
  - {name: other, description: Another., parameters: {type: object}, command: ["true"]}
"""


def written(script: str, more: str = "", name: str = "spec.yaml") -> None:
    """Write a spec whose model says what the script says."""
    head = f"version: 1\nmodel: {{provider: scripted, script: [{script}]}}\n"
    Path(name).write_text(head + TOOLS + more, encoding="utf-8")


def calls(*at: str, id_: str = "") -> str:
    """An answer with calls of the tool."""
    given = f"id: {id_}, " if id_ else ""
    made = (f"{{{given}name: look, arguments: {{at: {place}}}}}" for place in at)
    return f"{{tool_calls: [{', '.join(made)}]}}"


def results(log: str) -> list[str]:
    """The results of a log's calls, in the order in which the model reads them."""
    messages = (e["message"] for _, e in read(log) if e["type"] == "message_end")
    return [m["content"][0]["text"].strip() for m in messages if m["role"] == "tool_result"]


def count(name: str = "ran.txt") -> int:
    """How often the tool really ran."""
    return len(Path(name).read_text(encoding="utf-8").splitlines())


def record(pi_run: PiRun, script: str, more: str = "") -> None:
    """Record a run and forget its spec."""
    written(script, more)
    assert pi_run("spec.yaml", "--log", "log.jsonl").returncode in (0, 1, 4)


def ask(pi_run: PiRun, *words: str) -> "subprocess.CompletedProcess[str]":
    return pi_run("replay", "log.jsonl", "--live", "model", "--log", "new.jsonl", *words)


def test_the_same_calls_come_to_the_same_and_no_tool_is_run(pi_run: PiRun) -> None:
    record(pi_run, f"{calls('a', 'b')}, {calls('a')}, {{text: done}}")
    Path("spec.yaml").unlink()
    found = ask(pi_run)
    assert (found.returncode, found.stdout, count()) == (0, "", 3)
    assert "log.jsonl: 3 calls as recorded; the run ended as ok" in found.stderr
    assert sorted(results("new.jsonl")) == ["1", "2", "3"]
    assert pi_run("replay", "new.jsonl").returncode == 0


def test_calls_are_told_by_what_they_ask_for(pi_run: PiRun) -> None:
    record(pi_run, f"{calls('a')}, {calls('b')}, {calls('a')}, {{text: done}}")
    written(
        f"{calls('b', id_='call_1')}, {{text: Hm., tool_calls: [{{name: look, "
        f'arguments: \'{{"at" : "a"}}\'}}]}}, {calls("a")}, {{text: Other words.}}',
        name="new.yaml",
    )
    found = ask(pi_run, "--spec", "new.yaml")
    assert (found.returncode, found.stdout) == (0, "")
    assert results("new.jsonl") == ["2", "1", "3"]
    assert count() == 3


@pytest.mark.parametrize(
    ("now", "cause"),
    [
        (calls("a2"), "the nearest is call_1 in turn 1"),
        (calls("bb"), "the nearest is call_2 in turn 2"),
        (f"{calls('a')}, {calls('a')}", "has this call 1 times, and this is one more"),
        ("{tool_calls: [{name: lock}]}", "the nearest is call_"),
        ("{tool_calls: [{name: look, arguments: '{'}]}", "the nearest is call_"),
    ],
)
def test_a_call_that_the_log_has_not_ends_it(pi_run: PiRun, now: str, cause: str) -> None:
    record(pi_run, f"{calls('a')}, {calls('b')}, {{text: done}}")
    written(f"{now}, {{text: done}}", name="new.yaml")
    found = ask(pi_run, "--spec", "new.yaml")
    assert found.returncode == 1
    assert "tool_execution_start" in found.stdout
    assert cause in found.stdout
    end = [event for _, event in read("new.jsonl")][-1]
    assert (end["type"], end["status"], count()) == ("run_end", "aborted", 2)


def test_a_log_without_calls_has_no_nearest_one(pi_run: PiRun) -> None:
    record(pi_run, "{text: done}")
    written(f"{calls('a')}, {{text: done}}", name="new.yaml")
    found = ask(pi_run, "--spec", "new.yaml", "--format", "json")
    told = parse(found.stdout)
    assert (found.returncode, told["same"], told["difference"]["recorded"]) == (1, False, None)
    assert told["difference"]["cause"] == "the log has no call"


def test_a_call_that_the_log_has_not_may_be_run(pi_run: PiRun) -> None:
    more = "permissions: {allow: [look], deny: [other]}\n"
    record(pi_run, f"{calls('a')}, {{text: done}}", more)
    both = f"{calls('a', 'b')}, {{tool_calls: [{{name: other}}]}}, {{text: done}}"
    written(both, more, name="new.yaml")
    found = ask(pi_run, "--spec", "new.yaml", "--on-miss", "live", "--format", "json")
    told = parse(found.stdout)
    assert (found.returncode, told["same"], told["calls"]) == (0, True, {"same": 1, "left": 0})
    assert results("new.jsonl")[:2] == ["1", "2"]
    assert results("new.jsonl")[2].startswith("Not run: ")


def test_calls_that_are_not_made_any_more_are_told(pi_run: PiRun) -> None:
    record(pi_run, f"{calls('a')}, {calls('b')}, {{text: done}}")
    written(f"{calls('b')}, {{text: done}}", name="new.yaml")
    found = ask(pi_run, "--spec", "new.yaml")
    assert found.returncode == 0
    assert "1 call as recorded, 1 of the log not made" in found.stderr


@pytest.mark.parametrize(
    ("recorded", "now", "code"), [("good", "good", 0), ("good", "bad", 1), ("bad", "bad", 0)]
)
def test_how_the_run_ends_is_held_against_the_log(
    pi_run: PiRun, recorded: str, now: str, code: int
) -> None:
    more = "expect: [{contains: good}]\n"
    record(pi_run, f"{{text: {recorded}}}", more)
    written(f"{{text: {now} I say}}", more, name="new.yaml")
    found = ask(pi_run, "--spec", "new.yaml")
    assert found.returncode == code
    assert ("run_end.status" in found.stdout) is (code == 1)


def test_a_model_that_fails_is_no_difference_of_its_calls(pi_run: PiRun) -> None:
    record(pi_run, "{text: done}")
    written("{error: no such model, status: 404}", name="new.yaml")
    found = ask(pi_run, "--spec", "new.yaml")
    assert found.returncode == 3
    assert "no such model" in found.stdout + found.stderr


def test_what_hooks_and_checks_decided_of_a_call_holds_for_it(pi_run: PiRun) -> None:
    decision = '{"block": true, "reason": "not there"}'
    Path("hook.sh").write_text(
        f"#!/bin/sh\nif grep -q '\"no\"'; then echo '{decision}'; else echo null; fi\n", "utf-8"
    )
    Path("hook.sh").chmod(0o755)
    more = "hooks: {before_tool_call: [{command: [./hook.sh]}]}\n"
    wrong = "{tool_calls: [{name: look, arguments: {at: 1}}]}"
    record(pi_run, f"{calls('a', 'no')}, {wrong}, {{text: done}}", more)
    Path("hook.sh").write_text("#!/bin/sh\necho x >> ran.txt\n", "utf-8")
    written(f"{calls('no')}, {wrong}, {calls('a')}, {{text: done}}", more, name="new.yaml")
    found = ask(pi_run, "--spec", "new.yaml")
    assert found.returncode == 0, found.stdout
    assert results("new.jsonl")[0] == "Not run: not there"
    assert "at" in results("new.jsonl")[1]
    blocks = [e["reason"] for _, e in read("new.jsonl") if e["type"] == "hook_decision"]
    assert blocks == ["not there"]
    assert count() == 1


@pytest.mark.parametrize(
    "more",
    [
        "hooks: {stop_after_turn: [{command: [echo, 'false']}]}\n",
        "hooks: {transform_context: [{command: [echo, 'null']}]}\n",
        "expect: [{command: ['true']}]\n",
    ],
)
def test_programs_that_the_log_can_not_stand_for_are_named(pi_run: PiRun, more: str) -> None:
    record(pi_run, "{text: done}", more)
    found = ask(pi_run)
    assert (found.returncode, found.stdout) == (2, "")
    assert "--live hooks" in found.stderr
    assert not Path("new.jsonl").exists()


def test_agents_are_asked_anew_too(pi_run: PiRun) -> None:
    sub = (
        f"version: 1\nmodel: {{provider: scripted, script: [{calls('a')}, {{text: was}}]}}\n{TOOLS}"
    )
    Path("sub.yaml").write_text(sub, encoding="utf-8")
    more = "  - {agent: ./sub.yaml}\n"
    both = "{tool_calls: [{name: sub}, {name: sub}]}, {text: '{{ last.text }}'}"
    record(pi_run, both, more)
    Path("sub.yaml").write_text(sub.replace("was", "is"), encoding="utf-8")
    found = ask(pi_run, "--spec", "spec.yaml")
    assert (found.returncode, count()) == (0, 2), found.stdout
    assert [e for _, e in read("new.jsonl")][-1]["text"] == "is"
    Path("sub.yaml").write_text(sub.replace("at: a", "at: b"), encoding="utf-8")
    found = ask(pi_run, "--spec", "spec.yaml")
    assert (found.returncode, count()) == (1, 2)
    assert "of main/sub#" in found.stdout


def test_the_new_log_goes_where_it_is_told(pi_run: PiRun) -> None:
    record(pi_run, f"{calls('a')}, {{text: done}}")
    shown = pi_run("replay", "log.jsonl", "--live", "model", "--log", "-")
    events = list(map(parse, shown.stdout.splitlines()))
    assert [events[0]["type"], events[-1]["type"]] == ["run_start", "run_end"]
    assert events[0]["forked_from"]["turn"] == 1
    assert pi_run("replay", "log.jsonl", "--live", "model", "--log", "none").returncode == 0
    assert not Path(".pi-run").exists()
    assert pi_run("replay", "log.jsonl", "--live", "model").returncode == 0
    assert len(list(Path(".pi-run/logs").glob("spec-*.jsonl"))) == 1


def test_a_log_that_breaks_off_answers_as_far_as_it_goes(pi_run: PiRun) -> None:
    record(pi_run, f"{calls('a')}, {calls('b')}, {{text: done}}")
    events = [event for _, event in read("log.jsonl")]
    kept = next(n for n, e in enumerate(events) if e["type"] == "turn_end") + 1
    Path("log.jsonl").write_text("".join(line(e) + "\n" for e in events[:kept]), "utf-8")
    assert ask(pi_run).returncode == 1
    written(f"{calls('a')}, {{text: done}}", name="new.yaml")
    assert ask(pi_run, "--spec", "new.yaml").returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--live", "model", "--live", "tools"],
        ["--live", "model", "--from-turn", "1"],
        ["--live", "model", "--override", "m1=x"],
        ["--on-miss", "live"],
        ["--log", "x.jsonl"],
    ],
)
def test_options_that_do_not_go_together(pi_run: PiRun, words: list[str]) -> None:
    record(pi_run, "{text: done}")
    found = pi_run("replay", "log.jsonl", *words)
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1)
