"""The one place that joins the edges to the engine: specs prepared, checked, run and replayed."""

from runner.api.options import Control, RunOptions, RunResult
from runner.api.prepare import Prepared, check, explain, prepare, tools
from runner.api.run import OnEvent, OnLine, Ready, run, run_spec, run_spec_async
from runner.spec.load import read_data as read_yaml

__all__ = [
    "Control",
    "OnEvent",
    "OnLine",
    "Prepared",
    "Ready",
    "RunOptions",
    "RunResult",
    "check",
    "explain",
    "prepare",
    "read_yaml",
    "run",
    "run_spec",
    "run_spec_async",
    "tools",
]
