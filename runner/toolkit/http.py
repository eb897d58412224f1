"""HTTP requests as tools: what a spec writes, filled in by a model, and what the server answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from runner.engine.contract import Cancellation, ToolResult, Update
from runner.error import PiRunError
from runner.toolkit.address import AddressGuard
from runner.toolkit.tool import SchemaTool, ToolOptions

IDEMPOTENT = frozenset(("GET", "HEAD"))
"""Methods that change nothing, and may be asked again."""
TIMEOUT = 60.0
"""Seconds that a call may take where nothing else is said."""


@dataclass(slots=True)
class HttpCall:
    """One request, with all places filled in."""

    url: str
    query: Mapping[str, Any] = field(default_factory=dict)
    """A list gives a name several times, None none at all."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


class HttpTool(SchemaTool):
    """A request that a model can have made. The answer is the result.

    It goes where its author says, to a private address too. A redirect to another host is an error.

    Args:
        name: See `SchemaTool`; so for the next two.
        description: For the model.
        parameters: JSON Schema of its arguments.
        method: In capitals.
        make: Fills in what a call's arguments say. May raise ``TemplateError`` for what can't be
            filled in, or ``ProviderError`` for a secret that can't be had.
        max_bytes: Of an answer; what is more is left out.
        options: See `ToolOptions`.
    """

    def __init__(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        *,
        method: str,
        make: Callable[[Mapping[str, Any]], Awaitable[HttpCall]],
        max_bytes: int,
        **options: Unpack[ToolOptions],
    ) -> None:
        options.setdefault("timeout", TIMEOUT)
        options.setdefault("idempotent", method in IDEMPOTENT)
        options.setdefault("read_only", method in IDEMPOTENT)
        super().__init__(name, description, parameters, **options)
        self._method = method
        self._make = make
        self._max_bytes = max_bytes

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Make the request; see `runner.engine.contract.Tool`."""
        from runner.toolkit.web import Web, WebError

        try:
            call = await self._make(params)
        except PiRunError as error:
            return ToolResult(f"The request can't be made: {error}", is_error=True)
        web = Web(AddressGuard(allow_private=True), same_host=True, max_bytes=self._max_bytes)
        try:
            answer = await web.request(
                self._method, with_query(call.url, call.query), headers=call.headers, body=call.body
            )
            return answer.result()
        except WebError as error:
            return ToolResult(str(error), is_error=True)


def with_query(url: str, query: Mapping[str, Any]) -> str:
    """A URL with more in its query."""
    from urllib.parse import quote

    pairs = []
    for name, given in query.items():
        for value in given if isinstance(given, list) else [given]:
            if value is not None:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                pairs.append(
                    f"{quote(name, safe='', errors='replace')}="
                    f"{quote(text, safe='', errors='replace')}"
                )
    if not pairs:
        return url
    url, hash_, fragment = url.partition("#")
    joint = "" if url.endswith(("?", "&")) else "&" if "?" in url else "?"
    return url + joint + "&".join(pairs) + hash_ + fragment
