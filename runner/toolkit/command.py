"""Programs as tools: an argv of templates, never seen by a shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from runner.engine.contract import Cancellation, ToolResult, Update
from runner.error import TemplateError
from runner.toolkit.tool import SchemaTool, ToolOptions

if TYPE_CHECKING:
    from runner.process import Finished

Render = Callable[[str, Mapping[str, Any]], str]
"""Fills a template in with what it sees; may raise ``TemplateError``."""


class CommandTool(SchemaTool):
    """A program that a model can have run. What it says is the result.

    Args:
        name: See `SchemaTool`; so for the next two.
        description: For the model.
        parameters: JSON Schema of its arguments.
        argv: The program and its arguments, each a template that sees ``args``. What a template
            renders to is one argument, whatever is in it.
        render: Fills a template in.
        folder: Where a program that begins with ``./`` or ``../`` is looked for.
        workspace: Where it runs.
        environment: Gives all of its environment.
        options: See `ToolOptions`.
    """

    def __init__(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        argv: Sequence[str],
        *,
        render: Render,
        folder: Path,
        workspace: Path,
        environment: Callable[[], Mapping[str, str]],
        **options: Unpack[ToolOptions],
    ) -> None:
        super().__init__(name, description, parameters, **options)
        self._argv = argv
        self._render = render
        self._folder = folder
        self._workspace = workspace
        self._environment = environment

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Run the program; see `runner.engine.contract.Tool`.

        When it is stopped, its whole process group is ended, and what it said is the result.
        """
        try:
            argv = [self._render(item, {"args": params}) for item in self._argv]
        except TemplateError as error:
            return ToolResult(f"The command can't be made: {error}", is_error=True)
        # Imported when a program is run: a check of a spec runs none.
        from asyncio import CancelledError

        from runner.process import Child, program_path

        argv[0] = program_path(argv[0], self._folder)
        child = Child(argv, cwd=self._workspace, env=self._environment())
        try:
            return _result(await child.run())
        except CancelledError:
            said = _joined(child.stdout.text, child.stderr.text)
            return ToolResult(said, is_error=True)


def _result(finished: Finished) -> ToolResult:
    """What a program said; how it failed, if it did."""
    details: dict[str, Any] = {"exit_code": finished.exit_code}
    if finished.left_out:
        details["left_out"] = finished.left_out
    if finished.exit_code == 0:
        return ToolResult(finished.stdout or finished.stderr, details)
    if finished.exit_code < 0:
        failed = f"It was ended by signal {-finished.exit_code}."
    else:
        failed = f"It ended with exit code {finished.exit_code}."
    said = _joined(finished.stdout, finished.stderr)
    return ToolResult(f"{said}\n{failed}" if said else failed, details, is_error=True)


def _joined(stdout: str, stderr: str) -> str:
    return "\n".join(part.rstrip("\n") for part in (stdout, stderr) if part.strip())
