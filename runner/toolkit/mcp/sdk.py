"""What is used of the SDK's client. Importing this imports the SDK."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeVar

import httpx2
from mcp import Client, MCPError
from mcp_types import Implementation
from pydantic import ValidationError

from runner.error import describe

_T = TypeVar("_T")
_GONE = ("Connection closed", "Session terminated")
"""What the SDK makes of a connection that ended, and of a server that has forgotten the session.
Their codes are not only the SDK's: a server may answer with them too."""


class ClosedError(Exception):
    """The connection is gone."""


class InvalidAnswer(Exception):  # noqa: N818 - what it says is data, and not of the program
    """The answer is not what the protocol says."""


class AnsweredError(Exception):
    """The server answered with an error; the message is its own."""


def make_client(streams: Any, roots: Any) -> Any:
    """A client of a server that is talked to by these streams.

    It is entered and left in one task. A server of before 2026 is greeted by the older handshake.
    """
    return Client(
        streams,
        list_roots_callback=roots,
        client_info=Implementation(name="pi-run", version="1"),
        cache=None,
    )


def told(error: BaseException) -> str:
    """Why a server did not start, by what it, or the network, said."""
    if isinstance(error, MCPError) and error.message in _GONE:
        return "it ended before it had started"
    if isinstance(error, ValidationError):
        return f"it answered with what is no MCP: {_place(error)}"
    if isinstance(error, httpx2.ConnectError):
        return f"it can't be reached: {describe(error)}"
    return describe(error)[:2000]


def _place(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:500]


async def answered(work: Awaitable[_T]) -> _T:
    """Await an answer, with the SDK's errors as those of this module."""
    try:
        return await work
    except MCPError as error:
        if error.message in _GONE:
            raise ClosedError(error.message) from None
        raise AnsweredError(error.message[:2000]) from None
    except ValidationError as error:
        raise InvalidAnswer(_place(error)) from None
    except RuntimeError as error:
        raise InvalidAnswer(describe(error)[:500]) from None
