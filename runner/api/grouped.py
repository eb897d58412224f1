"""What the plan of a log says of the MCP servers of its run: none has to be started to know it.

A server's entry comes to any number of tools. ``resolved.mcp`` has, by the path of each entry, the
names of its tools with what the server itself calls them; ``resolved.unavailable`` what could not
be had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.engine.plan import Unavailable
from runner.spec.decode import to_json
from runner.spec.model.tool import McpTools


def grouped(
    entries: Sequence[Any], tools: Sequence[Mapping[str, Any]], own: Mapping[str, Any]
) -> list[tuple[Any, list[Mapping[str, Any]]]]:
    """The entries of a plan's ``tools``, each with the tools that it came to.

    Args:
        entries: The entries.
        tools: What the model sees, of all entries one after the other.
        own: ``resolved.mcp``.
    """
    groups: list[tuple[Any, list[Mapping[str, Any]]]] = []
    at = 0
    for index, entry in enumerate(entries):
        is_server = isinstance(entry, Mapping) and "mcp" in entry
        count = len(own.get(f"tools[{index}]", ())) if is_server else 1
        groups.append((entry, list(tools[at : at + count])))
        at += count
    return groups


def recorded_tools(plan: Mapping[str, Any], entry: McpTools) -> list[tuple[Mapping[str, Any], str]]:
    """The tools that a server had by a plan, or by one of an agent in it, with its own names."""
    written = to_json(entry)
    resolved = plan.get("resolved", {})
    own = resolved.get("mcp", {})
    groups = grouped(plan.get("tools", ()), resolved.get("tools", ()), own)
    for index, (known, tools) in enumerate(groups):
        if known == written:
            names = own.get(f"tools[{index}]", {})
            return [(tool, names.get(tool["name"], "")) for tool in tools]
    for agent in resolved.get("agents", {}).values():
        if found := recorded_tools(agent, entry):
            return found
    return []


def recorded_unavailable(resolved: Mapping[str, Any]) -> list[Unavailable]:
    """What could not be had."""
    found = resolved.get("unavailable", ())
    return [Unavailable(one["tool"], one["reason"], bool(one.get("needed"))) for one in found]
