from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import threading
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runner.engine.answer import Answer
from runner.engine.contract import ModelRequest, Provider, Stop, ToolSchema
from runner.engine.message import Message, no_usage
from runner.error import ProviderError
from runner.providers import create
from runner.providers.settings import ModelSettings

KEY = "wire-key-4711-never-shown"
PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai-responses",
    "anthropic": "anthropic",
    "google": "google",
}

WIRE = Path(__file__).resolve().parents[3] / "shared" / "wire"


class Quirks:
    """The server of recorded quirks, in a thread of its own."""

    def __init__(self, module: Any, server: Any, port: int) -> None:
        self.module = module
        self.server = server
        self.port = port

    def url(self, case_id: str) -> str:
        return f"http://127.0.0.1:{self.port}/{case_id}"

    def bodies(self, case_id: str) -> list[Any]:
        return [request["json"] for request in self.server.requests[case_id]]

    async def differences(self, case: dict[str, Any], provider: str) -> list[str]:
        """In what a model turn, with retries that don't wait, is not what a case expects."""
        expect = case["expect"]
        self.server.requests[case["id"]].clear()
        model = create(_settings(case, provider, self.url(case["id"])))
        wanted = expect["outcome"] if isinstance(expect["outcome"], list) else [expect["outcome"]]
        attempts = 1
        while (got := await _turn(model, case, provider)).retryable and attempts < 4:
            attempts += 1
        await model.close()
        outcome = got.outcome if attempts == 1 else f"retry_then_{got.outcome}"
        if case["level"] == "loop":  # the rest of it is the loop's
            wanted = ["tool_use", "stop"]
        elif case["request"].get("abort_after_ms"):
            wanted = ["aborted"]
        found = []
        if outcome not in wanted and not (got.outcome == "error" and "error" in wanted):
            found.append(f"outcome {outcome}: {got.error!r}")
        if got.outcome == "error":
            told = f"{got.error.status or ''} {got.error}" if got.error else ""
            if not re.search(expect.get("error_matches", ""), told):
                found.append(f"error {told!r}")
            if got.error and got.error.kind != expect.get("error_kind", got.error.kind):
                found.append(f"kind {got.error.kind}")
            if len(told) > 310 or KEY in told:
                found.append(f"message {told!r}")
        if (got.outcome != "error" or set(wanted) == {"error"}) and case["level"] == "turn":
            found += got.compared(expect)
        checks = [c for c in expect.get("request_body_checks", []) if not c.get("request")]
        trimmed = {**case, "expect": {"request_body_checks": checks}}
        return found + list(self.module.failed_checks(trimmed, self.bodies(case["id"])))


@dataclass
class Turn:
    """What came of one request."""

    outcome: str
    message: dict[str, Any]
    error: ProviderError | None = None

    @property
    def retryable(self) -> bool:
        return self.error is not None and self.error.retryable

    def compared(self, expect: dict[str, Any]) -> list[str]:
        """How text, thinking, calls and usage differ from what is expected."""
        blocks = self.message["content"]

        def joined(kind: str) -> str:
            return "".join(block["text"] for block in blocks if block["type"] == kind)

        calls = [
            {"name": block["name"], "arguments": block["arguments"]}
            for block in blocks
            if block["type"] == "tool_call"
        ]
        pairs = {
            "text": (joined("text"), expect.get("text", joined("text"))),
            "thinking": (joined("thinking"), expect.get("thinking", joined("thinking"))),
            "calls": (calls, expect.get("tool_calls", calls)),
            "usage": (self.message["usage"], self.message["usage"] | expect.get("usage", {})),
        }
        found = [
            f"{name}: {got!r}, not {want!r}" for name, (got, want) in pairs.items() if got != want
        ]
        if "text_any" in expect and joined("text") not in expect["text_any"]:
            found.append(f"text: {joined('text')!r}")
        return found


def _settings(case: dict[str, Any], provider: str, url: str) -> ModelSettings:
    idle = case["request"].get("idle_timeout_ms", 10_000) / 1000
    return ModelSettings(provider, "m", base_url=url, connect_timeout=5, idle_timeout=idle)


async def _turn(model: Provider, case: dict[str, Any], provider: str) -> Turn:
    """Make one request and put its answer together, as the engine does."""
    calls = SimpleNamespace(call_ids=set(), calls_made=0)
    answer = Answer(provider, "m", calls)
    abort_after = case["request"].get("abort_after_ms", 30_000) / 1000
    try:
        async with (
            asyncio.timeout(abort_after),
            aclosing(cast("Any", model.stream(_request(case, provider)))) as stream,
        ):
            async for event in stream:
                answer.feed(event)
                if type(event) is Stop:
                    break
    except ProviderError as error:
        return Turn("error", cast("Any", answer.so_far()), error)
    except TimeoutError:
        return Turn("aborted", cast("Any", answer.message(None, aborted=True)))
    message = answer.message(None, aborted=False)
    return Turn(message["stop_reason"], cast("Any", message))


def _request(case: dict[str, Any], provider: str) -> ModelRequest:
    request = case["request"]
    return ModelRequest(
        messages=[
            _message(number, item, provider) for number, item in enumerate(request["messages"], 1)
        ],
        system_prompt=request["system"],
        tools=[ToolSchema(t["name"], t["description"], t["parameters"]) for t in request["tools"]],
        model="m",
        api_key=KEY,
        number=0,
    )


def _message(number: int, item: dict[str, Any], provider: str) -> Message:
    """A message of a case's neutral history in the form of a log."""
    text = [{"type": "text", "text": item["text"]}]
    role = "tool_result" if item["role"] == "tool" else item["role"]
    made: dict[str, Any] = {"id": f"m{number}", "role": role, "content": text}
    if role == "tool_result":
        made |= {"tool_call_id": item["id"], "tool_name": item["name"]}
        made["is_error"] = item.get("is_error", False)
    elif role == "assistant":
        calls = [{"type": "tool_call", **call} for call in item["tool_calls"]]
        thinking = [
            {
                "type": "thinking",
                "text": t["text"],
                "signature": t.get("signature", t.get("encrypted")),
            }
            for t in item.get("thinking", ())
        ]
        origin = item.get("from", {})
        made |= {
            "content": thinking + (text if item["text"] or not calls else []) + calls,
            "provider": PROVIDERS[origin["format"]] if origin else provider,
            "model": origin.get("model", "m"),
            "stop_reason": "tool_use" if calls else "stop",
            "usage": no_usage(),
        }
    return cast("Message", made)


def _module() -> Any:
    spec = importlib.util.spec_from_file_location("quirk_server", WIRE / "quirk_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that takes a ``wire_case`` those of its module's ``WIRE_FORMAT``."""
    if "wire_case" not in metafunc.fixturenames:
        return
    if not WIRE.is_dir():
        skip = pytest.mark.skip(reason="the recorded wire quirks are not beside this checkout")
        metafunc.parametrize("wire_case", [pytest.param({}, marks=skip)])
        return
    default = json.loads((WIRE / "default_request.json").read_text("utf-8"))
    cases = {
        name: {**case, "request": default | case.get("request", {})}
        for name, case in _module().load_cases(WIRE / "cases").items()
        if case["format"] == metafunc.module.WIRE_FORMAT
    }
    metafunc.parametrize("wire_case", list(cases.values()), ids=list(cases))


@pytest.fixture(scope="session")
def quirks() -> Iterator[Quirks]:
    module = _module()
    server = module.QuirkServer(module.load_cases(WIRE / "cases"), hold=5)
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    ports: list[int] = []

    async def serve() -> None:
        listener = await server.start(0)
        ports.append(listener.sockets[0].getsockname()[1])
        ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            listener.close()

    def run() -> None:
        asyncio.set_event_loop(loop)
        task.append(loop.create_task(serve()))
        try:
            loop.run_until_complete(task[0])
        except asyncio.CancelledError:
            pass
        finally:
            for other in asyncio.all_tasks(loop):
                other.cancel()
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    task: list[asyncio.Task[None]] = []
    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(10)
    yield Quirks(module, server, ports[0])
    loop.call_soon_threadsafe(task[0].cancel)
    thread.join(10)
