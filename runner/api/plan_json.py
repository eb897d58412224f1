"""The plan of a run as JSON: its first line's, with all that a replay needs and no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from runner.api.build import Builder
from runner.engine.contract import Tool
from runner.engine.message import text_of
from runner.engine.plan import Plan
from runner.spec.decode import to_json
from runner.spec.loaded import Loaded
from runner.spec.model.tool import McpTools


def plan_json(
    loaded: Loaded,
    plan: Plan,
    builder: Builder,
    inputs: Mapping[str, Any],
    flags: Mapping[str, Any],
) -> dict[str, Any]:
    """The spec as resolved, rendered and defaulted.

    It decodes to a spec again. What is not of the spec stands under ``resolved``: the values of the
    environment that it reads, its tools as the model sees them, the specs that it uses, and the
    flags that changed the run.
    """
    names = builder.names(loaded, inputs)
    data = _spec(loaded)
    data["system_prompt"] = builder.system_prompt(loaded, names)
    data["prompt"] = text_of(plan.prompts[0]["content"])
    data["messages"] = list(plan.options.messages)
    if (price := plan.options.model.price) is not None:
        data["model"]["price"] = asdict(price)
    resolved: dict[str, Any] = {
        "env": names["env"],
        "tools": tools_json(plan.options.tools),
        "agents": {path: agent_json(other, builder) for path, other in loaded.agents.items()},
        **_servers_json(loaded, builder, names),
    }
    if plan.unavailable:
        resolved["unavailable"] = [asdict(one) for one in plan.unavailable]
    if plan.options.system_prompt != data["system_prompt"]:
        resolved["system_prompt"] = plan.options.system_prompt
    if given := {key: value for key, value in flags.items() if value}:
        resolved["flags"] = given
    return {**data, "resolved": resolved}


def agent_json(loaded: Loaded, builder: Builder) -> dict[str, Any]:
    """A spec that another one uses; its prompts are templates still."""
    return {
        **_spec(loaded),
        "resolved": {
            "env": builder.names(loaded, {})["env"],
            "tools": tools_json(builder.tools(loaded, {})),
            "agents": {path: agent_json(other, builder) for path, other in loaded.agents.items()},
            **_servers_json(loaded, builder, {}),
        },
    }


def _servers_json(loaded: Loaded, builder: Builder, names: Mapping[str, Any]) -> dict[str, Any]:
    """Of each MCP server by its path: by name, what it calls its tools itself."""
    if not any(isinstance(entry, McpTools) for entry in loaded.spec.tools):
        return {}
    servers = {
        f"tools[{index}]": {tool.name: tool.label for tool in group}
        for index, group in enumerate(builder.tool_groups(loaded, names))
        if isinstance(loaded.spec.tools[index], McpTools)
    }
    return {"mcp": servers}


def tools_json(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Tools as a model sees them, and as the loop treats them."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "execution": tool.execution,
            "idempotent": tool.idempotent,
            "timeout": tool.timeout,
        }
        for tool in tools
    ]


def _spec(loaded: Loaded) -> dict[str, Any]:
    data: dict[str, Any] = to_json(loaded.spec)
    data["name"] = loaded.name
    data.get("log", {}).pop("path", None)
    data.pop("extends", None)
    return without_rates(data)


def without_rates(spec: dict[str, Any]) -> dict[str, Any]:
    """A spec as JSON without how fast its models may be asked, which changes nothing of a run."""
    for model in (spec["model"], *spec["model"].get("fallback", ())):
        model.pop("rate", None)
    return spec
