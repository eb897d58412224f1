"""``tools``: what a model may call."""

from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from runner.spec.mark import AgentFile, Program, Schema, Target, Template
from runner.spec.model.map import Map
from runner.spec.model.scalar import Seconds


class ToolOptions(Map):
    """What any tool may say of itself."""

    idempotent: bool | None = None
    """Whether it may be run again when it is unknown whether it ran; by default not."""
    execution: Literal["parallel", "sequential"] | None = None
    """`sequential`: a turn that calls this tool runs its calls one after another."""
    timeout: Seconds | None = None
    """Seconds after which it is stopped, and the call answered with an error result."""


class UseTool(ToolOptions):
    """A built-in tool with options."""

    tag: ClassVar = "use"

    use: str
    """The built-in's name."""
    name: str | None = None
    """What the model calls it; by default the built-in's name."""
    description: str | None = None
    """What the model reads about it; by default the built-in's own."""
    allow: list[str] | None = None
    """Of `shell`: patterns of the only commands that it runs, such as `git log *`."""


class PythonTool(ToolOptions):
    """A Python function with type hints, from which its schema is derived."""

    tag: ClassVar = "python"

    python: Annotated[str, Target()]
    """`PATH.py:NAME`, or `package.module:NAME`."""
    name: str | None = None
    """What the model calls it; by default the function's name."""
    description: str | None = None
    """What the model reads about it; by default the function's docstring."""


class CommandTool(ToolOptions):
    """A program."""

    tag: ClassVar = "command"

    name: str
    """What the model calls it."""
    description: str
    """What the model reads about it."""
    parameters: Annotated[dict[str, Any], Schema()] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    """JSON Schema of its arguments, an object."""
    command: Annotated[list[Annotated[str, Template("args")]], Program()]
    """The program and its arguments, each a template that also sees `args`. No shell is between."""


class AgentTool(ToolOptions):
    """Another spec; its inputs are the parameters, its final text is the result."""

    tag: ClassVar = "agent"

    agent: Annotated[str, AgentFile()]
    """The other spec's file."""
    name: str | None = None
    """What the model calls it; by default the other spec's name."""
    description: str | None = None
    """What the model reads about it; by default the other spec's description."""


Tool = str | UseTool | PythonTool | CommandTool | AgentTool
"""A built-in's plain name, or one of these."""
