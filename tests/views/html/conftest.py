"""A run with everything in it, made by the command, and a browser that its pages are opened in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request

Scheme = Literal["light", "dark"]
Open = Callable[..., "Page"]
PiRun = Callable[..., "subprocess.CompletedProcess[str]"]

DRAWN = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
"""Done once the page has drawn what was done to it."""

TOOLS = '''\
import asyncio

from runner.engine.contract import ToolResult

DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def search(query: str, wait: float = 0.05) -> str:
    """Search."""
    await asyncio.sleep(wait)
    return f"app.py:14: def {query}(x): 漢字"


async def read(path: str) -> str:
    """Read a file of many lines."""
    return "\\n".join(f"line {number} of {path} 🙂" for number in range(1, 201))


async def broken(why: str) -> str:
    """Fail."""
    raise ValueError(f"No such file: {why}")


async def look(at: str) -> ToolResult:
    """Take a picture."""
    image = {"type": "image", "mime_type": "image/png", "data": DOT}
    return ToolResult([{"type": "text", "text": "What it looks like:"}, image])
'''

REVIEWER = """\
version: 1
inputs: {file: {type: string}}
model:
  provider: scripted
  price: {input: 0.25, output: 2.0}
  script:
    - text: "I look at {{ inputs.file }}."
      tool_calls: [{name: search, arguments: {query: main}}]
      usage: {input: 900, output: 80}
    - {text: "{{ inputs.file }} is fine.", usage: {input: 1400, output: 40}}
prompt: "Review {{ inputs.file }}."
tools: [{python: "./tools.py:search"}]
expect: [{contains: fine}]
"""

TRIAGE = """\
version: 1
description: Sort an issue and plan the fix.
inputs: {issue: {type: string, default: The parser hangs on 漢字 and 🙂.}}
model:
  provider: scripted
  price: {input: 0.25, output: 2.0, cache_read: 0.025}
  retry: {attempts: 3, max_delay: 0}
  script:
    - {error: Overloaded, status: 529}
    - thinking: These are independent, so I ask for all at once.
      text: I look at the code, the tests and the page.
      deltas: 3
      tool_calls:
        - {name: search, arguments: {query: parse, wait: 0.5}}
        - {name: search, arguments: {query: lex, wait: 0.25}}
        - {name: read, arguments: {path: parser.py}}
        - {name: broken, arguments: {why: nothing.py}}
        - {name: look, arguments: {at: the page}}
      usage: {input: 1200, output: 310}
    - text: Now I clean up.
      tool_calls: [{name: shell, arguments: {command: rm -rf build}}]
      usage: {input: 200, output: 120, cache_read: 1400}
    - {text: '{"label": "bug", "files": ["a.py", "b.py", "c.py"]}', usage: {input: 300, output: 90}}
    - {text: "Nothing else.", usage: {input: 300, output: 90}}
    - {text: "It hangs on wide letters.", usage: {input: 320, output: 12}}
system_prompt: You sort issues.
prompt: "{{ inputs.issue }}"
tools:
  - {python: "./tools.py:search"}
  - {python: "./tools.py:read"}
  - {python: "./tools.py:broken"}
  - {python: "./tools.py:look"}
  - shell
steering: {messages: [{after_turn: 2, text: Answer as JSON.}]}
hooks:
  before_tool_call:
    - {deny: {tool: shell, when: "'rm ' in args.command", reason: No deleting here.}}
follow_ups:
  messages: [{text: Anything else?}]
  tasks:
    - {id: summary, prompt: In one sentence.}
    - {id: never, prompt: Never., when: "false"}
    - id: review
      agent: ./reviewer.yaml
      inputs: {file: "{{ item }}"}
      for_each: tasks.main.output.files
output: {schema: {type: object, required: [label]}}
expect: [{contains: no such words}, {tool_called: {name: look}}]
"""


@pytest.fixture(scope="session")
def triage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `triage.yaml` and its `log.jsonl`: parallel calls, hooks, tasks, agents."""
    folder = tmp_path_factory.mktemp("triage")
    for name, text in (
        ("tools.py", TOOLS),
        ("reviewer.yaml", REVIEWER),
        ("triage.yaml", TRIAGE),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    done = run_in(folder, "run", "triage.yaml", "--log", "log.jsonl", "--quiet")
    assert done.returncode == 1, done.stderr
    return folder


def run_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PI_RUN_")}
    return subprocess.run(
        [sys.executable, "-m", "runner", *arguments],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.fixture(scope="session")
def pi_run(triage: Path) -> PiRun:
    """Runs the command in that folder."""
    return lambda *arguments: run_in(triage, *arguments)


@pytest.fixture(scope="session")
def report_file(triage: Path, pi_run: PiRun) -> Path:
    """The page of the run."""
    done = pi_run("show", "log.jsonl", "--html", "report.html")
    assert done.returncode == 0, done.stderr
    return triage / "report.html"


class Watch:
    """Takes note of what goes wrong in a page, and of what it asks of a network."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def error(self, error: Error) -> None:
        self.faults.append(f"{error}\n{error.stack}")

    def request(self, request: Request) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.faults.append(f"asks for {request.url}")

    def over(self, page: Page) -> None:
        page.on("console", self.console)
        page.on("pageerror", self.error)
        page.on("request", self.request)


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a page's file, by default in the light; nothing may fail in it."""
    watch = Watch()
    contexts = []

    # By default high enough for all of a small run: what is far from the window isn't built.
    def open_page(
        path: Path, *, width: int = 1280, height: int = 1600, scheme: Scheme = "light"
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5_000)
        watch.over(page)
        page.goto(path.as_uri())
        page.wait_for_selector("[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert watch.faults == []


@pytest.fixture
def report(open_page: Open, report_file: Path) -> Page:
    """The page of the run, open."""
    return open_page(report_file)


@pytest.fixture(scope="session")
def press() -> Callable[..., None]:
    """Presses keys, one after the other, and lets the page draw what comes of each."""

    def press(page: Page, *keys: str) -> None:
        for key in keys:
            page.keyboard.press(key)
            page.evaluate(DRAWN)

    return press
