"""What holds for tools of all kinds in a run: how many calls at once, what is refused, how long."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from runner.engine.contract import Cancellation, Tool, ToolResult, Update
from runner.toolkit.outputs import Outputs, shortened

if TYPE_CHECKING:
    import asyncio

REFUSED = "Not run: this run is read-only, and {name} may change something."


class HeldTool:
    """A tool whose calls keep to the run's rules.

    Args:
        tool: The tool.
        outputs: Keeps outputs that are too long for a model.
        concurrency: How many of its calls run at once; None for as many as there are.
        refused: Whether it is not run at all, since the run is read-only and the tool is not.
    """

    def __init__(
        self,
        tool: Tool,
        outputs: Outputs | None,
        *,
        concurrency: int | None = None,
        refused: bool = False,
    ) -> None:
        self._tool = tool
        self._outputs = outputs
        self._concurrency = concurrency
        self._refused = refused
        self._places: asyncio.Semaphore | None = None

    @property
    def name(self) -> str:
        """The tool's own; so are the next."""
        return self._tool.name

    @property
    def label(self) -> str:
        """For people."""
        return self._tool.label

    @property
    def description(self) -> str:
        """For the model."""
        return self._tool.description

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments."""
        return self._tool.parameters

    @property
    def execution(self) -> Literal["parallel", "sequential"]:
        """Whether its turn's calls run one by one."""
        return self._tool.execution

    @property
    def idempotent(self) -> bool:
        """Whether it may be run again when it is unknown whether it ran."""
        return self._tool.idempotent

    @property
    def timeout(self) -> float | None:
        """Seconds; the wait for its turn is not among them."""
        return self._tool.timeout

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        """All ways in which arguments don't fit."""
        return self._tool.check(arguments)

    async def preview(self, arguments: dict[str, Any]) -> str | None:
        """What a call would change, for a person; None where the tool can't tell."""
        tell = getattr(self._tool, "preview", None)
        if tell is None or self._refused or self._tool.check(arguments):
            return None
        said: str | None = await tell(arguments)
        return said

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Do it, when its turn has come; see `runner.engine.contract.Tool`."""
        if self._refused:
            return ToolResult(REFUSED.format(name=self.name), is_error=True)
        if self._concurrency is None:
            result = await self._tool.execute(tool_call_id, params, on_update, cancellation)
        else:
            async with self._turn(self._concurrency):
                result = await self._tool.execute(tool_call_id, params, on_update, cancellation)
        return shortened(result, self._outputs, _call_of(tool_call_id))

    @contextlib.asynccontextmanager
    async def _turn(self, concurrency: int) -> AsyncIterator[None]:
        """Wait until fewer calls than may be are under way. That is not the call's own time."""
        import asyncio

        from runner.engine.call_time import call_time

        self._places = self._places or asyncio.Semaphore(concurrency)
        time = call_time.get() if self._places.locked() else None
        if time is not None:
            time.end()
        async with self._places:
            if time is not None:
                time.begin()
            yield


def _call_of(tool_call_id: str) -> str:
    """What tells a call apart from those of other agents."""
    from runner.engine.session import current

    session = current.get(None)
    path = session.path if session is not None else None
    return tool_call_id if path is None else f"{path} {tool_call_id}"
