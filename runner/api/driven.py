"""The edges of a run that is driven by a log, and real ones behind them where it goes on live."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.api.grouped import grouped, recorded_unavailable
from runner.api.hooking import declared
from runner.api.live import Live, Names, ToolEntry, model_id, model_of
from runner.api.offline import Offline
from runner.api.static import POINTS
from runner.engine.contract import Model, Tool
from runner.engine.hook import Hook, Hooks
from runner.engine.plan import Finished, Unavailable, Verdict
from runner.engine.session import current
from runner.engine.sub_agent import AgentTool
from runner.error import PiRunError
from runner.log.drive import (
    Drive,
    RecordedAgent,
    RecordedProvider,
    RecordedTool,
    recorded_messages,
)
from runner.spec.decode import to_json
from runner.spec.loaded import Loaded
from runner.spec.model.provider import ModelChoice
from runner.spec.model.tool import McpTools, PythonTool

if TYPE_CHECKING:
    from runner.expect import Check

_FUNCTIONS = ("python", "use")
"""Keys of a tool's entry that name a function."""
_OPTIONS = ("name", "description", "execution", "idempotent", "timeout")
"""Keys that change what a log says of a tool."""
_CONTEXT = ("transform_context", "convert_to_llm")


class Driven:
    """Makes what plays a log back.

    Args:
        drive: What plays it.
        resolved: What the log's plan says of a spec besides the spec: of each by its object.
        live: Makes what is used where the log has no more; None in a replay.
        real: What is real from the start: ``tools``, ``hooks``.
    """

    def __init__(
        self,
        drive: Drive,
        resolved: Callable[[Loaded], Mapping[str, Any]],
        live: Live | None = None,
        real: Sequence[str] = (),
    ) -> None:
        self._drive = drive
        self._resolved = resolved
        self._live = live
        self._goes_on = live is not None and not real
        self._real = real
        self.offline = Offline()
        """Keeps what runs again in a replay from what it must not do."""

    def keep_secret(self, name: str, value: str) -> None:
        """Keep a value secret, where anything real could tell it."""
        if self._live is not None:
            self._live.keep_secret(name, value)

    def model(self, loaded: Loaded, path: str, choice: ModelChoice, names: Names) -> Model:
        """A model that says what it said."""
        if self._live is not None and self._goes_on:
            model = self._live.model(loaded, path, choice, names)
            model.provider = RecordedProvider(choice.provider, self._drive, model.provider)
            model.api_key = self._key(model.api_key)
            return model
        provider = RecordedProvider(choice.provider, self._drive)
        return model_of(choice, model_id(loaded, path, choice, names), provider, self._key(None))

    def _key(self, key: Callable[[], Any] | None) -> Callable[[], Any]:
        """A key that is asked for only when something is really sent."""

        async def read() -> Any:
            await self._drive.before_request()
            if key is None or not self._drive.at_end(current.get().path):
                return None
            given = key()
            return await given if inspect.isawaitable(given) else given

        return read

    def tool(self, loaded: Loaded, path: str, entry: ToolEntry, names: Names) -> Tool:
        """A tool that comes to what it came to."""
        live = self._live
        if live is not None and "tools" in self._real:
            return BusyTool(live.tool(loaded, path, entry, names), self._drive)
        if live is None and isinstance(entry, PythonTool):
            self.offline.forbid(entry.python, Path(loaded.folder_of(f"{path}.python")))
        index = int(path[len("tools[") : -1])
        make = None
        if live is not None:
            make = lambda: live.tool(loaded, path, entry, names)  # noqa: E731
        return self._recorded_tool(self._schema(loaded, index, entry), make)

    def _recorded_tool(
        self, schema: Mapping[str, Any], make: Callable[[], Tool] | None = None
    ) -> Tool:
        """A tool as a log knows it; ``make`` makes the real one."""
        return RecordedTool(schema, self._drive, make)

    def mcp_tools(
        self, loaded: Loaded, path: str, entry: McpTools, names: Names, taken: Collection[str]
    ) -> list[Tool]:
        """The tools that a server had. It is started when one is called live."""
        written = to_json(entry)
        resolved = self._resolved(loaded)
        found: list[Tool] = []
        for place, (known, tools) in enumerate(self._groups(resolved)):
            if known == written and not found:
                own = resolved.get("mcp", {}).get(f"tools[{place}]", {})
                found += [
                    self._mcp_tool(loaded, path, entry, names, tool, own.get(tool["name"], ""))
                    for tool in tools
                ]
        return found

    def _mcp_tool(
        self,
        loaded: Loaded,
        path: str,
        entry: McpTools,
        names: Names,
        tool: Mapping[str, Any],
        own_name: str,
    ) -> Tool:
        live = self._live
        if live is None:
            return self._recorded_tool(tool)
        from runner.toolkit.mcp.listing import Listed

        listed = Listed(own_name, tool["description"], tool["parameters"])
        # Known from here on, so that all can be started at once.
        live.servers.of(loaded, path, entry, names)

        def make() -> Tool:
            return live.servers.recorded_tool(loaded, path, entry, names, tool["name"], listed)

        if "tools" in self._real:
            return BusyTool(make(), self._drive)
        return self._recorded_tool(tool, make)

    def unavailable(self, loaded: Loaded) -> list[Unavailable]:
        """What could not be had."""
        return recorded_unavailable(self._resolved(loaded))

    @staticmethod
    def _groups(resolved: Mapping[str, Any]) -> list[tuple[Any, list[Mapping[str, Any]]]]:
        """The entries of a log's plan, each with its tools."""
        entries, tools = resolved.get("entries", ()), resolved.get("tools", ())
        return grouped(entries, tools, resolved.get("mcp", {}))

    def _schema(self, loaded: Loaded, index: int, entry: ToolEntry) -> Mapping[str, Any]:
        """A tool as the model sees it. Where the log doesn't know it, as the spec says."""
        written = to_json(entry)
        groups = self._groups(self._resolved(loaded))
        # That in the same place is the right one of several that are written alike.
        for known, tools in [*groups[index : index + 1], *groups]:
            if known == written and tools:
                return dict(tools[0])
        given = written if isinstance(written, dict) else {"use": written}
        for known, tools in [*groups[index : index + 1], *groups]:
            if tools and _is_same_function(known, given):
                return _with_options(tools[0], given)
        name = given.get("name") or given.get("use") or str(given.get("python")).rpartition(":")[2]
        return {
            "name": name,
            "description": given.get("description") or "",
            "parameters": given.get("parameters") or {"type": "object"},
            "execution": given.get("execution") or "parallel",
        }

    def agent_tool(self, tool: AgentTool) -> Tool:
        """A tool that is an agent: driven too."""
        return RecordedAgent(tool, self._drive)

    def command_check(self, loaded: Loaded, path: str, argv: Sequence[str], names: Names) -> Check:
        """The verdict that a program gave; asked again only where the log has none."""
        check = None
        if self._live is not None:
            check = self._live.command_check(loaded, path, argv, names)

        async def recorded(finished: Finished) -> Verdict:
            line = self._drive.tape.coming(current.get().path)
            if line is None and check is not None:
                return await check(finished)
            if line is None or line["type"] != "expectation":
                return Verdict(False, "the log has no verdict")
            return Verdict(line["passed"], line["detail"])

        return recorded

    # --- hooks ------------------------------------------------------------------------------------

    def hooks(self, loaded: Loaded, names: Names) -> Hooks:
        """Hooks that decide as they decided. Those of the context run again, but for programs."""
        if self._live is not None and "hooks" in self._real:
            # What a person said of a call stays said; only the rules are tried again.
            return self._live.hooks(loaded, names, self._recorded_permission().call)
        hooks = {}
        for point in POINTS:
            entries = getattr(loaded.spec.hooks, point)
            hooks[point] = [
                self._hook(loaded, point, n, entry, names) for n, entry in enumerate(entries)
            ]
        if loaded.spec.permissions is not None:
            hooks["before_tool_call"].insert(0, self._permission(loaded))
        return Hooks(**hooks)

    def _recorded_permission(self) -> Hook:
        made = Hook(lambda: None, has_last_word=True)
        made.call = self._recorded("before_tool_call", made)
        return made

    def _permission(self, loaded: Loaded) -> Hook:
        """Permissions as they were given; asked for again only where the log has no more."""
        made = self._recorded_permission()
        recorded, live = made.call, self._live
        real = live.permission(loaded) if live is not None else None

        async def call(seen: Any) -> Any:
            if real is None or not self._drive.at_end(current.get().path):
                return recorded(seen)
            return await real(seen)

        made.call = call
        return made

    def _hook(self, loaded: Loaded, point: str, index: int, entry: Any, names: Names) -> Hook:
        path = f"hooks.{point}[{index}]"
        if point in (*_CONTEXT, "stop_after_turn"):
            pure = declared(loaded, path, entry, names)
            if pure is not None:
                return Hook(pure, entry.on_error)
        if point in _CONTEXT and entry.python is not None:
            return self._python(loaded, path, entry)
        made = Hook(lambda: None, entry.on_error)
        recorded = self._recorded(point, made)

        async def call(*args: Any) -> Any:
            session = current.get()
            if self._live is None or not self._drive.at_end(session.path):
                await self._drive.during_hook(point)
                return recorded(*args)
            if not real:
                real.append(self._live.hook(loaded, path, entry, names))
            return await real[0](*args)

        real: list[Hook] = []
        made.call = call
        return made

    def _python(self, loaded: Loaded, path: str, entry: Any) -> Hook:
        """A function of the context runs again: it is part of what is tested."""
        from runner.hooks.function import function_hook
        from runner.python_file import load_callable

        drive, folder = self._drive, Path(loaded.folder_of(f"{path}.python"))
        guard: Callable[[], Any] = nullcontext
        if self._live is None:
            self.offline.allow(entry.python, folder)
            guard = partial(self.offline.guarding, path)

        async def call(messages: Any) -> Any:
            drive.tape.busy += 1
            try:
                with guard():
                    return await function_hook(load_callable(entry.python, folder), path)(messages)
            finally:
                drive.tape.busy -= 1

        return Hook(call, entry.on_error)

    def _recorded(self, point: str, hook: Hook) -> Callable[..., Any]:
        drive = self._drive
        if point in ("before_tool_call", "after_tool_call"):
            return lambda call: self._decided(point, hook, call["tool_call_id"], call)
        give: Callable[..., Any] = self._unknown_context
        if point.endswith("_messages"):
            give = recorded_messages(drive, point.removesuffix("_messages"))
        elif point == "stop_after_turn":
            give = lambda _turn: _stopped(drive)  # noqa: E731

        def recorded(*args: Any) -> Any:
            self._raise_failure(point, hook)
            return give(*args)

        return recorded

    def _unknown_context(self, messages: Any) -> Any:
        """A program's: what it gave is not in the log, so what was sent can't be compared."""
        self._drive.knows_context = False
        return messages

    def _raise_failure(self, point: str, hook: Hook) -> None:
        """Fail, where the log says that the hook failed."""
        line = self._drive.tape.coming(current.get().path)
        if line is not None and line["type"] == "hook_decision" and line["hook"] == point:
            hook.on_error = line.get("on_error")
            raise PiRunError(line.get("reason", ""))

    def _decided(self, point: str, hook: Hook, call_id: str, call: Any) -> Any:
        """What the log says that a hook decided of a call; nothing where it let it pass."""
        line = self._drive.tape.coming(current.get().path)
        if (
            line is None
            or line["type"] != "hook_decision"
            or line["hook"] != point
            or line.get("tool_call_id") != call_id
        ):
            return None
        return decision_of(line, hook, call)


def decision_of(line: Mapping[str, Any], hook: Hook, call: Mapping[str, Any]) -> dict[str, Any]:
    """What a hook gave that decided of a call, as a log tells it.

    Raises:
        PiRunError: where it failed.
    """
    match line["action"]:
        case "block":
            return {"block": True, "reason": line["reason"], "stop": bool(line.get("stop"))}
        case "rewrite":
            return {"arguments": line["arguments"]}
        case "replace":
            return {"is_error": call["result"]["is_error"]}
    hook.on_error = line.get("on_error")
    raise PiRunError(line.get("reason", ""))


def _is_same_function(known: Any, given: Mapping[str, Any]) -> bool:
    """Whether two entries of tools name the same function, with whatever options."""
    known = known if isinstance(known, Mapping) else {"use": known}
    return any(given.get(key) is not None and given[key] == known.get(key) for key in _FUNCTIONS)


def _with_options(tool: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A function as a log knows it, with what an entry says of it."""
    said = {key: given[key] for key in _OPTIONS if given.get(key) is not None}
    return {**tool, **said}


class BusyTool:
    """A real tool, which the tape has patience with."""

    def __init__(self, tool: Tool, drive: Drive) -> None:
        self._tool = tool
        self._drive = drive
        self.name, self.label = tool.name, tool.label
        self.description, self.parameters = tool.description, tool.parameters
        self.execution, self.idempotent = tool.execution, tool.idempotent
        self.timeout = tool.timeout

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        """What the tool says."""
        return self._tool.check(arguments)

    async def execute(self, *args: Any) -> Any:
        """What the tool does."""
        self._drive.tape.busy += 1
        try:
            return await self._tool.execute(*args)
        finally:
            self._drive.tape.busy -= 1


def _stopped(drive: Drive) -> bool:
    """Whether the run was stopped after this turn: nothing more comes of its agent."""
    for line in drive.tape.ahead(current.get().path):
        if line["type"] == "agent_end":
            return True
        if line["type"] not in ("task_end", "expectation"):
            return False
    return False
