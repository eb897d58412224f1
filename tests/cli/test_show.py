import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]

TWO_TURNS = """\
version: 1
model:
  provider: scripted
  script:
    - {thinking: Let me see., text: I call., tool_calls: [{name: say, arguments: {word: one}}]}
    - {text: "bad \\e[2J words"}
system_prompt: Be kind.
prompt: Say a word
tools:
  - name: say
    description: Say it.
    parameters: {type: object, properties: {word: {type: string}}}
    command: [echo, "{{ args.word }} swallow"]
"""


@pytest.fixture
def log(pi_run: PiRun, spec: Write) -> str:
    spec(text=TWO_TURNS)
    assert pi_run("spec.yaml", "--log", "out.jsonl").returncode == 0
    return "out.jsonl"


def test_an_account_has_all_that_was_said_and_called(pi_run: PiRun, log: str) -> None:
    done = pi_run("show", log)

    assert (done.returncode, done.stderr) == (0, "")
    for part in (
        "Be kind.",
        "turn 1\n",
        "  user:\n    Say a word\n",
        "thinking: Let me see.",
        "    I call.\n",
        '  call say (call_1):\n    {"word": "one"}\n',
        "    one swallow\n",
        "    bad ␛[2J words\n",
        "\nok: 2 turns, 1 tool call",
    ):
        assert part in done.stdout
    assert "\x1b" not in done.stdout


def test_some_turns_alone(pi_run: PiRun, log: str) -> None:
    done = pi_run("show", log, "--turn", "2")

    assert done.stdout.startswith("turn 2\n")
    assert "words" in done.stdout
    assert "I call." not in done.stdout
    assert pi_run("show", log, "--turn", "1..2").stdout.startswith("turn 1\n")


def test_the_calls_of_a_tool_alone(pi_run: PiRun, log: str) -> None:
    done = pi_run("show", log, "--tool", "say", "--format", "json")

    assert [event["type"] for event in json.loads(done.stdout)] == [
        "turn_start",
        "tool_execution_start",
        "tool_execution_end",
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--turn", "9"], "out.jsonl: there is no turn 9 in it; its last is 2"),
        (["--tool", "sai"], 'no call of a tool "sai" in it; did you mean "say"?'),
        (["--agent", "main/x#1"], 'no agent "main/x#1" in it'),
        (["--turn", "2", "--tool", "say"], "nothing in it is all of this"),
        (["--turn", "2..1"], "the first turn is after the last"),
        (["--turn", "x"], '"x" is no turn'),
        (["--context", "7"], "out.jsonl: turn 7: the log has no request"),
        (["--context", "1", "--tool", "say"], "leave --turn and --tool out"),
    ],
)
def test_what_is_not_there_is_told(pi_run: PiRun, log: str, options: list[str], told: str) -> None:
    done = pi_run("show", log, *options)

    assert done.returncode == 2
    assert told in done.stderr


def test_what_the_model_read(pi_run: PiRun, log: str) -> None:
    done = pi_run("show", log, "--context", "2")

    assert done.returncode == 0
    assert "system prompt:\n    Be kind.\ntools: say\nm1 user:\n    Say a word\n" in done.stdout
    assert 'calls say {"word": "one"} (call_1)' in done.stdout
    assert "m3 tool_result of say (call_1):\n    one swallow" in done.stdout
    assert "words" not in done.stdout
    given = json.loads(pi_run("show", log, "--context", "1", "--format", "json").stdout)
    assert (given["turn"], [one["id"] for one in given["messages"]]) == (1, ["m1"])


def test_what_changed_in_it(pi_run: PiRun, log: str) -> None:
    done = pi_run("show", log, "--context", "1..2")

    assert "+ m3 tool_result of say (call_1):\n+     one swallow" in done.stdout
    assert "Say a word" not in done.stdout
    change = json.loads(pi_run("show", log, "--context", "1..2", "--format", "json").stdout)
    assert [one["id"] for one in change["added"]] == ["m2", "m3"]


def test_a_torn_tail_is_a_warning(pi_run: PiRun, log: str, folder: Path) -> None:
    path = folder / log
    path.write_bytes(path.read_bytes()[:-9])
    done = pi_run("show", log)

    assert done.returncode == 0
    assert "words" in done.stdout
    assert "cut off" in done.stderr


def test_an_answer_that_was_broken_off_is_shown(pi_run: PiRun, log: str, folder: Path) -> None:
    path = folder / log
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if '"message_update"' in line)
    path.write_text("".join(lines[: last + 1]), encoding="utf-8")
    done = pi_run("show", log)

    assert "  assistant (broken off):\n    bad ␛[2J words\n" in done.stdout


def test_a_reader_that_goes_away_ends_it_quietly(
    command: str, pi_run: PiRun, log: str, folder: Path
) -> None:
    with subprocess.Popen(
        [command, "show", log], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
