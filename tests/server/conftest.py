from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

COMMAND = str(Path(sysconfig.get_path("scripts")) / "pi-run")
TOKEN = "a-token-of-the-tests"

SPECS = {
    "quick": """\
version: 1
name: quick
description: Answers at once.
model: {provider: scripted, script: [{text: "It is about {{ inputs.topic }}.", repeat: forever}]}
inputs:
  topic: {type: string, description: What about}
  depth: {type: integer, default: 2, enum: [1, 2, 3]}
  share: {type: number, default: 0.5}
  loud: {type: boolean, default: false}
  tags: {type: array, default: []}
  key: {type: string, secret: true, default: sesame-open-wide}
prompt: "{{ inputs.topic }}"
""",
    # Goes on for a minute, unless it is led or ended.
    "slow": """\
version: 1
name: slow
model:
  provider: scripted
  script:
    - {text: "{{ 'on and ' * 100 }}", deltas: 600, delay: 0.1}
    - {text: "{{ last.text }}: so be it."}
    - {text: "{{ last.text }}: that too."}
prompt: Go.
""",
    # Takes a second, in pieces, with a tool in between.
    "pieces": """\
version: 1
name: pieces
model:
  provider: scripted
  script:
    - text: Let me look.
      deltas: 6
      delay: 0.02
      tool_calls: [{name: rest, arguments: {}}]
    - {text: "This is what I found, all of it.", deltas: 20, delay: 0.02}
prompt: Look.
tools:
  - name: rest
    description: Takes its time.
    parameters: {type: object, properties: {}}
    command: [sleep, "0.3"]
""",
    "asks": """\
version: 1
name: asks
model:
  provider: scripted
  script:
    - tool_calls: [{name: shell, arguments: {command: "echo it-ran"}}]
    - tool_calls: [{name: ask_user, arguments: {question: Which?, choices: [red, blue]}}]
    - text: "{{ messages | map(attribute='text') | join('|') }}"
prompt: Go.
tools: [shell, ask_user]
permissions: {allow: [ask_user], ask: [shell]}
""",
    # Has no prompt of its own.
    "open": """\
version: 1
name: open
model: {provider: scripted, script: [{text: "You said: {{ last.text }}", repeat: forever}]}
""",
}


class Server:
    """``pi-run serve`` in a process of its own, and a client of it."""

    def __init__(self, folder: Path, *arguments: str, specs: list[str] | None = None) -> None:
        names = list(SPECS) if specs is None else specs
        for name in names:
            (folder / f"{name}.yaml").write_text(SPECS[name], encoding="utf-8")
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("PI_RUN_", "GITHUB_"))}
        self.folder = folder
        self.process = subprocess.Popen(
            [COMMAND, "serve", *(f"{name}.yaml" for name in names), "--port", "0", *arguments],
            cwd=folder,
            env={**environ, "PI_RUN_TOKEN": TOKEN},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        found = re.search(r"http://\S+/", first)
        assert found, first + self.process.stderr.read()
        self.url = found[0]
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        self.client = httpx.Client(base_url=self.url, headers=bearer, timeout=20)

    @property
    def logs(self) -> Path:
        """The folder of logs."""
        return self.folder / ".pi-run" / "logs"

    def start(self, spec: str, **more: Any) -> str:
        """Start a run; gives its id."""
        answer = self.client.post("/runs", json={"spec": spec, **more})
        assert answer.status_code == 201, answer.text
        run_id: str = answer.json()["id"]
        return run_id

    def run(self, run_id: str) -> dict[str, Any]:
        """What is known of a run."""
        answer = self.client.get(f"/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def until(self, run_id: str, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """What is known of a run once something holds of it."""
        for _ in range(400):
            if holds(told := self.run(run_id)):
                return told
            time.sleep(0.03)
        raise AssertionError(told)

    def ended(self, run_id: str) -> dict[str, Any]:
        """What is known of a run once it has ended."""
        return self.until(run_id, lambda run: not run["live"])

    def log(self, run_id: str) -> list[str]:
        """The lines of a run's log on disk."""
        (path,) = self.logs.glob(f"*-{run_id}.jsonl")
        return path.read_text(encoding="utf-8").splitlines()

    def events(self, run_id: str, after: int | None = None) -> Iterator[tuple[int, str]]:
        """The events of a run as they come, each with its id."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        with self.client.stream("GET", f"/runs/{run_id}/events", headers=headers) as answer:
            if answer.status_code == 204:
                return
            assert answer.status_code == 200, answer.read()
            yield from frames(answer)

    def lead(self, run_id: str, how: str, **body: Any) -> httpx.Response:
        """Steer a run, or the like."""
        return self.client.post(f"/runs/{run_id}/{how}", json=body)

    def stop(self, number: int = 15) -> int:
        """End it by a signal; gives its exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)

    def close(self) -> None:
        """End it, whatever it does."""
        self.client.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


def frames(answer: httpx.Response) -> Iterator[tuple[int, str]]:
    """The numbered events of a stream."""
    number = -1
    for line in answer.iter_lines():
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("data: ") and number >= 0:
            yield number, line[6:]
        elif not line:
            number = -1


def types(lines: list[str]) -> list[str]:
    """The types of a log's events."""
    return [json.loads(line)["type"] for line in lines]


Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers, which end with the test."""
    started: list[Server] = []

    def start(*arguments: str, specs: list[str] | None = None) -> Server:
        started.append(Server(tmp_path, *arguments, specs=specs))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the tests of a module share."""
    one = Server(tmp_path_factory.mktemp("serve"), "--max-runs", "50")
    yield one
    one.close()
