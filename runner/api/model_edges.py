"""The edges of a run whose model is asked anew, and whose calls a log answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.api.driven import Driven, decision_of
from runner.api.hooking import declared
from runner.api.live import Live, Names
from runner.engine.contract import Model, Tool
from runner.engine.hook import Hook, Hooks, OnError
from runner.engine.session import current
from runner.engine.sub_agent import AgentTool
from runner.log.calls import FoundTool, RecordedCalls
from runner.log.drive import Drive
from runner.spec.loaded import Loaded
from runner.spec.model.provider import ModelChoice

if TYPE_CHECKING:
    from runner.expect import Check


class ModelEdges(Driven):
    """Makes real models, and tools and hooks that come to what they came to.

    Args:
        drive: Of a tape with nothing on it: no line tells what comes next.
        resolved: What the log's plan says of a spec besides the spec.
        live: Makes what is real.
        calls: Those of the log.
        runs: Whether calls that the log has not are run.
        hooks: Whether all hooks are real.
    """

    def __init__(
        self,
        drive: Drive,
        resolved: Callable[[Loaded], Mapping[str, Any]],
        live: Live,
        calls: RecordedCalls,
        *,
        runs: bool,
        hooks: bool,
    ) -> None:
        super().__init__(drive, resolved, live if runs else None)
        self._own = live
        self._calls = calls
        self._all_hooks = hooks

    def keep_secret(self, name: str, value: str) -> None:
        """Keep a value secret."""
        self._own.keep_secret(name, value)

    def model(self, loaded: Loaded, path: str, choice: ModelChoice, names: Names) -> Model:
        """A model that is asked."""
        return self._own.model(loaded, path, choice, names)

    def agent_tool(self, tool: AgentTool) -> Tool:
        """A tool that is an agent: its model is asked anew, too."""
        return tool

    def command_check(self, loaded: Loaded, path: str, argv: Sequence[str], names: Names) -> Check:
        """The check of a program, which judges what the model says now."""
        return self._own.command_check(loaded, path, argv, names)

    def hooks(self, loaded: Loaded, names: Names) -> Hooks:
        """Hooks that decide of a call as they decided of the same one."""
        if self._all_hooks:
            return self._own.hooks(loaded, names)
        return super().hooks(loaded, names)

    def _recorded_tool(
        self, schema: Mapping[str, Any], make: Callable[[], Tool] | None = None
    ) -> Tool:
        return FoundTool(schema, self._drive, self._calls, make)

    def _permission(self, loaded: Loaded) -> Hook:
        return self._found("before_tool_call", self._own.permission(loaded), None)

    def _hook(self, loaded: Loaded, point: str, index: int, entry: Any, names: Names) -> Hook:
        if point not in ("before_tool_call", "after_tool_call"):
            return super()._hook(loaded, point, index, entry, names)
        path = f"hooks.{point}[{index}]"
        if self._live is not None:
            return self._found(point, self._live.hook(loaded, path, entry, names), entry.on_error)
        pure = declared(loaded, path, entry, names)
        return self._found(point, None if pure is None else Hook(pure), entry.on_error)

    def _found(self, point: str, otherwise: Hook | None, on_error: OnError | None) -> Hook:
        """A hook that decides what was decided of a call; of one the log has not, another does."""
        made = Hook(lambda: None)

        async def call(seen: Any) -> Any:
            made.on_error = on_error
            found = self._calls.of(current.get().path, seen["tool_call_id"])
            if found is None:
                return None if otherwise is None else await otherwise(seen)
            if found.decisions and found.decisions[0]["hook"] == point:
                return decision_of(found.decisions.popleft(), made, seen)
            return None

        made.call = call
        return made
