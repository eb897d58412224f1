"""MCP over pipes: a message a line, as the SDK's sessions take it.

Unlike the SDK's own transports it bounds what the other side may say: the length of a line, how
many lines are no message, and how many messages a second are looked at. What is more waits in the
pipe.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from runner.toolkit.mcp.child import ServerProcess

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

MAX_MESSAGE = 1 << 24
"""Bytes of one message: an image may be long."""
_MAX_NOISE = 1 << 20
"""Bytes of lines that are no message, all together."""
_BURST = 2000
"""Messages after which the pace is looked at."""
_BURST_SECONDS = 0.4
"""Seconds that so many messages take at least."""
_QUESTION = 20
"""For how many messages a request counts: each is a task of the SDK until it is answered."""


class Pipe(Protocol):
    """What lines come from and go to."""

    async def read(self) -> bytes:
        """What comes next; empty at the end."""

    async def write(self, data: bytes) -> None:
        """Send all of this; raises ``OSError`` where nobody reads it."""

    async def end(self) -> None:
        """Let go of it."""


class Lines:
    """Messages that come and go as lines.

    Args:
        pipe: Where they come from and go to.
    """

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self.problem: str | None = None
        """Why the other side is listened to no more, where that is its own fault."""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """The messages that come and those that go; at the end of this the pipe is let go of."""
        import anyio

        incoming_end, incoming = anyio.create_memory_object_stream[Any](0)
        outgoing, outgoing_end = anyio.create_memory_object_stream[Any](0)

        async def read() -> None:
            async with incoming_end:
                try:
                    async for message in self._messages():
                        await incoming_end.send(message)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    # Nobody listens any more. What it still says must not keep it from its end.
                    while await self._pipe.read():
                        pass

        async def write() -> None:
            async with outgoing_end:
                try:
                    async for message in outgoing_end:
                        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                        await self._pipe.write(text.encode(errors="replace") + b"\n")
                except OSError:
                    # A request that can't be sent must not be waited for.
                    await incoming_end.aclose()

        async with incoming, outgoing, anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(write)
            try:
                yield incoming, outgoing
            finally:
                incoming.close()
                with anyio.CancelScope(shield=True):
                    await self._pipe.end()
                group.cancel_scope.cancel()

    async def _messages(self) -> AsyncIterator[SessionMessage]:
        """What comes; ends where the pipe does, or where it says what nobody should."""
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCRequest, jsonrpc_message_adapter

        clock = asyncio.get_running_loop().time
        noise, count, began = 0, 0, clock()
        async for line in self._lines():
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError as error:
                # Of what can't be read because of its depth an answer may be waited for.
                if "recursion limit" in str(error):
                    self.problem = "it sent a message that is nested too deeply"
                    return
                noise += len(line)
                if noise > _MAX_NOISE:
                    self.problem = f"more than {_MAX_NOISE} bytes on its stdout are no message"
                    return
                continue
            yield SessionMessage(message)
            count += _QUESTION if isinstance(message, JSONRPCRequest) else 1
            if count >= _BURST:
                await asyncio.sleep(max(began + _BURST_SECONDS - clock(), 0))
                began, count = clock(), 0

    async def _lines(self) -> AsyncIterator[bytes]:
        line = bytearray()
        while data := await self._pipe.read():
            head, *rest = data.split(b"\n")
            line += head
            for part in rest:
                if line.strip():
                    yield bytes(line)
                line = bytearray(part)
            if len(line) > MAX_MESSAGE:
                self.problem = f"it sent a message of more than {MAX_MESSAGE} bytes"
                return


class StdioPeer(Lines):
    """A server that is a child, from its start to its end."""

    def __init__(self, process: ServerProcess) -> None:
        super().__init__(process)
        self._process = process
        self.ended = process.ended

    def last_words(self) -> str:
        """How it ended, and what it said last on stderr."""
        said = self._process.stderr.text.strip().splitlines()[-8:]
        code = self._process.exit_code if self.ended.is_set() else None
        how = f"it ended with exit code {code}" if code is not None and code >= 0 else ""
        if code is not None and code < 0:
            how = f"it was ended by signal {-code}"
        words = f"it said: {' | '.join(said)}"[-2000:] if said else ""
        return "; ".join(part for part in (self.problem, how, words) if part)

    def kill(self) -> None:
        """Make it end now."""
        self._process.kill()
