"""What a spec needs and whether it is there, and whether two runs of it are the same."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runner.api.build import Builder
from runner.api.live import Live
from runner.api.options import Control, RunOptions, RunResult
from runner.api.prepared import prepare
from runner.api.runs import run
from runner.api.static import changes_of
from runner.error import PiRunError, TemplateError, UsageError, describe
from runner.log.redact import LogRedactor
from runner.process import program_path
from runner.python_file import load_callable
from runner.spec.decode import to_json
from runner.spec.load import load
from runner.spec.loaded import Loaded
from runner.spec.model.map import Map
from runner.spec.model.provider import ModelChoice
from runner.spec.model.tool import McpServer
from runner.spec.node import join
from runner.spec.template import Template, is_plain

CONNECT_SECONDS = 5.0
"""How long a server may take to accept a connection."""
_PORTS = {"http": 80, "https": 443}


@dataclass(slots=True, frozen=True)
class Need:
    """Something outside of a spec that its runs need."""

    kind: str
    """``environment``, ``key``, ``command`` or ``server``."""
    name: str
    where: str
    """Where the spec names it, ``FILE:LINE:COLUMN: PATH``."""
    problem: str | None
    """What is wrong with it, and what would be right. None: it is there."""


def needs(path: str, options: RunOptions) -> list[Need]:
    """What a spec and all that it uses need, each once, looked for now. Nothing is run.

    Raises:
        SpecError: with all that is wrong with the spec.
        UsageError: if there is no such file, or an option is wrong.
    """
    top = load(path, sets=changes_of(options))
    found: dict[tuple[str, str], Need] = {}
    for loaded in top.everything():
        for need in _Search(loaded, options, is_top=loaded is top).run():
            before = found.get((need.kind, need.name))
            if before is None or before.problem is None:
                found[need.kind, need.name] = need
    return list(found.values())


async def run_into(
    path: str, options: RunOptions, log: Path, control: Control | None = None
) -> RunResult:
    """Run a spec with its log in a place of its own.

    Raises:
        SpecError: with all that is wrong with the spec; nothing was run.
        UsageError: if it can't be run like that; nothing was run.
    """
    return await run(prepare(path, replace(options, log=str(log))), control=control)


class _Search:
    """Looks for all that one spec needs."""

    def __init__(self, loaded: Loaded, options: RunOptions, *, is_top: bool) -> None:
        self._loaded = loaded
        self._environ = options.environ
        self._options = options
        self._is_top = is_top

    def run(self) -> Iterator[Need]:
        for use in self._loaded.environment:
            if use.path.endswith(".api_key.env"):
                continue  # its model's key says more
            there = use.name in self._environ or use.default is not None
            problem = None if there else "is not set; set it, or use --env-file"
            yield self._need("environment", use.name, use.path, problem)
        for path, part in _parts(self._loaded.spec, ""):
            if isinstance(part, ModelChoice):
                yield from self._model(path, part)
            if isinstance(part, McpServer) and part.url is not None:
                at = join(path, "url")
                url = self._rendered(at, part.url)
                if url is not None:
                    yield self._need("server", url, at, _unreachable(url))
            command = getattr(part, "command", None)
            if isinstance(command, list) and command:
                yield from self._command(join(path, "command"), command[0])

    def _need(self, kind: str, name: str, path: str, problem: str | None) -> Need:
        return Need(kind, name, self._loaded.where(path), problem)

    def _model(self, path: str, choice: ModelChoice) -> Iterator[Need]:
        url = None
        if choice.base_url is not None:
            at = join(path, "base_url")
            url = self._rendered(at, choice.base_url)
            if url is not None:
                yield self._need("server", url, at, _unreachable(url))
        yield from self._key(path, choice, url)

    def _key(self, path: str, choice: ModelChoice, url: str | None) -> Iterator[Need]:
        from runner.providers import keys

        at = join(path, "api_key")
        if choice.api_key is None:
            unknown = choice.base_url is not None and url is None
            source = keys.default_resolver(choice.provider, url, self._environ)
            if source is not None and not unknown:
                yield self._need("key", f"of {choice.provider}", path, _fails(source))
            return
        key, folder = choice.api_key, Path(self._loaded.folder_of(at))
        if key.python is not None:
            target = key.python
            problem = _fails(lambda: load_callable(target, folder))
            yield self._need("key", target, at, problem)
        elif key.command is None:  # which is looked for like any other
            config = {k: v for k, v in to_json(key).items() if v is not None}
            source = keys.resolver(config, folder=folder, environ=self._environ)
            yield self._need("key", str(key.env or key.file), at, _fails(source))

    def _command(self, path: str, program: str) -> Iterator[Need]:
        if not is_plain(program):
            return  # which program it is shows in a run
        file = program_path(program, Path(self._loaded.folder_of(path)))
        there = shutil.which(file, path=self._environ.get("PATH")) is not None
        problem = None if there else "is no program on PATH; install it, or name another"
        if not there and file != program:
            problem = "can't be run; it must be there and be executable"
        yield self._need("command", program, path, problem)

    def _rendered(self, path: str, text: str) -> str | None:
        """A text of the spec; None where only a run can tell what it is."""
        if is_plain(text):
            return text
        live = Live(self._environ, Path.cwd(), LogRedactor())
        try:
            inputs: Mapping[str, Any] = {}
            if self._is_top:
                inputs = self._loaded.bind_inputs(self._options.values, self._options.texts)
            names = Builder(live, self._environ, "").names(self._loaded, inputs)
            return Template(text, self._loaded.where(path)).render(names)
        except (TemplateError, UsageError):
            return None


def _parts(value: Any, path: str) -> Iterator[tuple[str, Map]]:
    """All maps of a spec's model, each with its path; not the free JSON in them."""
    if isinstance(value, Map):
        yield path, value
        for name in value.fields:
            yield from _parts(getattr(value, name), join(path, name.rstrip("_")))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _parts(item, join(path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _parts(item, join(path, str(key)))


def _fails(get: Any) -> str | None:
    """Why something can't be had; None where it can."""
    try:
        get()
    except PiRunError as error:
        return describe(error)
    return None


def _unreachable(url: str) -> str | None:
    """Why no connection to a server can be made; None where one can."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError as error:
        return f"is no address: {error}; such as http://127.0.0.1:8080/v1"
    if not host or port is None:
        return "is no address; such as http://127.0.0.1:8080/v1"
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            return None
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or describe(error)
        return f"can't be reached at {host}:{port}: {why}; is it running?"
