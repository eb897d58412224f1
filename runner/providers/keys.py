"""API keys: where a spec says they are, read anew before every request.

A key is a secret: what goes wrong is told without any part of what a file, a command or a function
gave, for that may be the key.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runner.error import ProviderError

KeySource = Callable[[], str | Awaitable[str | None] | None]
"""Gives the key of one request, or None where there is none; may raise `ProviderError`."""

COMMAND_SECONDS = 10.0
"""How long a command has to print a key."""

_PUBLIC: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "openai": ("api.openai.com", ("OPENAI_API_KEY",)),
    "openai-responses": ("api.openai.com", ("OPENAI_API_KEY",)),
    "anthropic": ("api.anthropic.com", ("ANTHROPIC_API_KEY",)),
    "google": ("generativelanguage.googleapis.com", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
}


def default_names(provider: str, base_url: str | None) -> tuple[str, ...]:
    """The environment names that hold a key where a spec names none; the first that is set counts.

    Only for the provider's public address: a key must not be sent to a server for which it was
    not meant.
    """
    host, names = _PUBLIC.get(provider, ("", ()))
    if base_url is None or urlsplit(base_url).hostname == host:
        return names
    return ()


def all_names() -> Iterator[str]:
    """The environment names that hold a key of any provider, whichever a spec uses."""
    for _, names in _PUBLIC.values():
        yield from names


def default_resolver(
    provider: str, base_url: str | None, environ: Mapping[str, str] = os.environ
) -> KeySource | None:
    """The source of the key for a model whose spec names none; None where it needs none."""
    names = default_names(provider, base_url)
    if not names:
        return None

    def from_environment() -> str:
        for name in names:
            if key := environ.get(name, "").strip():
                return key
        raise _fault(f"{provider} needs a key; set {names[0]}, or give the model an `api_key`")

    return from_environment


def resolver(
    config: Mapping[str, Any],
    *,
    folder: Path,
    workspace: Path | None = None,
    function: Callable[[], object] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> KeySource:
    """The source that a spec's ``api_key`` describes.

    Args:
        config: ``{env: NAME, default: TEXT}``, ``{file: PATH}``, ``{command: [PROGRAM, …]}`` or
            ``{python: TARGET}``.
        folder: What a relative path, or a program that begins with ``./`` or ``../``, is relative
            to.
        workspace: Where a command runs; the folder, if it isn't given.
        function: What ``python`` names, loaded. Gives the key, now or when awaited.
        environ: Where ``env`` looks.
    """
    if function is not None:
        return _from_function(function, str(config.get("python", function)))
    if "env" in config:
        return _from_environment(config["env"], config.get("default"), environ)
    if "file" in config:
        return _from_file(folder / Path(config["file"]).expanduser())
    if "command" in config:
        return _from_command(config["command"], folder, workspace or folder, environ)
    raise _fault("`api_key` has none of env, file, command and python")


def _from_environment(name: str, default: str | None, environ: Mapping[str, str]) -> KeySource:
    def read() -> str | None:
        if key := environ.get(name, "").strip():
            return key
        if default is None:
            raise _fault(f"the environment variable {name} is not set; it is to have the key")
        return default.strip() or None

    return read


def _from_file(path: Path) -> KeySource:
    def read() -> str:
        try:
            key = path.read_text("utf-8-sig").strip()
        except UnicodeDecodeError:
            raise _fault(f"the key's file {path} is not UTF-8 text") from None
        except OSError as error:
            raise _fault(f"the key's file {path} can't be read: {error.strerror}") from None
        if not key:
            raise _fault(f"the key's file {path} is empty")
        return key

    return read


def _from_command(
    command: Sequence[str], folder: Path, workspace: Path, environ: Mapping[str, str]
) -> KeySource:
    program = command[0]
    if program.startswith(("./", "../")):
        program = str(folder / program)

    async def run() -> str:
        # Imported when a program is run: most keys need none.
        from runner import process

        who = f"{command[0]}, which is to print the key,"
        try:
            done = await process.run(
                [program, *command[1:]], cwd=workspace, env=environ, time_limit=COMMAND_SECONDS
            )
        except process.StartError as error:
            raise _fault(f"{who} can't be started: {error.reason}") from None
        if done.timed_out:
            raise _fault(f"{command[0]} printed no key within {COMMAND_SECONDS:g} s")
        if done.exit_code:
            raise _fault(f"{who} ended with {done.exit_code}")
        key = done.stdout.strip()
        if "\ufffd" in key:
            raise _fault(f"what {command[0]} printed for a key is not UTF-8 text")
        if not key:
            raise _fault(f"{who} printed nothing")
        return key

    return run


def _from_function(function: Callable[[], object], target: str) -> KeySource:
    async def call() -> str | None:
        from runner.apart import await_apart
        from runner.thread import call_in_thread

        try:
            # Such a function may well ask a server, and must not hold up the other runs.
            key = await call_in_thread(function, target)
            if isinstance(key, Awaitable):
                awaitable = key
                key = await await_apart(lambda: awaitable)
        except Exception as error:
            raise _fault(f"{target}, which is to give the key, raised {_name(error)}") from None
        if key is not None and not isinstance(key, str):
            raise _fault(f"{target}, which is to give the key, gave {_name(key)}, not a text")
        return key.strip() if key else None

    return call


def _name(value: object) -> str:
    return type(value).__name__


def _fault(message: str) -> ProviderError:
    return ProviderError(message, "auth")
