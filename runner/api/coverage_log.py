"""A log read through once, and what of its spec it exercised. Holds no more than what is open."""

from __future__ import annotations

import re
from collections.abc import Callable

from runner.api.coverage_agent import AgentCoverage
from runner.api.coverage_items import REACHED, Json
from runner.api.coverage_scope import Scope
from runner.engine.message import text_of

_DEPTH = re.compile(r"the limit depth of \d+ agents within agents is reached")


class LogCoverage:
    """What a log exercises.

    Args:
        bind: Makes the scope of a plan.
    """

    def __init__(self, bind: Callable[[Json], Scope]) -> None:
        self._bind = bind
        self._agents: dict[str, AgentCoverage] = {}
        self._start: Json = {}

    def see(self, event: Json) -> None:
        """Take the next event of the log."""
        kind = event["type"]
        if kind == "run_start":
            self._start = event
            self._agents = {"main": AgentCoverage(self._scope(event["plan"]))}
        elif kind == "run_resume":
            self._resume(event)
        elif kind == "run_end":
            self._tell_depth(str(event.get("error", "")))
        else:
            self._of_agent(event.get("agent", "main"), event)

    def _resume(self, event: Json) -> None:
        for agent in self._agents.values():
            agent.broken_off()
        if "plan" in event:
            self._agents["main"].scope = self._scope(event["plan"])

    def _scope(self, plan: Json) -> Scope:
        scope = self._bind(plan)
        run = {"name": self._start["spec"]["name"], "id": self._start.get("run_id", "")}
        environment = (plan.get("resolved") or {}).get("env") or {}
        scope.names = {"inputs": self._start["inputs"], "env": environment, "run": run}
        return scope

    def _of_agent(self, path: str, event: Json) -> None:
        agent = self._agents.get(path)
        if agent is None:
            agent = self._agents[path] = AgentCoverage(self._scope_of(path))
        kind = event["type"]
        if kind == "limit_reached":
            self._tell_limit(path, event)
        elif kind == "tool_execution_end" and event["is_error"]:
            self._tell_depth(text_of(event["result"]["content"]))
        elif kind == "turn_start":
            # What worked for the turns before it, or for tasks, is done.
            for other in [name for name in self._agents if name.startswith(f"{path}/")]:
                del self._agents[other]
        agent.see(event)
        if agent.is_done and path != "main":
            del self._agents[path]

    def _scope_of(self, path: str) -> Scope:
        """The spec of an agent: one that its parent uses, and at best one that it uses now."""
        above, _, own = path.rpartition("/")
        parent = self._agents.get(above)
        name = own.rpartition("#")[0]
        if parent is None:
            return Scope({}, {})
        named = [(at, scope) for at, scope in parent.scope.agents if scope.spec.get("name") == name]
        used = [scope for at, scope in named if parent.is_busy_with(at)]
        return (used or [scope for _, scope in named] or [Scope({}, {})])[0]

    def _tell_limit(self, path: str, event: Json) -> None:
        """Tell a limit of an agent, or of one above it."""
        name, allowed = event["limit"], event["allowed"]
        while path:
            agent = self._agents.get(path)
            limits = agent.scope.spec.get("limits") if agent is not None else None
            if agent is not None and (limits or {}).get(name) == allowed:
                agent.scope.hit(f"limits.{name}", REACHED)
                return
            path = path.rpartition("/")[0]

    def _tell_depth(self, text: str) -> None:
        """Tell the limit that has no event, where a text is its message."""
        if _DEPTH.search(text):
            self._agents["main"].scope.hit("limits.depth", REACHED)
