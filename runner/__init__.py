"""pi-run: agent workflows written as plain specs; one loop, one event log."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.api import RunResult, run_spec, run_spec_async
    from runner.api.models import model
    from runner.engine.agent import Agent, AgentState
    from runner.engine.contract import (
        Cancellation,
        Clock,
        Model,
        Price,
        Provider,
        Retry,
        Tool,
        ToolResult,
    )
    from runner.engine.event import Event
    from runner.engine.hook import Hook, Hooks
    from runner.engine.limit import Limits
    from runner.engine.message import Message
    from runner.engine.options import AgentOptions
    from runner.error import LogError, PiRunError, ProviderError, SpecError, UsageError
    from runner.telemetry.listener import Telemetry
    from runner.toolkit.context import ToolContext
    from runner.toolkit.decorator import tool
    from runner.toolkit.python import from_function

__all__ = [
    "Agent",
    "AgentOptions",
    "AgentState",
    "Cancellation",
    "Clock",
    "Event",
    "Hook",
    "Hooks",
    "Limits",
    "LogError",
    "Message",
    "Model",
    "PiRunError",
    "Price",
    "Provider",
    "ProviderError",
    "Retry",
    "RunResult",
    "SpecError",
    "Telemetry",
    "Tool",
    "ToolContext",
    "ToolResult",
    "UsageError",
    "from_function",
    "model",
    "run_spec",
    "run_spec_async",
    "tool",
]

# Imported when they are asked for: `pi-run --help` needs none of them.
_HOMES = {
    "Agent": "runner.engine.agent",
    "AgentOptions": "runner.engine.options",
    "AgentState": "runner.engine.agent",
    "Cancellation": "runner.engine.contract",
    "Clock": "runner.engine.contract",
    "Event": "runner.engine.event",
    "Hook": "runner.engine.hook",
    "Hooks": "runner.engine.hook",
    "Limits": "runner.engine.limit",
    "LogError": "runner.error",
    "Message": "runner.engine.message",
    "Model": "runner.engine.contract",
    "PiRunError": "runner.error",
    "Price": "runner.engine.contract",
    "Provider": "runner.engine.contract",
    "ProviderError": "runner.error",
    "Retry": "runner.engine.contract",
    "RunResult": "runner.api",
    "SpecError": "runner.error",
    "Telemetry": "runner.telemetry.listener",
    "Tool": "runner.engine.contract",
    "ToolContext": "runner.toolkit.context",
    "ToolResult": "runner.engine.contract",
    "UsageError": "runner.error",
    "from_function": "runner.toolkit.python",
    "model": "runner.api.models",
    "run_spec": "runner.api",
    "run_spec_async": "runner.api",
    "tool": "runner.toolkit.decorator",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__
