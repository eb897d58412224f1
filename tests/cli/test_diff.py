import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]


@pytest.fixture
def logs(pi_run: PiRun, spec: Write) -> None:
    spec()
    prompts = {"a": "Be kind.\\nBe brief.", "b": "Be kind.\\nBe bold."}
    for name, prompt in prompts.items():
        changed = ("--set", f'system_prompt="{prompt}"')
        assert pi_run("spec.yaml", "--log", f"{name}.jsonl", *changed).returncode == 0
    assert pi_run("spec.yaml", "--log", "c.jsonl", "--prompt", "Bye").returncode == 0


@pytest.mark.usefixtures("logs")
def test_the_same_is_0(pi_run: PiRun) -> None:
    done = pi_run("diff", "a.jsonl", "a.jsonl")

    assert (done.returncode, done.stdout) == (0, "")
    assert "are the same" in done.stderr


@pytest.mark.usefixtures("logs")
def test_a_changed_system_prompt_is_shown_once_by_its_lines(pi_run: PiRun) -> None:
    done = pi_run("diff", "a.jsonl", "b.jsonl", "--ignore", "run_start.plan.resolved")

    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "- a.jsonl",
        "+ b.jsonl",
        "before the first turn:",
        "  run_start.plan.system_prompt",
        "    - Be brief.",
        "    + Be bold.",
    ]


@pytest.mark.usefixtures("logs")
def test_differences_stand_below_their_turn(pi_run: PiRun) -> None:
    done = pi_run("diff", "a.jsonl", "c.jsonl", "--ignore", "run_start")

    assert "turn 1:\n  message_end.message.content[0].text\n    - Hello\n    + Bye\n" in done.stdout


@pytest.mark.usefixtures("logs")
def test_places_can_be_left_out(pi_run: PiRun) -> None:
    options = ("--ignore", ".plan", "--ignore", "model_request", "--ignore", ".message")
    done = pi_run("diff", "a.jsonl", "c.jsonl", *options)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.usefixtures("logs")
def test_json_is_one_object(pi_run: PiRun) -> None:
    done = pi_run("diff", "a.jsonl", "b.jsonl", "--format", "json")

    told = json.loads(done.stdout)
    assert (done.returncode, told["same"], told["a"]) == (1, False, "a.jsonl")
    assert told["differences"][0]["path"] == "run_start.plan.system_prompt"
    same = json.loads(pi_run("diff", "a.jsonl", "a.jsonl", "--format", "json").stdout)
    assert (same["same"], same["differences"]) == (True, [])


@pytest.mark.usefixtures("logs")
def test_what_is_no_log_is_told(pi_run: PiRun, folder: Path) -> None:
    (folder / "no.jsonl").write_text("hello\n", encoding="utf-8")

    assert pi_run("diff", "a.jsonl", "no.jsonl").returncode == 6
    assert pi_run("diff", "a.jsonl", "gone.jsonl").returncode == 2
