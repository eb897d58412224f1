"""``--model`` asks another model, which gets nothing that was meant for the one of the spec."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]

SPEC = """\
version: 1
model:
  provider: openai
  id: gpt-5-mini
  api_key: {env: OPENAI_API_KEY}
  options: {service_tier: flex}
  retry: {attempts: 1}
prompt: Go.
"""


class Server(ThreadingHTTPServer):
    """Refuses all requests, and keeps what they were."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Refusal)
        self.seen: list[tuple[str, str, bytes]] = []


class Refusal(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, str(self.headers), body))
        self.send_response(400)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", "the-key-of-openai")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-key-of-anthropic")
    monkeypatch.setenv("GEMINI_API_KEY", "the-key-of-google")
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("first", ["--model", "--set"])
@pytest.mark.parametrize(
    ("model", "key"), [("anthropic/x", "ANTHROPIC_API_KEY"), ("google/x", "GEMINI_API_KEY")]
)
def test_another_provider_gets_its_own_key(
    pi_run: PiRun, server: Server, model: str, key: str, first: str
) -> None:
    Path("spec.yaml").write_text(SPEC, encoding="utf-8")
    own = ["--set", f"model.api_key={{env: {key}}}"]
    address = [*own, "--set", f"model.base_url=http://127.0.0.1:{server.server_port}"]
    provider, name = model.split("/")
    words = {
        "--model": [*address, "--model", model],
        "--set": [*address, "--set", f"model.provider={provider}", "--set", f"model.id={name}"],
    }[first]
    assert pi_run("spec.yaml", "--log", "none", *words).returncode == 3
    [(_, headers, body)] = server.seen
    assert f"the-key-of-{provider}" in headers
    assert "the-key-of-openai" not in headers
    assert b"service_tier" not in body


def test_another_provider_is_not_asked_where_the_spec_s_own_is(
    pi_run: PiRun, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    text = SPEC.replace("api_key", f"base_url: http://127.0.0.1:{server.server_port}\n  api_key")
    Path("spec.yaml").write_text(text, encoding="utf-8")
    done = pi_run("spec.yaml", "--log", "none", "--model", "anthropic/x")
    assert (done.returncode, "ANTHROPIC_API_KEY" in done.stderr) == (2, True)
    assert server.seen == []


def test_another_model_of_the_same_provider_keeps_what_is_said_of_it(
    pi_run: PiRun, server: Server
) -> None:
    text = SPEC.replace("api_key", f"base_url: http://127.0.0.1:{server.server_port}\n  api_key")
    Path("spec.yaml").write_text(text, encoding="utf-8")
    assert pi_run("spec.yaml", "--log", "none", "--model", "openai/gpt-5").returncode == 3
    [(_, headers, body)] = server.seen
    assert "the-key-of-openai" in headers
    assert b'"service_tier":"flex"' in body
    assert b'"gpt-5"' in body
