"""Tools of a run that is made to fail: they come to what they came to, but for one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from runner.api.chaos_point import Point
from runner.engine.contract import Cancellation, Tool, ToolResult, Update
from runner.engine.session import current
from runner.spec.loaded import Loaded
from runner.toolkit.tool import SchemaTool

if TYPE_CHECKING:
    from runner.api.chaos_edges import ChaosEdges

NO_RESULT = "The recording has no result of this call."
TIMEOUT = 60.0
"""Seconds that a call has which is to time out, where its tool has no bound of its own."""
_STUCK = 3600.0
"""Seconds for which a tool takes no notice of being stopped."""
_LATE = ("timeout", "stuck")


class RecordedTool(SchemaTool):
    """A tool that comes to what it came to."""

    def __init__(self, schema: Mapping[str, Any], edges: ChaosEdges, is_program: bool) -> None:
        super().__init__(
            schema["name"],
            schema["description"],
            schema["parameters"],
            execution=schema.get("execution", "parallel"),
            idempotent=bool(schema.get("idempotent")),
            timeout=_timeout(edges, schema["name"], schema.get("timeout")),
        )
        self._edges = edges
        self._is_program = is_program

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Give the recorded result, or fail; see `runner.engine.contract.Tool`."""
        agent = current.get().path
        reached = agent, tool_call_id, self.name, self._is_program
        self._edges.reached.calls.append(reached)
        if self._edges.fires("tool", agent, call=tool_call_id):
            return await _fail(self._edges.point)
        result = self._edges.script.result(agent, tool_call_id, self.name, params)
        if result is None:
            return ToolResult(NO_RESULT, is_error=True)
        await self._edges.play(result, (agent, tool_call_id), on_update)
        return ToolResult(result.content, result.details, result.is_error, result.terminate)


class RecordedServers:
    """MCP servers of which none is started."""

    def __init__(self, edges: ChaosEdges) -> None:
        self._edges = edges

    def of(self, *spec: Any) -> None:
        """Nothing has to be made ready."""

    def recorded_tool(
        self, loaded: Loaded, path: str, entry: Any, names: Any, name: str, listed: Any
    ) -> Tool:
        """A tool of a server."""
        tools = self._edges.mcp_tools(loaded, path, entry, names, ())
        return next(tool for tool in tools if tool.name == name)


def _timeout(edges: ChaosEdges, name: str, own: float | None) -> float | None:
    point = edges.point
    if own is None and point is not None and point.name == name and point.what in _LATE:
        return TIMEOUT
    return own


async def _fail(point: Point | None) -> ToolResult:
    """Fail as a point says."""
    match point.what if point is not None else "":
        case "error":
            return ToolResult("The tool was made to fail.", is_error=True)
        case "nonzero":
            return ToolResult("It ended with exit code 1.", {"exit_code": 1}, is_error=True)
        case "timeout":
            await asyncio.Event().wait()
        case "stuck":
            await _take_no_notice(asyncio.sleep(_STUCK))
    raise RuntimeError("the tool was made to raise")


async def _take_no_notice(work: Awaitable[Any]) -> None:
    """Wait for something, and only then be stopped."""
    waiting = asyncio.ensure_future(work)
    try:
        await asyncio.shield(waiting)
    except asyncio.CancelledError:
        await waiting
        raise
