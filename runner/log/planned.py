"""Whether what a log says of its plan is whole, so that a run can be driven by it.

Of the spec's own part the decoder of specs says what is wrong; here is what stands beside it under
``resolved``, and whether the two fit together. Logs of tools that know nothing of ``resolved``, and
fields that are not known, are let be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_TOOL = {"name": str, "description": str, "parameters": dict}
"""What each tool needs, so that a model can be told of it."""


def problem(event: Mapping[str, Any]) -> str | None:
    """What is wrong with the plan of a ``run_start`` or ``run_resume``, with its path, or None."""
    plan = event.get("plan")
    if plan is None:
        return None
    wrong = next(_of_plan(plan, ".plan"), None)
    if wrong is None and event["type"] == "run_start":
        wrong = next(_of_start(event, plan), None)
    return wrong


def _of_start(event: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[str]:
    """What of a run's start doesn't fit its plan."""
    declared, given = plan.get("inputs"), event["inputs"]
    if isinstance(declared, dict):
        for name in declared.keys() ^ given.keys():
            what = "is missing" if name in declared else "is none of the plan's inputs"
            yield f".inputs.{name} {what}"
    name, told = plan.get("name"), event["spec"]["name"]
    if name is not None and name != told:
        yield f'.spec.name is "{told}", and the plan\'s is "{name}"'


def _of_plan(plan: Any, path: str) -> Iterator[str]:
    if not isinstance(plan, dict):
        yield f"{path} is no object"
        return
    resolved = plan.get("resolved")
    if resolved is None:
        if "version" in plan:  # a spec's
            yield f"{path}.resolved is missing"
        return
    path = f"{path}.resolved"
    if not isinstance(resolved, dict):
        yield f"{path} is no object"
        return
    for key, kind, name in (("env", dict, "object"), ("tools", list, "list")):
        if not isinstance(resolved.get(key), kind):
            yield f"{path}.{key} is no {name}"
            return
    yield from _of_environment(resolved["env"], f"{path}.env")
    servers = resolved.get("mcp", {})
    yield from _of_servers(servers, f"{path}.mcp")
    yield from _of_unavailable(resolved.get("unavailable", []), f"{path}.unavailable")
    yield from _of_tools(plan.get("tools"), servers, resolved["tools"], f"{path}.tools")
    yield from _of_flags(resolved.get("flags", {}), f"{path}.flags")
    yield from _of_agents(plan, resolved.get("agents"), f"{path}.agents")


def _of_environment(values: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, value in values.items():
        if not isinstance(value, str):
            yield f"{path}.{name} is no text"


def _of_servers(servers: Any, path: str) -> Iterator[str]:
    if not isinstance(servers, dict) or not all(map(_is_names, servers.values())):
        yield f"{path} is no object of the names of each server's tools"


def _is_names(names: Any) -> bool:
    return isinstance(names, dict) and all(isinstance(name, str) for name in names.values())


def _of_unavailable(unavailable: Any, path: str) -> Iterator[str]:
    told = isinstance(unavailable, list) and all(
        isinstance(one, dict) and isinstance(one.get("tool"), str) and "reason" in one
        for one in unavailable
    )
    if not told:
        yield f"{path} is no list of tools, each with the reason"


def _of_tools(
    entries: Any, servers: Mapping[str, Any], tools: list[Any], path: str
) -> Iterator[str]:
    wanted = 0
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        # A server comes to any number of tools.
        is_server = isinstance(entry, dict) and "mcp" in entry
        wanted += len(servers.get(f"tools[{index}]", ())) if is_server else 1
    if wanted > len(tools):
        yield f"{path} has {len(tools)} tools, and the plan has {wanted}"
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            yield f"{path}[{index}] is no object"
            return
        for key, kind in _TOOL.items():
            if not isinstance(tool.get(key), kind):
                yield f"{path}[{index}].{key} is missing, or of another type"


def _of_flags(flags: Any, path: str) -> Iterator[str]:
    if not isinstance(flags, dict):
        yield f"{path} is no object"
        return
    changes = flags.get("set", [])
    if not isinstance(changes, list) or not all(map(_is_change, changes)):
        yield f"{path}.set is no list of changes, a path and a text each"
    for key in ("model", "prompt"):
        if not isinstance(flags.get(key, ""), str):
            yield f"{path}.{key} is no text"


def _is_change(change: Any) -> bool:
    return (
        isinstance(change, list)
        and len(change) == 2
        and all(isinstance(part, str) for part in change)
    )


def _of_agents(plan: Mapping[str, Any], agents: Any, path: str) -> Iterator[str]:
    if not isinstance(agents, dict):
        yield f"{path} is no object"
        return
    for place in _used(plan):
        if place not in agents:
            yield f'{path} lacks "{place}", which the plan uses'
    for place, agent in agents.items():
        yield from _of_plan(agent, f'{path}["{place}"]')
        if isinstance(agent, dict) and "version" not in agent:
            yield f'{path}["{place}"] is no spec'


def _used(plan: Mapping[str, Any]) -> Iterator[str]:
    """The places in a plan that use another spec."""
    follow_ups = plan.get("follow_ups")
    tasks = follow_ups.get("tasks") if isinstance(follow_ups, dict) else None
    for key, entries in (("tools", plan.get("tools")), ("follow_ups.tasks", tasks)):
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and entry.get("agent") is not None:
                yield f"{key}[{index}].agent"
