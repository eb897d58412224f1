"""A run's events as ``text/event-stream``, and its log as a file.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html. An event's id is its ``seq``
and its data the log's line. What a run asks comes as an event ``questions`` that has no id, with
all that is open, so that one that was missed is none that is lost.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.json_text import line
from runner.server.feed import BLOCK, Feed, Reader
from runner.server.hosted import HostedRun
from runner.server.refusal import Refusal

if TYPE_CHECKING:
    from starlette.responses import Response

    from runner.server.hosting import Hosting

_SILENCE = 15.0
"""Seconds after which a stream with nothing new says that it is still there."""
_STALLED = 300.0
"""Seconds that a reader may take nothing before it is let go; it may come back."""
_RETRY = 1000
"""Milliseconds after which a browser comes back."""


async def event_stream(hosting: Hosting, run_id: str, last: str | None) -> Response:
    """Answer with the events of a run after one, as they come.

    Args:
        hosting: Where the run is.
        run_id: The run.
        last: The id of the last event that the client has; None for all.

    Raises:
        Refusal: where there is no such run or event, or too many clients read already.
    """
    from starlette.responses import Response

    feed, run = await hosting.feed(run_id)
    number = _number_after(last)
    if run is not None and number > feed.count:
        raise Refusal(404, "no_such_event", f"run {run_id} has no event {number - 1} yet")
    reader = Reader(feed, number)
    if run is None and number and not await reader.read():
        # By this a browser knows that it need not come back.
        return Response(status_code=204)
    if hosting.readers >= hosting.bounds.readers:
        told = f"{hosting.readers} streams are read, and no more are allowed"
        raise Refusal(503, "too_many_readers", told, {"Retry-After": "10"})
    stream: Response = _stream()(hosting, _frames(feed, run, number))
    return stream


def _stream() -> type[Any]:
    from starlette.responses import StreamingResponse

    class EventStream(StreamingResponse):
        """A stream that is counted while it is read, and ends for who takes nothing of it."""

        def __init__(self, hosting: Hosting, frames: AsyncIterator[bytes]) -> None:
            # A proxy is not to gather what is to be seen at once.
            headers = {"X-Accel-Buffering": "no"}
            super().__init__(frames, media_type="text/event-stream", headers=headers)
            self._hosting = hosting

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def send_or_end(message: Any) -> None:
                async with asyncio.timeout(_STALLED):
                    await send(message)

            self._hosting.readers += 1
            try:
                await super().__call__(scope, receive, send_or_end)
            finally:
                self._hosting.readers -= 1

    return EventStream


async def _frames(feed: Feed, run: HostedRun | None, number: int) -> AsyncIterator[bytes]:
    reader, told = Reader(feed, number), -1
    yield b"retry: %d\n\n" % _RETRY
    while True:
        # Taken before what is there is looked at, so that nothing that comes after it is missed.
        changed, ended = feed.changed, feed.ended
        data = await reader.read()
        if run is not None and run.questions.version != told:
            told = run.questions.version
            asked = line(run.questions.as_json()).encode()
            data += b"event: questions\ndata: %s\n\n" % asked
        if data:
            yield data
        elif ended:
            return
        else:
            try:
                async with asyncio.timeout(_SILENCE):
                    await changed.wait()
            except TimeoutError:
                yield b":\n\n"


def _number_after(last: str | None) -> int:
    if last is None:
        return 0
    if not (last.isascii() and last.isdecimal() and len(last) < 16):
        raise Refusal(400, "invalid_id", "Last-Event-ID has to be the number of an event")
    return int(last) + 1


async def file_pieces(path: Path, size: int) -> AsyncIterator[bytes]:
    """The first so many bytes of a file, which may grow meanwhile."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        place = 0
        while place < size:
            count = min(4 * BLOCK, size - place)
            data = await asyncio.to_thread(os.pread, descriptor, count, place)
            if not data:
                return
            place += len(data)
            yield data
    finally:
        os.close(descriptor)
