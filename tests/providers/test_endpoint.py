"""Where requests go, which providers there are, and who needs a key."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from runner import providers
from runner.error import ProviderError, UsageError
from runner.providers.clients import is_loopback
from runner.providers.endpoint import endpoint, need_key
from runner.providers.settings import ModelSettings


@pytest.mark.parametrize(
    ("base_url", "path", "url"),
    [
        ("http://h/v1", "/responses", "http://h/v1/responses"),
        ("http://h/v1/", "/responses", "http://h/v1/responses"),
        (" http://h ", "/responses", "http://h/responses"),
        ("http://h/v1/responses", "/responses", "http://h/v1/responses"),
        ("http://h/v1", "/v1/messages", "http://h/v1/messages"),
        ("http://h/x/v1/messages/", "/v1/messages", "http://h/x/v1/messages"),
        ("http://h/v1", "/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1?api-version=2#x", "/responses", "http://h/v1/responses?api-version=2"),
        ("https://[::1]:80/a", "/responses", "https://[::1]:80/a/responses"),
    ],
)
def test_an_address_gets_the_formats_path_once(base_url: str, path: str, url: str) -> None:
    assert endpoint(base_url, path) == url


@pytest.mark.parametrize(
    "base_url", ["", "localhost:8080/v1", "ftp://h/", "http://", "http://[h/", "http://h:x/", "//h"]
)
def test_what_is_no_address_is_told(base_url: str) -> None:
    with pytest.raises(UsageError, match="base_url"):
        endpoint(base_url, "/responses")


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://127.8.0.1", True),
        ("http://LOCALHOST.", True),
        ("http://a.localhost", True),
        ("http://[::1]:5", True),
        ("http://localhost.example", False),
        ("http://10.0.0.1", False),
    ],
)
def test_which_addresses_are_this_machine(url: str, loopback: bool) -> None:
    assert is_loopback(url) is loopback


def test_a_key_is_needed_for_a_public_server_only() -> None:
    public, own = ModelSettings("openai", "m"), ModelSettings("openai", "m", base_url="http://h")
    assert need_key(public, "k") == "k"
    assert need_key(own, None) is None
    with pytest.raises(ProviderError, match="no API key for openai") as caught:
        need_key(public, None)
    assert caught.value.kind == "auth"


def test_every_provider_is_made_under_its_name() -> None:
    for name in providers.names():
        if name != "local":  # it looks for its file at once
            settings = ModelSettings(name, "m", script=[{"text": "x"}])
            assert providers.create(settings).name == name


def test_a_name_that_is_none_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match=r'no provider "opnai".*"openai"'):
        providers.create(ModelSettings("opnai", "m"))


@pytest.mark.parametrize("target", ["runner.providers.openai", "runner.providers.openai:create"])
def test_a_plug_in_names_a_module_or_a_function(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug_in(monkeypatch, target)
    assert "mine" in providers.names()
    assert providers.create(ModelSettings("mine", "m")).name == "mine"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no_such_module_here", "ModuleNotFoundError"),
        ("runner.providers.openai:PUBLIC", "no function"),
    ],
)
def test_a_plug_in_that_can_not_be_loaded_is_named(
    target: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug_in(monkeypatch, target)
    with pytest.raises(UsageError, match=f'"mine".*{target}.*{reason}'):
        providers.create(ModelSettings("mine", "m"))


def plug_in(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    found = EntryPoints([EntryPoint("mine", target, "pi_run.providers")])
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: found)
