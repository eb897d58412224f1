"""``expect`` and ``output``: what a run is held against."""

from typing import Annotated, Any, ClassVar

from runner.spec.mark import AgentFile, Expression, Program, Regex, Schema
from runner.spec.model.map import Map
from runner.spec.model.scalar import Count, Text, Whole


class ToolCalled(Map):
    """Calls of a tool that must have been run."""

    name: str
    """The tool's name."""
    args: dict[str, Any] | None = None
    """Arguments that a call has, among others."""
    times: Whole | None = None
    """How many such calls there are; by default at least one."""
    order: Count | None = None
    """Which call of the run it is, counted from 1."""
    refused: bool | None = None
    """Whether calls count too that were refused, and not run; by default not."""


class Expectation(Map):
    """One thing that is to hold when a task, or the whole run, is done."""

    one_of: ClassVar = (
        "contains",
        "not_contains",
        "equals",
        "matches",
        "json_schema",
        "tool_called",
        "tool_not_called",
        "that",
        "command",
        "agent",
    )

    contains: str | None = None
    """The final text has this in it."""
    not_contains: str | None = None
    """The final text doesn't have this in it."""
    equals: str | list[Any] | dict[str, Any] | None = None
    """The final text is this; a list or a map: the output is."""
    matches: Annotated[str, Regex()] | None = None
    """This regular expression is found in the final text."""
    json_schema: Annotated[dict[str, Any] | bool, Schema()] | None = None
    """The final text is JSON that fits this JSON Schema."""
    tool_called: str | ToolCalled | None = None
    """A tool that was run, and not only asked for: its name, or more about its calls."""
    tool_not_called: str | None = None
    """A tool that was not called, not even by a call that was refused."""
    that: Annotated[str, Expression("result")] | None = None
    """An expression that holds; it also sees `result`."""
    command: Annotated[list[Text], Program()] | None = None
    """A program that ends with exit code 0; it gets the result as JSON on stdin."""
    agent: Annotated[str, AgentFile()] | None = None
    """Another spec that judges the result."""


class Output(Map):
    """The form of the main task's answer."""

    schema: Annotated[dict[str, Any] | bool, Schema()]
    """JSON Schema of the answer, which is then JSON."""
    retries: Whole = 2
    """How often the model is told what is wrong, and asked again."""
