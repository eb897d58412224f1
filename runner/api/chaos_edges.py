"""The edges of a run that is made to fail: a recorded model, recorded tools, and one thing more."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from runner.api.chaos_point import ALWAYS, UNTERMINATED, Point, Reached
from runner.api.chaos_tool import RecordedServers, RecordedTool
from runner.api.grouped import grouped, recorded_unavailable
from runner.api.hooking import declared
from runner.api.live import Live, Names, ToolEntry, model_id, model_of
from runner.engine.contract import (
    Model,
    ModelRequest,
    Stop,
    StreamEvent,
    Tool,
    Update,
)
from runner.engine.hook import Hook
from runner.engine.plan import Unavailable
from runner.engine.session import current
from runner.engine.sub_agent import AgentTool
from runner.error import PiRunError, ProviderError
from runner.log.script import LastAnswer, Result, Script
from runner.spec.loaded import Loaded
from runner.spec.model.provider import ModelChoice
from runner.spec.model.tool import CommandTool

_MOMENT = 0.01
"""The longest that a call takes, in seconds, of which the log doesn't say how long it took."""
_CONTEXT = ("transform_context", "convert_to_llm")
_TOOL_POINTS = ("before_tool_call", "after_tool_call")


class ChaosEdges(Live):
    """Makes models, tools and hooks that do what a log says, but for what goes wrong.

    Args:
        script: What they do.
        resolved: What the log's plan says of a spec's tools.
        workspace: The folder that permissions know.
        point: What goes wrong; None: nothing.
        said: Tells how many of its answers an agent has given already.
        seed: Decides how long recorded calls take of which the log doesn't say it.
    """

    def __init__(
        self,
        script: Script,
        resolved: Callable[[Loaded], Mapping[str, Any]],
        workspace: Path,
        *,
        point: Point | None = None,
        said: Callable[[str | None], int] = lambda agent: 0,
        seed: str = "",
    ) -> None:
        super().__init__({}, workspace, None)
        self.script = script
        self.resolved = resolved
        self.point = point
        self.reached = Reached()
        self.ran_out = False
        """Whether a model was asked more often than it was in the recording."""
        self._fired = False
        self._seed = seed
        self._said_before = said
        self._said: dict[str | None, int] = {}
        self._hook_calls: Counter[tuple[str | None, str]] = Counter()
        self._decided: Counter[tuple[str | None, str, str]] = Counter()
        self._gave: set[tuple[str | None, str, int]] = set()

    def fires(self, kind: str, agent: str | None, **there: Any) -> bool:
        """Whether it goes wrong here; it does so once."""
        point = self.point
        if point is None or (point.kind, point.agent) != (kind, agent):
            return False
        if any(getattr(point, name) != value for name, value in there.items()):
            return False
        first, self._fired = not self._fired, True
        return first or point.what == ALWAYS

    # --- models -----------------------------------------------------------------------------------

    def model(self, loaded: Loaded, path: str, choice: ModelChoice, names: Names) -> Model:
        """A model that says what it said."""
        provider = _Provider(choice.provider, self)
        return model_of(choice, model_id(loaded, path, choice, names), provider, None)

    async def answer(self, agent: str | None) -> AsyncIterator[StreamEvent]:
        """The stream of an agent's next answer, as it goes this time."""
        number = self._said.get(agent)
        if number is None:
            number = self._said[agent] = self._said_before(agent)
        answers = self.script.answers.get(agent, [])
        self.ran_out = self.ran_out or number >= len(answers)
        answer = answers[number] if number < len(answers) else LastAnswer(0)
        fires = self.fires("model", agent, place=number + 1)
        events = answer.events()
        if fires and self.point is not None:
            for event in _before(self.point, events):
                yield event
            if self.point.what != "length":
                raise _fault(self.point.what)
        self._said[agent] = number + 1
        if fires:
            yield Stop("length")
            return
        self.reached.requests.append((agent, number + 1, len(events)))
        for event in events:
            yield event
        if answer.fault is not None:
            raise answer.fault()
        yield answer.stop()

    # --- tools ------------------------------------------------------------------------------------

    def tool(self, loaded: Loaded, path: str, entry: ToolEntry, names: Names) -> Tool:
        """A tool that comes to what it came to."""
        index = int(path[len("tools[") : -1])
        return RecordedTool(self._groups(loaded)[index][0], self, isinstance(entry, CommandTool))

    def mcp_tools(
        self, loaded: Loaded, path: str, entry: Any, names: Names, taken: Collection[str]
    ) -> list[Tool]:
        """The tools that a server had; it is not started."""
        index = int(path[len("tools[") : -1])
        return [RecordedTool(schema, self, False) for schema in self._groups(loaded)[index]]

    def unavailable(self, loaded: Loaded) -> list[Unavailable]:
        """What could not be had."""
        return recorded_unavailable(self.resolved(loaded))

    @cached_property
    def servers(self) -> Any:
        """What stands for the servers of a run that goes on."""
        return RecordedServers(self)

    def _groups(self, loaded: Loaded) -> list[list[Mapping[str, Any]]]:
        """The tools that each entry of a spec came to."""
        known = self.resolved(loaded)
        groups = grouped(known.get("entries", ()), known["tools"], known.get("mcp", {}))
        return [tools for _, tools in groups]

    def agent_tool(self, tool: AgentTool) -> Tool:
        """A tool that is an agent: it runs by its own recording, and fails where that does."""
        return tool

    async def play(self, result: Result, call: tuple[str | None, str], on_update: Update) -> None:
        """Let a call of an agent take its recorded time, and tell what it told."""
        seconds = result.seconds
        if not seconds:
            seconds = random.Random(f"{self._seed} {call}").uniform(0, _MOMENT)
        pause = seconds / (len(result.updates) + 1)
        for update in result.updates:
            await asyncio.sleep(pause)
            on_update(update)
        await asyncio.sleep(pause)

    # --- hooks ------------------------------------------------------------------------------------

    def permission(self, loaded: Loaded, answer: Any = None) -> Hook | None:
        """Permissions by their rules; what a person was asked for is answered as it was."""
        return super().permission(loaded, self._recorded_answer)

    def _recorded_answer(self, call: Mapping[str, Any]) -> dict[str, Any] | None:
        key = current.get().path, call["tool_call_id"], "before_tool_call"
        for line in self.script.decisions.get(key, ()):
            if line["action"] == "block":
                return {"block": True, "reason": line["reason"], "stop": bool(line.get("stop"))}
        return None

    def hook(self, loaded: Loaded, path: str, entry: Any, names: Names) -> Hook:
        """A hook that does as it did: by itself where it is data, else by the log."""
        point = path[len("hooks.") : path.index("[")]
        pure = declared(loaded, path, entry, names)
        if pure is not None and (point not in _TOOL_POINTS or self._is_data(loaded, point, names)):
            return Hook(pure, entry.on_error)
        if point in _CONTEXT and entry.python is not None:
            # It runs again, as in a replay: it makes what the model reads.
            return super().hook(loaded, path, entry, names)
        made = Hook(lambda: None, entry.on_error)
        decide = self._recorded_decision if point in _TOOL_POINTS else self._recorded_gift

        def call(*args: Any) -> Any:
            agent = current.get().path
            key = agent, path
            self._hook_calls[key] += 1
            number = self._hook_calls[key]
            if pure is None:
                self.reached.hooks.append((agent, path, number))
            made.on_error = entry.on_error
            if self.fires("hook", agent, name=path, place=number):
                raise RuntimeError("the hook was made to fail")
            return decide(point, made, *args)

        made.call = call
        return made

    @staticmethod
    def _is_data(loaded: Loaded, point: str, names: Names) -> bool:
        """Whether all hooks of a point are data, so that what each decides needs no log."""
        entries = enumerate(getattr(loaded.spec.hooks, point))
        return all(
            declared(loaded, f"hooks.{point}[{n}]", one, names) is not None for n, one in entries
        )

    def _recorded_decision(self, point: str, made: Hook, call: Mapping[str, Any]) -> Any:
        """What was decided of a call; of several hooks, the next one's decision."""
        key = current.get().path, call["tool_call_id"], point
        decisions = self.script.decisions.get(key, ())
        number = self._decided[key]
        if number >= len(decisions):
            return None
        self._decided[key] += 1
        line = decisions[number]
        match line["action"]:
            case "block":
                return {"block": True, "reason": line["reason"], "stop": bool(line.get("stop"))}
            case "rewrite":
                return {"arguments": line["arguments"]}
            case "replace":
                return {"is_error": call["result"]["is_error"]}
        made.on_error = line.get("on_error")
        raise PiRunError(line.get("reason", ""))

    def _recorded_gift(self, point: str, made: Hook, *args: Any) -> Any:
        """What a hook gave that is asked once a turn."""
        session = current.get()
        # By the answers so far: turns may be more than they were.
        key = session.path, point, self._said.get(session.path, self._said_before(session.path))
        failure = self.script.failures.get(key)
        if failure is not None and key not in self._gave:
            self._gave.add(key)
            made.on_error = failure.get("on_error")
            raise PiRunError(failure.get("reason", ""))
        if point == "stop_after_turn":
            return (session.path, key[2]) in self.script.stops
        if point in _CONTEXT:
            return args[0]
        if not point.endswith("_messages") or key in self._gave:
            return None
        self._gave.add(key)
        return self.script.supplied.get(key)


class _Provider:
    """A model that says what it said."""

    def __init__(self, name: str, edges: ChaosEdges) -> None:
        self.name = name
        self._edges = edges

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """See `runner.engine.contract.Provider`."""
        return self._edges.answer(current.get().path)

    async def close(self) -> None:
        """Nothing is held."""


def _before(point: Point, events: list[StreamEvent]) -> list[StreamEvent]:
    """What of an answer comes before it goes wrong."""
    if point.what in (UNTERMINATED, "length"):
        return events
    return events[: point.deltas]


def _fault(what: str) -> ProviderError:
    """What goes wrong with a request."""
    match what:
        case "overloaded":
            return ProviderError("the server was made to be overloaded", "overloaded", status=529)
        case "bad_request":
            return ProviderError("the server was made to refuse", "bad_request", status=400)
        case str() if what == UNTERMINATED:
            return ProviderError("the stream was made to end without its mark", "protocol")
    return ProviderError("the connection was made to break", "network")
