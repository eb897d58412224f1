import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

Write = Callable[..., Path]

NAP = """\
version: 1
model: {provider: scripted, script: [{tool_calls: [{name: nap}]}, {text: done}]}
prompt: Hello
tools:
  - python: ./tools.py:nap
"""


@pytest.fixture
def napping(command: str, folder: Path, spec: Write) -> Iterator["subprocess.Popen[str]"]:
    """A run of two specs, of which the first is in the middle of a tool that takes for ever."""
    spec(text=NAP)
    (folder / "tools.py").write_text(
        "import pathlib, time\ndef nap() -> str:\n    '''Nap.'''\n"
        "    pathlib.Path('begun').touch()\n    time.sleep(60)\n    return ''\n",
        encoding="utf-8",
    )
    words = [command, "spec.yaml", "spec.yaml", "--log", "out.jsonl", "--junit", "junit.xml"]
    with subprocess.Popen(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        while not (folder / "begun").exists() and process.poll() is None:
            time.sleep(0.01)
        yield process
        process.kill()


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_all_runs_in_order(
    napping: "subprocess.Popen[str]", folder: Path, name: str, code: int
) -> None:
    napping.send_signal(getattr(signal, name))
    stdout, stderr = napping.communicate(timeout=30)

    assert napping.returncode == code
    assert stdout.startswith("spec.yaml: aborted")
    assert "2 runs: 1 aborted, 1 skipped" in stderr
    last = (folder / "out-1.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(last)["exit_code"] == code
    assert not (folder / "out-2.jsonl").exists()
    suite = ElementTree.parse(folder / "junit.xml").getroot()[0]
    assert (suite.get("errors"), suite.get("skipped")) == ("1", "1")


def test_a_reader_that_goes_away_ends_the_run(command: str, folder: Path, spec: Write) -> None:
    spec(
        text="version: 1\nmodel: {provider: scripted, script: [{text: x, deltas: 1}]}\nprompt: x\n"
    )
    reader, writer = os.pipe()
    os.close(reader)
    words = [command, "spec.yaml", "--format", "jsonl", "--log", "out.jsonl", "--quiet"]
    done = subprocess.run(words, cwd=folder, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)

    assert done.returncode == 141
    assert b"rror" not in done.stderr
    last = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(last)["status"] == "aborted"


@pytest.mark.parametrize("caught", ["asyncio.CancelledError", "BaseException"])
def test_a_tool_that_takes_no_notice_does_not_keep_the_process(
    command: str, folder: Path, spec: Write, caught: str
) -> None:
    spec(text=NAP + "limits: {seconds: 0.2}\n")
    (folder / "tools.py").write_text(
        "import asyncio\nasync def nap() -> str:\n    '''Nap.'''\n    while True:\n"
        f"        try:\n            await asyncio.sleep(60)\n        except {caught}:\n"
        "            pass\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [command, "spec.yaml", "--log", "none"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
    )
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert "destroyed" not in done.stderr


@contextmanager
def begun(
    command: str, folder: Path, spec: Write, tools: str, more: str = ""
) -> Iterator["subprocess.Popen[str]"]:
    """A run whose Python has come so far that it touched the file ``begun``."""
    spec(text=NAP + more)
    (folder / "tools.py").write_text("import pathlib, time\n" + tools, encoding="utf-8")
    with subprocess.Popen(
        [command, "spec.yaml", "--log", "out.jsonl"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        while not (folder / "begun").exists() and process.poll() is None:
            time.sleep(0.01)
        yield process
        process.kill()


NEVER_AWAITS = """
async def nap() -> str:
    '''Nap.'''
    pathlib.Path('begun').touch()
    while True:
        {work}
"""


@pytest.mark.parametrize("work", ["pass", "time.sleep(60)"])
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), (None, 4)])
def test_a_coroutine_that_never_awaits_is_left_behind(
    command: str, folder: Path, spec: Write, name: str | None, code: int, work: str
) -> None:
    limit = "" if name else "limits: {seconds: 1}\n"
    with begun(command, folder, spec, NEVER_AWAITS.format(work=work), limit) as process:
        if name is not None:
            process.send_signal(getattr(signal, name))
        _, stderr = process.communicate(timeout=50)

    assert process.returncode == code
    assert "Traceback" not in stderr
    log = (folder / "out.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in log.splitlines()]
    ends = [line for line in lines if line["type"] == "tool_execution_end"]
    assert "It was left behind." in ends[0]["result"]["content"][0]["text"]
    assert (lines[-1]["type"], lines[-1]["exit_code"]) == ("run_end", code)


def test_a_hook_that_never_awaits_is_left_behind_too(
    command: str, folder: Path, spec: Write
) -> None:
    hook = NEVER_AWAITS.format(work="pass").replace("nap()", "look(call: dict)")
    tools = hook + "def nap() -> str:\n    return ''\n"
    more = "hooks: {before_tool_call: [{python: './tools.py:look'}]}\n"
    with begun(command, folder, spec, tools, more) as process:
        process.terminate()
        process.communicate(timeout=50)

    assert process.returncode == 143
    last = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(last)["status"] == "aborted"


IMPORT_THAT_NEVER_RETURNS = """
pathlib.Path('begun').touch()
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass
"""


def test_an_import_that_never_returns_ends_with_the_command(
    command: str, folder: Path, spec: Write
) -> None:
    with begun(command, folder, spec, IMPORT_THAT_NEVER_RETURNS) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=50)

    assert process.returncode == 130
    assert not (folder / "out.jsonl").exists()
