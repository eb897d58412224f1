"""What a run gives to its tools, besides the arguments of each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.toolkit.outputs import Outputs


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What is around a tool."""

    workspace: Path
    """The folder that it is to stay inside."""
    environment: Callable[[], Mapping[str, str]]
    """Gives the environment for its child processes."""
    more_environment: Callable[[], Awaitable[Mapping[str, str]]] | None = None
    """Gives what a call adds to that; may raise ``PiRunError`` for what can't be had."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What its entry in the spec says beyond what any tool may say of itself."""
    read_only: bool = False
    """Whether nothing may be changed."""
    confine: Callable[[Sequence[str]], Sequence[str]] | None = None
    """Makes an argv that runs another one in a sandbox."""
    ask: Callable[[str], Awaitable[str]] | None = None
    """Asks who sits at the terminal; None where nobody does."""
    outputs: Outputs | None = None
    """Where outputs are kept that were too long for a model."""
    output_schema: Mapping[str, Any] | None = None
    """The JSON Schema that the answer of the agent is to fit, if there is one."""
