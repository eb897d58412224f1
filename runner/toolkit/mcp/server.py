"""One MCP server of a run: started in a task of its own, called from any, started again once.

A session of the SDK has to be left by the task that entered it, so all of its life is in one task;
calls are made by whoever makes them, which the session allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast

from runner.error import PiRunError, RunError, describe
from runner.toolkit.mcp.listing import Listing, Page, all_pages, listing_of

_T = TypeVar("_T")

_CLOSE_SECONDS = 4.0
"""Seconds that a server has to be left in order."""
_KILL_SECONDS = 1.0
_LOGGERS = ("mcp", "client")
"""Those of the SDK. What they say would go to stderr where nobody set logging up."""


class McpError(RunError):
    """A server did not start, is gone, or answered with an error."""


class Peer(Protocol):
    """How a server is reached."""

    ended: asyncio.Event
    """Set when it is known to be gone."""

    def last_words(self) -> str:
        """What there is to say about its end."""

    def streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        """The SDK's streams of messages, for as long as it is needed."""

    def kill(self) -> None:
        """End it now, where it is ours to end."""


@dataclass(slots=True)
class ServerOptions:
    """What a server is."""

    name: str
    """Its name in the spec."""
    workspace: Path
    """The one root that it is told of."""
    start_timeout: float = 30.0
    """Seconds that it has to start and to list what it offers."""
    include: Sequence[str] | None = None
    exclude: Sequence[str] = ()


class McpServer:
    """A server, from its first use to the end of the run.

    Args:
        options: What it is.
        connect: Starts it, or makes ready to reach it; may raise ``PiRunError``.
    """

    def __init__(self, options: ServerOptions, connect: Callable[[], Awaitable[Peer]]) -> None:
        self.options = options
        self.listing = Listing()
        """What it offered when it was first started."""
        self._connect = connect
        self._client: Any = None
        self._peer: Peer | None = None
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._starting = asyncio.Lock()
        self._starts_left = 2

    async def start(self) -> None:
        """Start it, if it isn't running.

        Raises:
            McpError: where it does not start, or has died twice.
        """
        async with self._starting:
            if self._client is not None:
                return
            if self._starts_left == 0:
                raise self._error("it died twice, and is not started again")
            await self._stop()
            first = self._starts_left == 2
            self._starts_left -= 1
            listing = await self._start()
            if first:
                self.listing = listing

    async def _start(self) -> Listing:
        opened: asyncio.Future[Listing] = asyncio.get_running_loop().create_future()
        # It may fail when nobody waits for it any more.
        opened.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._live(opened), name=f"mcp {self.options.name}")
        try:
            async with asyncio.timeout(self.options.start_timeout):
                return await asyncio.shield(opened)
        except TimeoutError:
            late = f"it did not start within {self.options.start_timeout:g} s"
            error = self._error(late)
            await self._stop(patient=False)
            raise error from None
        except asyncio.CancelledError:
            await self._stop(patient=False)
            raise

    async def _live(self, opened: asyncio.Future[Listing]) -> None:
        """All of a session's life: enter it, list, wait for its end, leave it."""
        try:
            peer = self._peer = await self._connect()
            async with self._session(peer) as client:
                listing = await self._list(client)
                self._client = client
                if not opened.done():
                    opened.set_result(listing)
                await _first_of(self._leave.wait(), peer.ended.wait())
                self._client = None
        except Exception as error:
            if not opened.done():
                opened.set_exception(await self._start_error(_innermost(error)))
        finally:
            self._client = None
            if self._peer is not None:
                self._peer.kill()
            if not opened.done():
                opened.set_exception(self._error("it was stopped"))

    @contextlib.asynccontextmanager
    async def _session(self, peer: Peer) -> AsyncIterator[Any]:
        async with contextlib.AsyncExitStack() as stack:
            # It starts while the SDK is imported, which takes about as long.
            sdk = await asyncio.to_thread(_sdk)
            client = sdk.make_client(peer.streams(), self._roots)
            await stack.enter_async_context(client)
            # It would match the server's patterns against the server's texts with no bound;
            # `runner.toolkit.mcp.tool` does it with one.
            client.session.validate_tool_result = _unchecked
            yield client

    async def _list(self, client: Any) -> Listing:
        capabilities = client.server_capabilities
        if capabilities.tools is None:
            return listing_of([], self.options.include, self.options.exclude)
        from mcp_types import PaginatedRequestParams

        async def page(cursor: str | None) -> Page:
            params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            found = await client.session.list_tools(params=params)
            return found.tools, found.next_cursor

        tools = await all_pages(page, "tools")
        return listing_of(tools, self.options.include, self.options.exclude)

    async def _roots(self, _context: Any) -> Any:
        """The workspace, as the one root."""
        from mcp_types import ListRootsResult, Root

        root = Root(uri=cast("Any", self.options.workspace.as_uri()), name="workspace")
        return ListRootsResult(roots=[root])

    # --- calls ------------------------------------------------------------------------------------

    async def ask(self, question: Callable[[Any], Awaitable[_T]]) -> _T:
        """Have something asked of its client; started first, or once again, where it is gone.

        Raises:
            McpError: where it can't be asked, or answers with an error.
        """
        from runner.toolkit.mcp.sdk import ClosedError, InvalidAnswer, answered

        await self.start()
        try:
            return await answered(question(self._client))
        except ClosedError:
            self._client = None
            if self._peer is not None:
                # It is gone in a moment, and then it is known how.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await self._peer.ended.wait()
            text = "it went away in the middle of this; whether it was done is unknown"
            raise self._error(text) from None
        except InvalidAnswer as error:
            raise self._error(f"it answered with what is no MCP: {error}") from None

    # --- the end ----------------------------------------------------------------------------------

    async def close(self) -> None:
        """Leave it, and end it where it is a child. It can be started no more."""
        self._starts_left = 0
        await self._stop()

    async def _stop(self, *, patient: bool = True) -> None:
        self._client = None
        task, self._task = self._task, None
        if task is None:
            return
        self._leave.set()
        if not patient or not await _ends(task, _CLOSE_SECONDS):
            if self._peer is not None:
                self._peer.kill()
            task.cancel()
            await _ends(task, _KILL_SECONDS)
        if self._peer is not None:
            self._peer.kill()

    async def _start_error(self, error: BaseException) -> McpError:
        if isinstance(error, PiRunError):
            return McpError(f"the MCP server {self.options.name}: {describe(error)}")
        return self._error((await asyncio.to_thread(_sdk)).told(error))

    def _error(self, what: str) -> McpError:
        words = self._peer.last_words() if self._peer is not None else ""
        text = f"the MCP server {self.options.name}: {what}"
        return McpError(f"{text}; {words}" if words and words not in text else text)


def _sdk() -> ModuleType:
    from runner.toolkit.mcp import sdk

    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    return sdk


async def _unchecked(_name: str, _result: Any) -> None:
    return None


async def _first_of(*waits: Any) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _ends(task: asyncio.Task[None], seconds: float) -> bool:
    done, _ = await asyncio.wait({task}, timeout=seconds)
    return bool(done)


def _innermost(error: BaseException) -> BaseException:
    """What really happened, out of the groups that task groups make of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
