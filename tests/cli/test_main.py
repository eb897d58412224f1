import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from runner.cli import COMMANDS

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]

HEAVY = {"asyncio", "httpx", "jinja2", "jsonschema", "pydantic", "yaml", "runner.api"}

CALL = "import sys; from runner.cli import main; sys.argv[0] = 'pi-run'; main()"


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)], ids=str)
def test_help_has_an_example(pi_run: PiRun, words: list[str]) -> None:
    done = pi_run(*words, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert "pi-run" in done.stdout.partition("Example")[2]


@pytest.mark.parametrize("words", ["--help", "--version", "run --help", "spec.yaml --x"])
def test_help_and_wrong_options_import_nothing_heavy(words: str) -> None:
    script = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print('heavy:', *({HEAVY} & sys.modules.keys())))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script + CALL, *words.split()],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert done.stdout.splitlines()[-1] == "heavy:"


def test_version(pi_run: PiRun) -> None:
    assert pi_run("--version").stdout == "pi-run 0.1.0\n"


def test_nothing_to_do_is_no_success(pi_run: PiRun) -> None:
    done = pi_run()

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: pi-run")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["spec.yaml", "--lgo", "x"], "pi-run: no such option '--lgo'; did you mean '--log'?"),
        (["run"], "pi-run: missing argument 'SPEC...'; see pi-run run --help"),
        (
            ["spec.yaml", "--repeat", "0"],
            "pi-run: invalid value for '--repeat': 0 is not in the range 1<=x<=100000; "
            "see pi-run run --help",
        ),
        (["spec.yaml", "--log"], "pi-run: option '--log' requires an argument; "),
        (["chek", "spec.yaml"], 'pi-run: there is no command and no spec "chek"; did you mean "ch'),
        (["-i"], "pi-run: option '-i' requires an argument; "),
    ],
)
def test_wrong_usage_is_one_line(pi_run: PiRun, words: list[str], told: str) -> None:
    done = pi_run(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1


def test_help_for_a_reader_that_went_away_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", CALL, "--help"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)

    assert done.stderr == b""
