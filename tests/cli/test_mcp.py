"""``pi-run mcp``: specs served to real clients of the protocol."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

GREET = """\
version: 1
name: greet
description: Greet someone.
inputs:
  who: {type: string, description: Who is greeted.}
  times: {type: integer, default: 1}
model:
  provider: scripted
  script: [{text: "Hello {{ inputs.who }} {{ inputs.times }}"}]
prompt: Greet {{ inputs.who }}.
"""
LABEL = """\
version: 1
name: label
model: {provider: scripted, script: [{text: '{"label": "bug"}'}]}
output:
  schema: {type: object, properties: {label: {type: string}}, required: [label]}
"""
FAILS = """\
version: 1
name: fails
model: {provider: scripted, script: [{error: no such model, status: 404}]}
prompt: x
"""
SLOW = """\
version: 1
name: slow
model:
  provider: scripted
  script:
    - tool_calls: [{name: wait, arguments: {}}]
    - {text: done}
prompt: x
tools:
  - {name: wait, description: Wait., command: [sh, -c, "touch started; sleep 60"]}
"""

Talk = Callable[[Client], Awaitable[None]]


def write_specs(folder: Path) -> list[str]:
    specs = {"greet": GREET, "label": LABEL, "fails": FAILS, "slow": SLOW}
    for name, text in specs.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    return [f"{name}.yaml" for name in specs]


def talk_to(command: str, arguments: list[str], folder: Path, talk: Talk) -> None:
    """Have a client start the command and talk to it by its stdin and stdout."""
    parameters = StdioServerParameters(
        command=command, args=["mcp", *arguments], env=dict(os.environ), cwd=folder
    )
    with (folder / "stderr").open("w", encoding="utf-8") as errors:
        asyncio.run(_talk(stdio_client(parameters, errors), talk))


async def _talk(transport: AbstractAsyncContextManager[Any], talk: Talk) -> None:
    async with Client(transport) as client:
        await talk(client)


def text_of(result: Any) -> str:
    return "".join(part.text for part in result.content if isinstance(part, TextContent))


def test_client_lists_and_calls_specs(folder: Path, command: str) -> None:
    async def talk(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["greet", "label", "fails", "slow"]
        greet = tools["greet"]
        assert greet.description == "Greet someone."
        assert greet.input_schema["required"] == ["who"]
        assert greet.input_schema["properties"]["times"] == {"type": "integer", "default": 1}
        assert tools["label"].input_schema["required"] == ["prompt"]
        assert tools["label"].output_schema is not None

        result = await client.call_tool("greet", {"who": "Ada", "times": 2})
        assert (text_of(result), result.is_error) == ("Hello Ada 2", False)
        result = await client.call_tool("label", {"prompt": "What is it?"})
        assert result.structured_content == {"label": "bug"}
        assert json.loads(text_of(result)) == {"label": "bug"}

        result = await client.call_tool("fails", {})
        assert result.is_error
        assert text_of(result).startswith("The run ended as error: ")
        assert "no such model" in text_of(result)
        result = await client.call_tool("greet", {"whom": "Ada"})
        assert result.is_error
        assert "who" in text_of(result)
        result = await client.call_tool("gret", {})
        assert text_of(result) == 'there is no tool "gret"; did you mean "greet"?'

    talk_to(command, write_specs(folder), folder, talk)
    assert len(list((folder / ".pi-run" / "logs").glob("greet-*.jsonl"))) == 1


def test_runs_at_once_tell_how_far_they_are(folder: Path, command: str) -> None:
    async def talk(client: Client) -> None:
        told: list[tuple[float, str | None]] = []

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, message))

        calls = [client.call_tool("greet", {"who": str(n)}) for n in range(8)]
        results = await asyncio.gather(
            *calls, client.call_tool("greet", {"who": "x"}, progress_callback=tell)
        )
        assert [text_of(each) for each in results[:8]] == [f"Hello {n} 1" for n in range(8)]
        assert told[:1] == [(1, "turn 1")]

    talk_to(command, write_specs(folder), folder, talk)


def test_call_that_is_cancelled_aborts_its_run(folder: Path, command: str) -> None:
    async def talk(client: Client) -> None:
        call = asyncio.ensure_future(client.call_tool("slow", {}))
        await until(lambda: (folder / "started").exists())
        call.cancel()
        await asyncio.wait({call})
        await until(lambda: bool(ends(folder)))
        assert ends(folder) == ["aborted"]
        assert text_of(await client.call_tool("greet", {"who": "Bo"})) == "Hello Bo 1"

    talk_to(command, write_specs(folder), folder, talk)


def test_client_that_goes_away_aborts_what_runs(folder: Path, command: str) -> None:
    async def talk(client: Client) -> None:
        call = asyncio.ensure_future(client.call_tool("slow", {}))
        await until(lambda: (folder / "started").exists())
        call.cancel()

    talk_to(command, write_specs(folder), folder, talk)
    assert ends(folder) == ["aborted"]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


def ends(folder: Path) -> list[str]:
    """How the runs of ``slow`` ended."""
    found = []
    for log in (folder / ".pi-run" / "logs").glob("slow-*.jsonl"):
        last = log.read_text("utf-8").splitlines()[-1:]
        found += [json.loads(line).get("status") for line in last if '"run_end"' in line]
    return found


def test_what_tools_print_is_not_in_the_protocols_way(folder: Path, command: str) -> None:
    (folder / "loud.py").write_text(
        "import os\nprint('at import')\n"
        "def loud() -> str:\n    print('loud')\n    os.system('echo child')\n    return 'ok'\n",
        "utf-8",
    )
    spec = {
        "version": 1,
        "prompt": "x",
        "tools": [{"python": "./loud.py:loud"}],
        "model": {
            "provider": "scripted",
            "script": [{"tool_calls": [{"name": "loud"}]}, {"text": "{{ last.text }}"}],
        },
    }
    (folder / "s.yaml").write_text(json.dumps(spec), "utf-8")

    async def talk(client: Client) -> None:
        assert text_of(await client.call_tool("s", {})) == "ok"

    talk_to(command, ["s.yaml"], folder, talk)
    assert "loud" in (folder / "stderr").read_text("utf-8")


def test_wrong_spec_is_not_served(folder: Path, pi_run: Any) -> None:
    (folder / "bad.yaml").write_text("version: 1\nmodle: {}\n", "utf-8")
    done = pi_run("mcp", "bad.yaml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert 'did you mean "model"?' in done.stderr


def test_two_specs_of_one_name_are_not_served(folder: Path, pi_run: Any) -> None:
    (folder / "a.yaml").write_text(GREET, "utf-8")
    (folder / "b.yaml").write_text(GREET, "utf-8")
    done = pi_run("mcp", "a.yaml", "b.yaml")
    assert done.returncode == 2
    assert 'there is a tool "greet" already, a.yaml' in done.stderr


def test_garbage_from_a_client_ends_nothing(folder: Path, command: str) -> None:
    write_specs(folder)
    lines = ["", "no json", "[]", '{"jsonrpc": "2.0"}', "[" * 100, "\x00\xff"]
    lines.append('{"jsonrpc": "2.0", "id": 7, "method": "tools/list"}')
    process = subprocess.Popen(
        [command, "mcp", "greet.yaml"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n".join(lines).encode("latin-1") + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 7
    out, errors = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, b"")
    assert b"Traceback" not in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_it_and_its_runs(folder: Path, command: str, number: int) -> None:
    process = subprocess.Popen(
        [command, "mcp", *write_specs(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    for message in (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow"}},
    ):
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    asyncio.run(until(lambda: (folder / "started").exists()))
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert ends(folder) == ["aborted"]


# --- by HTTP --------------------------------------------------------------------------------------


@contextmanager
def serving(command: str, *arguments: str, **env: str) -> Iterator[str]:
    """The command while it serves by HTTP; gives the URL."""
    process = subprocess.Popen(
        [command, "mcp", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line
        late = time.monotonic() + 20
        while time.monotonic() < late:
            try:
                httpx.get(found[0], timeout=5)
                break
            except httpx.ConnectError:
                time.sleep(0.02)
        yield found[0]
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 143
        assert out == ""


def test_client_calls_specs_by_http(folder: Path, command: str) -> None:
    async def talk(client: Client) -> None:
        told: list[str | None] = []

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            told.append(message)

        result = await client.call_tool("greet", {"who": "Ada"}, progress_callback=tell)
        assert text_of(result) == "Hello Ada 1"
        assert told == ["turn 1"]
        call = asyncio.ensure_future(client.call_tool("slow", {}))
        await until(lambda: (folder / "started").exists())
        call.cancel()
        await asyncio.wait({call})
        await until(lambda: bool(ends(folder)))

    with serving(command, *write_specs(folder), "--http", "127.0.0.1:0") as url:
        asyncio.run(_talk(streamable_http_client(url), talk))
    assert ends(folder) == ["aborted"]


PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def test_pages_of_others_and_those_without_the_token_are_refused(
    folder: Path, command: str
) -> None:
    write_specs(folder)
    arguments = ("greet.yaml", "--http", "127.0.0.1:0")
    with serving(command, *arguments, PI_RUN_TOKEN="s3cret-token") as url:
        mine = {**ACCEPT, "Authorization": "Bearer s3cret-token"}
        for headers, status in (
            (ACCEPT, 401),
            ({**mine, "Authorization": "Bearer other"}, 401),
            ({**mine, "Origin": "http://evil.example"}, 403),
            ({**mine, "Host": "evil.example"}, 421),
        ):
            assert httpx.post(url, json=PING, headers=headers).status_code == status
        assert httpx.post(url, json=PING, headers=mine).status_code not in (401, 403, 421)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("0.0.0.0:0", "others can reach that address, so a token is needed"),
        ("nowhere", "write HOST:PORT"),
        ("127.0.0.1:x", "write HOST:PORT"),
        ("127.0.0.1:99999", "write HOST:PORT"),
    ],
)
def test_address_that_is_not_listened_on(folder: Path, pi_run: Any, address: str, why: str) -> None:
    write_specs(folder)
    done = pi_run("mcp", "greet.yaml", "--http", address)
    assert done.returncode == 2
    assert why in done.stderr


def test_address_that_is_taken_is_told(folder: Path, pi_run: Any) -> None:
    write_specs(folder)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = pi_run("mcp", "greet.yaml", "--http", address)
    assert done.returncode == 2
    assert "can't listen there: address already in use" in done.stderr


def test_spec_calls_a_spec_that_is_served(folder: Path, command: str, pi_run: Any) -> None:
    write_specs(folder)
    outer = {
        "version": 1,
        "prompt": "x",
        "tools": [{"mcp": {"name": "pi", "command": [command, "mcp", "greet.yaml"]}}],
        "model": {
            "provider": "scripted",
            "script": [
                {"tool_calls": [{"name": "pi_greet", "arguments": {"who": "Eve"}}]},
                {"text": "{{ last.text }}"},
            ],
        },
    }
    (folder / "outer.yaml").write_text(json.dumps(outer), "utf-8")
    done = pi_run("outer.yaml", "--log", "a.jsonl")
    assert (done.returncode, done.stdout) == (0, "Hello Eve 1\n"), done.stderr
    assert pi_run("replay", "a.jsonl").returncode == 0
