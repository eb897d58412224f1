"""Functions as tools: type hints make the schema, the docstring makes the description."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from runner.engine.contract import Cancellation, ToolResult, Update
from runner.error import PiRunError
from runner.toolkit.arguments import AnswerArguments, Arguments, read_arguments
from runner.toolkit.context import ToolContext
from runner.toolkit.decorator import mark_of, tool
from runner.toolkit.result import to_result
from runner.toolkit.signature import Signature, read_signature
from runner.toolkit.surroundings import Surroundings
from runner.toolkit.tool import SchemaTool, ToolOptions

__all__ = ["FunctionTool", "ToolContext", "from_function", "tool"]


class FunctionTool(SchemaTool):
    """A function that a model can call. An async one is awaited, any other runs in a thread."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        arguments: Arguments,
        name: str,
        description: str,
        surroundings: Surroundings,
        *,
        apart: bool = False,
        **options: Unpack[ToolOptions],
    ) -> None:
        super().__init__(name, description, arguments.schema, **options)
        self._function = function
        self._context_name = signature.context_name
        self._arguments = arguments
        self._surroundings = surroundings
        self._apart = apart
        called = function if inspect.isroutine(function) else type(function).__call__
        self._is_async = inspect.iscoroutinefunction(called)

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        """All ways in which arguments don't fit the schema, or else the function's own types."""
        return super().check(arguments) or self._arguments.faults(arguments)

    async def preview(self, arguments: dict[str, Any]) -> str | None:
        """What a call would change, for a person; None where the function's mark tells nothing."""
        mark = mark_of(self._function)
        if mark is None or mark.preview is None:
            return None
        from runner.thread import call_in_thread

        tell, values = mark.preview, self._arguments.convert(arguments)
        if self._context_name is not None:
            values[self._context_name] = self._call("", lambda _: None, Cancellation(), {})
        return await call_in_thread(lambda: tell(**values), f"preview of {self.name}")

    def _call(
        self,
        tool_call_id: str,
        on_update: Update,
        cancellation: Cancellation,
        more_environment: Mapping[str, str],
    ) -> ToolContext:
        from asyncio import get_running_loop

        return ToolContext(
            tool_call_id,
            self.name,
            self._surroundings,
            on_update,
            cancellation,
            get_running_loop(),
            more_environment,
        )

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Call the function; see `runner.engine.contract.Tool`."""
        # Imported when a function is called: a check of a spec calls none.
        from runner.thread import call_in_thread

        values = self._arguments.convert(params)
        if self._context_name is not None:
            more = self._surroundings.more_environment
            try:
                added = {} if more is None else await more()
            except PiRunError as error:
                return ToolResult(f"Its environment can't be made: {error}", is_error=True)
            values[self._context_name] = self._call(tool_call_id, on_update, cancellation, added)
        if self._is_async:
            return to_result(await self._awaited(lambda: self._function(**values)))
        # One that can see that it is to stop is given the time to say what it has.
        given = await call_in_thread(
            lambda: self._function(**values), self.name, patient=self._context_name is not None
        )
        if inspect.isawaitable(given):
            awaitable = given
            given = await self._awaited(lambda: awaitable)
        return to_result(given)

    async def _awaited(self, make: Callable[[], Any]) -> Any:
        if self._apart:
            from runner.apart import await_apart

            return await await_apart(make)
        from runner.thread import await_safely

        return await await_safely(make())


def from_function(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    workspace: Path | None = None,
    environment: Callable[[], Mapping[str, str]] = lambda: os.environ,
    surroundings: Surroundings | None = None,
    apart: bool = False,
    **options: Unpack[ToolOptions],
) -> FunctionTool:
    """Make a tool of a function.

    Args:
        function: The function, or anything else that can be called by names.
        name: The name for the model; else the decorator's, else the function's.
        description: For the model; else the decorator's, else the docstring's.
        workspace: What its `ToolContext` says is the workspace; by default the current folder.
        environment: Gives the environment for its child processes; by default this process's.
        surroundings: What it has around it, these two included; they are not looked at then.
        apart: Whether an async function runs in an event loop of its own, so that one which never
            awaits holds up no run. Without, it runs in the loop that runs the agent.
        options: See `ToolOptions`; they win over the decorator's.

    Raises:
        UsageError: if a model can't call it: its name, a parameter or a type hint is not fit.
    """
    mark = mark_of(function)
    signature = read_signature(function)
    if mark is not None:
        name = name or mark.name
        description = mark.description if description is None else description
        options = {**mark.options, **options}
    around = surroundings or Surroundings(workspace or Path.cwd(), environment)
    arguments = read_arguments(signature)
    if mark is not None and mark.answers and around.output_schema is not None:
        arguments = AnswerArguments(signature, around.output_schema)
    return FunctionTool(
        function,
        signature,
        arguments,
        name or signature.name,
        description if description is not None else signature.text,
        around,
        apart=apart,
        **options,
    )
