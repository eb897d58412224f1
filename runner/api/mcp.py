"""The MCP servers of a run: made as its specs name them, started together, ended with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.api.grouped import recorded_tools, recorded_unavailable
from runner.api.tooling import Names, options_of
from runner.api.value import values_of
from runner.engine.contract import Tool
from runner.engine.plan import Unavailable
from runner.error import PiRunError, RunError, UsageError, describe
from runner.json_text import line
from runner.spec.decode import to_json
from runner.spec.loaded import Loaded
from runner.spec.model.tool import HeaderSecret, McpServer, McpTools
from runner.spec.template import Template

if TYPE_CHECKING:
    from runner.api.live import Live
    from runner.api.options import Control
    from runner.toolkit.mcp.listing import Listed
    from runner.toolkit.mcp.server import McpServer as Server
    from runner.toolkit.mcp.server import Peer

INSTALL = "the MCP SDK is not installed; do: pip install 'pi-run[mcp]'"


@dataclass(slots=True)
class _Known:
    """A server that a spec names."""

    server: Server
    loaded: Loaded
    path: str
    entry: McpTools
    problem: str | None = None
    """Why it did not start."""
    started: bool = False


@dataclass(slots=True)
class Servers:
    """All servers of a run, each started once for all agents that use it."""

    live: Live
    redact: Callable[[str], str]
    """Takes secrets out of a text."""
    known: dict[tuple[str, ...], _Known] = field(default_factory=dict)
    """By the spec and the place in it that names each; the same spec may be loaded twice."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """The plan of a log: what its tools were is what they are, where a server isn't started."""

    def of(self, loaded: Loaded, path: str, entry: McpTools, names: Names) -> _Known:
        """The server that a place in a spec names; it need not be started."""
        key = loaded.folder, loaded.name, path, line(to_json(entry))
        if key not in self.known:
            from runner.toolkit.mcp.server import McpServer as Server
            from runner.toolkit.mcp.server import ServerOptions

            said = entry.mcp
            options = ServerOptions(
                said.name,
                self.live.workspace,
                said.start_timeout,
                said.include,
                said.exclude,
            )
            server = Server(options, _connection(self.live, loaded, path, said, names))
            self.known[key] = _Known(server, loaded, path, entry)
        return self.known[key]

    async def start(self) -> None:
        """Start all that are known and do not run, at once."""
        waiting = [one for one in self.known.values() if not one.started]
        await asyncio.gather(*map(_start, waiting))

    def unavailable(self) -> list[Unavailable]:
        """What could not be had, of all that were to be started."""
        if not any(one.started or one.problem for one in self.known.values()):
            return recorded_unavailable(self.recorded.get("resolved", {}))
        found = []
        for one in self.known.values():
            name = one.entry.mcp.name
            if one.problem is not None:
                found.append(Unavailable(name, one.problem, one.entry.mcp.required))
            for tool, reason in one.server.listing.unusable:
                found.append(Unavailable(f"{name}: {tool}"[:200], reason))
        return found

    def tools(
        self, loaded: Loaded, path: str, entry: McpTools, names: Names, taken: Collection[str]
    ) -> list[Tool]:
        """The tools of a server that runs, or that it had in the log; of any other none."""
        from runner.toolkit.mcp.listing import Listed

        one = self.of(loaded, path, entry, names)
        if not one.started:
            recorded = recorded_tools(self.recorded, entry) if one.problem is None else ()
            return [
                self._tool(one, tool["name"], Listed(own, tool["description"], tool["parameters"]))
                for tool, own in recorded
            ]
        from runner.toolkit.mcp.names import legal_names

        offered = [*one.server.listing.tools, *_offers(entry.mcp)]
        legal = legal_names(entry.mcp.name, [listed.name for listed in offered], taken)
        return [self._tool(one, legal[listed.name], listed) for listed in offered]

    def recorded_tool(
        self, loaded: Loaded, path: str, entry: McpTools, names: Names, name: str, listed: Listed
    ) -> Tool:
        """A tool as a log has it; its server is started when it is called."""
        return self._tool(self.of(loaded, path, entry, names), name, listed)

    def _tool(self, one: _Known, name: str, listed: Listed) -> Tool:
        from runner.api.tooling import held
        from runner.toolkit.mcp.tool import mcp_tool

        options = options_of(one.entry)
        tool = mcp_tool(one.server, listed, name, **options, label=listed.name)
        return held(self.live, one.loaded, tool, one.entry)

    async def close(self) -> None:
        """End all."""
        await asyncio.gather(*(one.server.close() for one in self.known.values()))


async def _start(one: _Known) -> None:
    try:
        await one.server.start()
    except PiRunError as error:
        one.problem = describe(error)
    else:
        one.started = True


async def start_servers(servers: Servers, control: Control | None = None) -> None:
    """Start all servers; an abort of the run that is to come ends that."""
    if not servers.known:
        return
    starting = asyncio.ensure_future(servers.start())
    loop = asyncio.get_running_loop()

    def stop() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(starting.cancel)

    if control is not None:
        control.on_abort.append(stop)
    try:
        await asyncio.wait({starting})
    finally:
        starting.cancel()
    if not starting.cancelled():
        starting.result()


def needed(servers: Servers) -> None:
    """Hold that all servers run that have to.

    Raises:
        RunError: where one does not.
    """
    for one in servers.unavailable():
        if one.needed:
            raise RunError(servers.redact(one.reason))


# --- how a server is reached ----------------------------------------------------------------------


def _connection(
    live: Live, loaded: Loaded, path: str, said: McpServer, names: Names
) -> Callable[[], Awaitable[Peer]]:
    at = f"{path}.mcp"

    def text(key: str, template: str) -> str:
        return Template(template, loaded.where(f"{at}.{key}")).render(names)

    def values(key: str, given: Mapping[str, str | HeaderSecret]) -> Awaitable[dict[str, str]]:
        return values_of(live, loaded, f"{at}.{key}", given)(names)

    async def child() -> Peer:
        from runner.process import program_path
        from runner.toolkit.mcp.child import ServerProcess
        from runner.toolkit.mcp.stdio import StdioPeer

        argv = [text("command", item) for item in said.command or ()]
        argv[0] = program_path(argv[0], Path(loaded.folder_of(f"{at}.command")))
        cwd = live.workspace
        if said.cwd is not None:
            cwd = Path(loaded.resolve(f"{at}.cwd", text("cwd", said.cwd)))
        given = await values("env", said.env)
        env = live.environment(loaded.folder, bare=True) | given
        return StdioPeer(ServerProcess(argv, cwd, env))

    async def remote() -> Peer:
        from runner.toolkit.mcp.http import HttpPeer

        url = text("url", said.url or "").strip()
        if not url.startswith(("http://", "https://")):
            raise UsageError(f"{url!r:.200} is no address; such as http://127.0.0.1:8000/mcp")
        return HttpPeer(url, await values("headers", said.headers))

    return child if said.command is not None else remote


def _offers(said: McpServer) -> Sequence[Listed]:
    from runner.toolkit.mcp.tool import prompt_listed, resource_listed

    return [
        *(resource_listed() if said.resources else ()),
        *(prompt_listed() if said.prompts else ()),
    ]


# --- what can be known without a server -----------------------------------------------------------


def problems(entry: McpTools) -> Iterator[tuple[str, str]]:
    """What is wrong with an entry as it is written: keys of the entry, and what is to be said."""
    from importlib.util import find_spec

    said = entry.mcp
    if find_spec("mcp") is None:
        yield "", INSTALL
    elsewhere = {"env": said.env, "cwd": said.cwd} if said.command is None else {}
    if said.url is None:
        elsewhere = {"headers": said.headers}
    for key, value in elsewhere.items():
        if value:
            kind = "a server at a URL" if said.command is None else "a program"
            yield f".{key}", f"{kind} has no {key}"
