"""The tools of a spec that has MCP servers, which are started to tell theirs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.api.build import Builder
from runner.api.live import Live
from runner.api.mcp import needed, start_servers
from runner.api.plan_json import tools_json
from runner.log.redact import LogRedactor
from runner.spec.loaded import Loaded
from runner.spec.model.tool import McpTools
from runner.thread import run_in_loop


def listed_tools(loaded: Loaded, other: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    """All tools of a spec, each with its schema and where it comes from.

    Args:
        loaded: The spec.
        other: Tells of a tool that is not a server's, by its place.

    Raises:
        RunError: where a server does not start that has to.
    """
    return run_in_loop(_listed_tools(loaded, other))


async def _listed_tools(
    loaded: Loaded, other: Callable[[int], dict[str, Any]]
) -> list[dict[str, Any]]:
    live = Live(os.environ, Path.cwd(), LogRedactor())
    builder = Builder(live, os.environ, "")
    # What an input is shows in a run alone; the defaults are all that is known here.
    inputs = {name: known.default for name, known in loaded.inputs.items()}
    names = builder.names(loaded, {k: v for k, v in inputs.items() if v is not None})
    try:
        builder.tool_groups(loaded, names)
        await start_servers(live.servers)
        needed(live.servers)
        groups = builder.tool_groups(loaded, names)
    finally:
        await live.servers.close()
    told: list[dict[str, Any]] = []
    for index, group in enumerate(groups):
        if not isinstance(loaded.spec.tools[index], McpTools):
            told.append(other(index))
            continue
        source = loaded.where(f"tools[{index}]")
        keys = ("name", "description", "parameters")
        told += [{**{k: tool[k] for k in keys}, "source": source} for tool in tools_json(group)]
    return told
