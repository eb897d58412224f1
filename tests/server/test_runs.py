from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sysconfig.get_path("scripts")) / "pi-run"


def test_what_can_be_run(server: Any) -> None:
    specs = {spec["name"]: spec for spec in server.client.get("/specs").json()["specs"]}
    assert list(specs) == ["quick", "slow", "pieces", "asks", "open"]
    quick = specs["quick"]
    assert quick["description"] == "Answers at once."
    assert quick["inputs"]["required"] == ["topic"]
    assert quick["inputs"]["properties"]["depth"] == {
        "type": "integer",
        "enum": [1, 2, 3],
        "default": 2,
    }
    assert quick["inputs"]["properties"]["key"] == {
        "type": "string",
        "format": "password",
        "writeOnly": True,
    }
    assert [name for name, spec in specs.items() if spec["asks_for_prompt"]] == ["open"]


def test_a_run_from_its_start_to_its_end(server: Any) -> None:
    answer = server.client.post("/runs", json={"spec": "quick", "inputs": {"topic": "cats"}})
    assert answer.status_code == 201
    run_id = answer.json()["id"]
    assert answer.headers["location"] == f"/runs/{run_id}"
    told = server.ended(run_id)
    assert (told["status"], told["exit_code"], told["turns"]) == ("ok", 0, 1)
    assert told["text"] == "It is about cats."
    assert "sesame" not in json.dumps(told)
    listed = server.client.get("/runs").json()["runs"]
    assert run_id in [run["id"] for run in listed]


def test_a_prompt_is_given_where_the_spec_has_none(server: Any) -> None:
    assert server.ended(server.start("open", prompt="{{ no }} template"))["text"] == (
        "You said: {{ no }} template"
    )


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "invalid_body"),
        ([], 422, "invalid_body"),
        ({"spec": 1}, 422, "invalid_body"),
        ({"spec": "../quick.yaml"}, 422, "no_such_spec"),
        ({"spec": "quick.yaml", "inputs": {"topic": "x"}}, 422, "no_such_spec"),
        ({"spec": "quick"}, 422, "invalid_inputs"),
        ({"spec": "quick", "inputs": []}, 422, "invalid_body"),
        ({"spec": "quick", "inputs": {"topic": 1}}, 422, "invalid_inputs"),
        ({"spec": "quick", "inputs": {"topic": "x", "depth": 9}}, 422, "invalid_inputs"),
        ({"spec": "quick", "inputs": {"topic": "x", "log": "/etc"}}, 422, "invalid_inputs"),
        ({"spec": "quick", "inputs": {"topic": "x"}, "log": "x"}, 422, "invalid_body"),
        ({"spec": "quick", "inputs": {"topic": "x"}, "prompt": "x"}, 422, "invalid_prompt"),
        ({"spec": "open"}, 422, "invalid_prompt"),
        ({"spec": "open", "prompt": " "}, 422, "invalid_body"),
    ],
)
def test_what_starts_no_run(server: Any, body: Any, status: int, code: str) -> None:
    answer = server.client.post("/runs", json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["message"]


def test_a_run_is_steered_and_followed_up(server: Any) -> None:
    run_id = server.start("slow")
    server.until(run_id, lambda run: run["status"] == "running")
    assert server.lead(run_id, "steer", text="Be done").status_code == 202
    assert server.lead(run_id, "follow_up", text="Once more").status_code == 202
    queued = [
        (event["queue"], event["message"]["content"][0]["text"])
        for _, line in _until_queued(server, run_id, 2)
        if (event := json.loads(line))["type"] == "message_queued"
    ]
    assert queued == [("steering", "Be done"), ("follow_up", "Once more")]
    assert server.lead(run_id, "abort").status_code == 202
    assert server.ended(run_id)["status"] == "aborted"


def _until_queued(server: Any, run_id: str, count: int) -> Any:
    for number, line in server.events(run_id):
        yield number, line
        count -= json.loads(line)["type"] == "message_queued"
        if not count:
            return


def test_an_aborted_run_has_a_whole_log(server: Any) -> None:
    run_id = server.start("slow")
    server.until(run_id, lambda run: run["status"] == "running")
    assert server.lead(run_id, "abort").status_code == 202
    told = server.ended(run_id)
    assert (told["status"], told["exit_code"]) == ("aborted", 3)
    last = json.loads(server.log(run_id)[-1])
    assert (last["type"], last["status"]) == ("run_end", "aborted")
    for how, body in (("abort", {}), ("steer", {"text": "x"}), ("follow_up", {"text": "x"})):
        answer = server.lead(run_id, how, **body)
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "run_ended"


def test_what_a_run_asks_is_answered(server: Any) -> None:
    run_id = server.start("asks")
    (asked,) = server.until(run_id, lambda run: run["questions"])["questions"]
    assert (asked["kind"], asked["tool_name"]) == ("permission", "shell")
    assert asked["arguments"] == {"command": "echo it-ran"}
    wrong = server.lead(run_id, f"questions/{asked['id']}", answer="perhaps")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "invalid_answer")
    assert server.lead(run_id, f"questions/{asked['id']}", answer="allow").status_code == 204
    again = server.lead(run_id, f"questions/{asked['id']}", answer="deny")
    assert (again.status_code, again.json()["error"]["code"]) == (404, "no_such_question")

    holds = lambda run: run["questions"] and run["questions"][0]["kind"] == "question"  # noqa: E731
    (asked,) = server.until(run_id, holds)["questions"]
    assert asked["text"] == "Which?\n1. red\n2. blue"
    assert server.lead(run_id, f"questions/{asked['id']}", answer="2").status_code == 204
    told = server.ended(run_id)
    assert told["questions"] == []
    (log,) = server.logs.glob(f"*-{run_id}.jsonl")
    again = subprocess.run([COMMAND, "replay", log], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "it-ran" in told["text"]
    assert told["text"].endswith("blue")


def test_a_permission_is_denied(server: Any) -> None:
    run_id = server.start("asks")
    (asked,) = server.until(run_id, lambda run: run["questions"])["questions"]
    server.lead(run_id, f"questions/{asked['id']}", answer="deny")
    holds = lambda run: run["questions"] and run["questions"][0]["kind"] == "question"  # noqa: E731
    server.until(run_id, holds)
    (decision,) = [e for e in map(json.loads, server.log(run_id)) if e["type"] == "hook_decision"]
    assert decision["reason"] == "the person who was asked said no"
    server.lead(run_id, "abort")
    assert server.ended(run_id)["questions"] == []


def test_a_question_that_nobody_answers_counts_as_asked_of_nobody(serve: Any) -> None:
    server = serve("--answer-within", "0.2", specs=["asks"])
    run_id = server.start("asks")
    told = server.ended(run_id)
    assert "nobody can be asked" in told["text"]
    assert told["text"].endswith("The person gave no answer.")


def test_a_log_is_a_file_of_json_lines(server: Any) -> None:
    run_id = server.start("quick", inputs={"topic": "cats"})
    server.ended(run_id)
    answer = server.client.get(f"/runs/{run_id}/log")
    assert answer.headers["content-type"] == "application/x-ndjson"
    name = f"quick-{run_id}.jsonl"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert answer.text.splitlines() == server.log(run_id)


def test_a_log_can_be_had_while_it_grows(server: Any) -> None:
    run_id = server.start("slow")
    server.until(run_id, lambda run: run["status"] == "running")
    lines = server.client.get(f"/runs/{run_id}/log").text
    assert lines.endswith("\n")
    assert json.loads(lines.splitlines()[0])["run_id"] == run_id
    server.lead(run_id, "abort")


@pytest.mark.parametrize(
    "name", ["000000000000", "nope", "..%2F..%2Fetc%2Fpasswd", "%00", "A" * 12]
)
def test_a_run_that_is_not_there(server: Any, name: str) -> None:
    for path in ("", "/events", "/log"):
        assert server.client.get(f"/runs/{name}{path}").status_code == 404
    for path in ("steer", "follow_up"):
        assert server.lead(name, path, text="x").status_code == 404
    assert server.lead(name, "abort").status_code == 404
    assert server.lead(name, "questions/q1", answer="x").status_code == 404


def test_no_more_runs_at_once_than_are_allowed(serve: Any) -> None:
    server = serve("--max-runs", "2", specs=["slow", "quick"])
    first, _ = server.start("slow"), server.start("slow")
    answer = server.client.post("/runs", json={"spec": "quick", "inputs": {"topic": "x"}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_runs")
    assert int(answer.headers["retry-after"]) > 0
    server.lead(first, "abort")
    server.ended(first)
    assert server.ended(server.start("quick", inputs={"topic": "x"}))["status"] == "ok"


def test_runs_of_a_server_before_are_listed_page_by_page(serve: Any) -> None:
    before = serve("--keep", "1", specs=["quick", "slow"])
    ids = [before.start("quick", inputs={"topic": str(n)}) for n in range(5)]
    for run_id in ids:
        before.ended(run_id)
    left = before.start("slow")
    before.until(left, lambda run: run["status"] == "running")
    newest_first = [left, *sorted(ids, reverse=True)]
    listed = before.client.get("/runs").json()
    assert [run["id"] for run in listed["runs"]] == newest_first
    assert "next" not in listed
    before.process.kill()
    before.process.wait()

    server = serve(specs=[])
    told = []
    page = {"next": "zzzzzzzzzzzz"}
    while "next" in page:
        page = server.client.get("/runs", params={"limit": 2, "before": page["next"]}).json()
        told += page["runs"]
    assert [run["id"] for run in told] == newest_first
    assert [run["status"] for run in told] == ["interrupted", *["ok"] * 5]
    assert server.run(left)["status"] == "interrupted"
    assert list(server.events(left)) == list(enumerate(server.log(left)))


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "before=x", "before="])
def test_a_part_of_the_list_that_there_is_not(server: Any, query: str) -> None:
    assert server.client.get(f"/runs?{query}").status_code == 422


def test_a_run_that_cannot_write_its_log_says_why(serve: Any) -> None:
    server = serve(specs=["quick"])
    (server.folder / ".pi-run").write_text("in the way", encoding="utf-8")
    run_id = server.start("quick", inputs={"topic": "x"})
    told = server.ended(run_id)
    assert (told["status"], told["exit_code"]) == ("error", 6)
    assert "can't be opened for writing" in told["error"]
    assert list(server.events(run_id)) == []
    assert server.client.get(f"/runs/{run_id}/log").status_code == 404


def test_inputs_that_the_command_gives_are_fixed(serve: Any) -> None:
    server = serve("-i", "topic=dogs", specs=["quick"])
    (spec,) = server.client.get("/specs").json()["specs"]
    assert "topic" not in spec["inputs"]["properties"]
    assert server.ended(server.start("quick"))["text"] == "It is about dogs."
    answer = server.client.post("/runs", json={"spec": "quick", "inputs": {"topic": "cats"}})
    assert answer.status_code == 422
