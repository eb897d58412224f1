import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# A process of its own each: these are about the process's descriptors.
CLAIM = """
import os, sys
from runner.cli.streams import Streams, open_standard_descriptors
open_standard_descriptors()
streams = Streams()
streams.claim()
"""


def run(script: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
    options.setdefault("env", {**os.environ, "GITHUB_ACTIONS": ""})
    words = [sys.executable, "-c", CLAIM + script]
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(words, check=False, timeout=60, **kept)  # type: ignore[call-overload,no-any-return]


def test_only_the_result_comes_to_stdout() -> None:
    done = run(
        "print('printed')\n"
        "os.write(1, b'written\\n')\n"
        "os.system('echo of a child')\n"
        "streams.result('the result')\n"
    )

    assert done.stdout == b"the result\n"
    assert sorted(done.stderr.splitlines()) == [b"of a child", b"printed", b"written"]


def test_a_child_does_not_get_the_results_descriptor() -> None:
    done = run(
        "import subprocess\n"
        "fds = subprocess.check_output(['ls', '/proc/self/fd'], close_fds=False, text=True)\n"
        "streams.result(fds)\n"
    )

    # 3 is the folder that ls reads.
    assert done.stdout.split() == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Größe 😀", "Größe 😀\n".encode()),
        ("with a newline\n", b"with a newline\n"),
        ("", b""),
        ("\x1b[2J\a", b"\x1b[2J\a\n"),
        ("bytes \udcff", b"bytes \xff\n"),
        ("lone \ud800, pair \ud83d\ude00", "lone \ufffd, pair 😀\n".encode()),
    ],
)
def test_a_pipe_gets_the_text_as_it_is(text: str, written: bytes) -> None:
    locale = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run(f"streams.result({text!a})", env={**locale, "GITHUB_ACTIONS": ""})

    assert (done.stdout, done.stderr) == (written, b"")


def test_actions_get_no_command_and_no_control_code() -> None:
    script = "for to in (streams.result, streams.say): to('\\x1b[2J\\n ::error::pwned')"
    done = run(script, env={**os.environ, "GITHUB_ACTIONS": "true"})

    assert done.stdout == done.stderr == "␛[2J\n :\\:error::pwned\n".encode()


def test_a_terminal_gets_no_control_code() -> None:
    leader, follower = os.openpty()
    run("streams.result('\\x1b[2J\\r')", stdout=follower)
    os.close(follower)

    assert os.read(leader, 100) == "␛[2J␍\r\n".encode()
    os.close(leader)


def test_a_reader_that_goes_away_is_noticed_quietly() -> None:
    script = (
        "for n in range(9999): streams.line('x' * 1000)\nprint(streams.closed, file=sys.stderr)"
    )
    words = [sys.executable, "-c", CLAIM + script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"True\n"
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_an_error() -> None:
    script = (
        "from runner.error import LogError\n"
        "try: streams.result('x')\n"
        "except LogError as error: print(error)\n"
    )
    with open("/dev/full", "wb") as full:
        done = run(script, stdout=full)

    assert done.stderr.startswith(b"stdout: No space left on device")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors_are_never_given_to_a_file(closed: str, tmp_path: Path) -> None:
    script = CLAIM + "file = open('log', 'w')\nprint('x')\nstreams.say('x')\nstreams.result('x')\n"
    (tmp_path / "script.py").write_text(script, encoding="utf-8")

    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" script.py {closed}'],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, (tmp_path / "log").read_bytes()) == (0, b"")
    assert b"rror" not in done.stderr


@pytest.mark.parametrize(
    ("words", "descriptor", "code"),
    [
        (["spec.yaml"], 2, 0),
        (["nowhere.yaml"], 2, 2),
        (["spec.yaml"], 1, 6),
        (["check", "spec.yaml"], 1, 6),
        (["--help"], 1, 6),
        (["--version"], 1, 6),
        (["run", "--help"], 2, 0),
    ],
)
def test_a_full_disk_below_a_stream(
    command: str,
    folder: Path,
    spec: Callable[..., Path],
    words: list[str],
    descriptor: int,
    code: int,
) -> None:
    spec()
    with open("/dev/full", "w", encoding="utf-8") as full:
        streams: dict[int, Any] = {1: subprocess.PIPE, 2: subprocess.PIPE, descriptor: full}
        done = subprocess.run(
            [command, *words],
            stdin=subprocess.DEVNULL,
            stdout=streams[1],
            stderr=streams[2],
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    assert done.returncode == code
    if descriptor == 1:
        assert "stdout: No space left on device" in done.stderr
