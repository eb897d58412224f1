"""The one place that joins the edges to the engine: specs prepared, checked, run and replayed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.api.options import Ask, Asked, Control, OnEvent, OnLine, RunOptions, RunResult
    from runner.api.prepared import Compiled, Prepared, compile_spec, prepare
    from runner.api.runs import Ready, run, run_spec, run_spec_async
    from runner.api.static import check, explain, tools
    from runner.spec.load import read_data as read_yaml

__all__ = [
    "Ask",
    "Asked",
    "Compiled",
    "Control",
    "OnEvent",
    "OnLine",
    "Prepared",
    "Ready",
    "RunOptions",
    "RunResult",
    "check",
    "compile_spec",
    "explain",
    "prepare",
    "read_yaml",
    "run",
    "run_spec",
    "run_spec_async",
    "tools",
]

# Imported when they are asked for: a check needs nothing of the loop.
_HOMES = {
    "runner.api.static": ("check", "explain", "tools"),
    "runner.api.options": (
        *("Ask", "Asked", "Control", "OnEvent", "OnLine"),
        *("RunOptions", "RunResult"),
    ),
    "runner.api.prepared": ("Compiled", "Prepared", "compile_spec", "prepare"),
    "runner.api.runs": ("Ready", "run", "run_spec", "run_spec_async"),
}


def __getattr__(name: str) -> Any:
    if name == "read_yaml":
        return importlib.import_module("runner.spec.load").read_data
    for home, known in _HOMES.items():
        if name in known:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
