"""The plan of a run as JSON: its first line's, with all that a replay needs and no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.engine.contract import Tool
from runner.engine.message import text_of
from runner.engine.plan import Plan
from runner.spec.decode import to_json
from runner.spec.loaded import Loaded

Tools = Mapping[int, Sequence[Tool]]


def plan_json(
    loaded: Loaded, plan: Plan, environ: Mapping[str, str], flags: Mapping[str, Any]
) -> dict[str, Any]:
    """The spec as resolved, rendered and defaulted.

    It decodes to a spec again. What is not of the spec stands under ``resolved``: the values of the
    environment that it reads, its tools as the model sees them, the specs that it uses, and the
    flags that changed the run.
    """
    data = _spec(loaded)
    data["system_prompt"] = plan.options.system_prompt
    data["prompt"] = text_of(plan.prompts[0]["content"])
    data["messages"] = list(plan.options.messages)
    resolved: dict[str, Any] = {
        "env": loaded.environment_values(environ),
        "tools": tools_json(plan.options.tools),
        "agents": {path: agent_json(other, environ) for path, other in loaded.agents.items()},
    }
    if given := {key: value for key, value in flags.items() if value}:
        resolved["flags"] = given
    return {**data, "resolved": resolved}


def agent_json(loaded: Loaded, environ: Mapping[str, str]) -> dict[str, Any]:
    """A spec that another one uses; its prompts are templates still."""
    return {
        **_spec(loaded),
        "resolved": {
            "env": loaded.environment_values(environ),
            "agents": {path: agent_json(other, environ) for path, other in loaded.agents.items()},
        },
    }


def tools_json(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Tools as a model sees them, and as the loop treats them."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "execution": tool.execution,
            "idempotent": tool.idempotent,
        }
        for tool in tools
    ]


def _spec(loaded: Loaded) -> dict[str, Any]:
    data: dict[str, Any] = to_json(loaded.spec)
    data["name"] = loaded.name
    data.get("log", {}).pop("path", None)
    data.pop("extends", None)
    return data
