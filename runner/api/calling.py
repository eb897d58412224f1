"""One tool called by hand: in a run whose model does nothing but call it."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.api.options import Control, RunOptions
from runner.api.prepared import Prepared, prepare
from runner.api.runs import run
from runner.api.tooling import tool_names
from runner.error import SpecError, UsageError, did_you_mean
from runner.spec.load import load

_NOTHING: dict[str, Any] = {
    "prompt": "",
    "messages": [],
    "follow_ups": {},
    "steering": {},
    "output": None,
    "expect": [],
    "limits": {},
    "hooks.transform_context": [],
    "hooks.convert_to_llm": [],
    "hooks.stop_after_turn": [],
    "hooks.steering_messages": [],
    "hooks.follow_up_messages": [],
}
"""What a spec says beyond its tools and what is held against a call."""


@dataclass(slots=True)
class Called:
    """What came of a call."""

    name: str
    exit_code: int
    """0; 1 for an error result, 5 where a permission or a hook blocked it; else the run's."""
    error: str | None = None
    """Why the run ended otherwise than well."""
    is_error: bool = True
    content: list[dict[str, Any]] = field(default_factory=list)
    """Blocks, as in a log. No text in it has a secret."""
    details: Any = None


async def call_tool(
    path: str | None,
    name: str,
    arguments: dict[str, Any],
    options: RunOptions,
    control: Control | None = None,
) -> Called:
    """Call a tool as a model would: its hooks and the spec's permissions are asked.

    Args:
        path: The spec that has the tool; None for those that need no spec.
        name: What the model calls it.
        arguments: The call's.
        options: How the spec is run. No log is written.
        control: Ends the call.

    Raises:
        SpecError: with all that is wrong with the spec.
        UsageError: where there is no such tool.
    """
    calls = [{"name": name, "arguments": arguments}]
    changes: dict[str, Any] = {
        **_NOTHING,
        "model": {"provider": "scripted", "script": [{"tool_calls": calls}, {"text": ""}]},
    }
    if path is not None:
        load(path, sets=[f"{at}={text}" for at, text in options.sets])  # told by its own places
        sets = [*options.sets, *((at, json.dumps(value)) for at, value in changes.items())]
        prepared = prepare(path, replace(options, sets=sets, model=None, log="none"))
        return await _called(prepared, name, control)
    if name not in tool_names():
        raise UsageError(f'there is no tool "{name}"; {did_you_mean(name, tool_names())}')
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "call.yaml"
        spec = {"version": 1, "prompt": "", "model": changes["model"], "tools": [name]}
        file.write_text(json.dumps(spec), "utf-8")
        try:
            prepared = prepare(str(file), replace(options, model=None, log="none"))
        except SpecError as error:  # nobody knows this file
            raise UsageError("\n".join(fault.message for fault in error.faults)) from error
    # The file is gone before the tool is called, which may be killed.
    return await _called(prepared, name, control)


async def _called(prepared: Prepared, name: str, control: Control | None) -> Called:
    called, blocked = Called(name, 3), False

    def listen(event: dict[str, Any]) -> None:
        nonlocal blocked
        if "agent" in event:
            return
        if event["type"] == "tool_execution_end":
            called.is_error = event["is_error"]
            called.content = event["result"]["content"]
            called.details = event["result"].get("details")
        elif event["type"] == "hook_decision" and event["hook"] == "before_tool_call":
            blocked = blocked or event["action"] == "block"

    result = await run(prepared, on_event=listen, control=control)
    names = [tool.name for tool in prepared.plan.options.tools]
    if result.status == "ok" and name not in names:
        raise UsageError(f'{prepared.path} has no tool "{name}"; {did_you_mean(name, names)}')
    called.exit_code, called.error = result.exit_code, result.error
    if result.status == "ok":
        called.exit_code = 5 if blocked else int(called.is_error)
    return called
