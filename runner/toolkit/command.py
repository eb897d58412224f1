"""Programs as tools: an argv of templates, never seen by a shell."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from runner.engine.contract import Cancellation, ToolResult, Update
from runner.error import PiRunError
from runner.json_text import line, parse
from runner.toolkit.tool import SchemaTool, ToolOptions

if TYPE_CHECKING:
    from runner.process import Finished

OPTION = (
    'Not run: "{value:.100}" begins with "-", and {program} would take it for an option. Give '
    "another value, such as ./-name for a file."
)
_ARGUMENT = re.compile(r"\bargs\b")
_NUMBER = re.compile(r"-\d+(?:\.\d+)?")
_SHOWN = 2_000
"""Characters that are shown of what should have been JSON."""
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
        environment: Gives all of its environment; may raise ``PiRunError`` for what can't be had.
        confine: Makes an argv that runs another one in a sandbox.
        allow_options: Whether an argument that is an item by itself may begin with ``-``.
        is_json: Whether what it prints has to be JSON.
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
        environment: Callable[[], Awaitable[Mapping[str, str]]],
        confine: Callable[[Sequence[str]], Sequence[str]] | None = None,
        allow_options: bool = False,
        is_json: bool = False,
        **options: Unpack[ToolOptions],
    ) -> None:
        super().__init__(name, description, parameters, **options)
        self._argv = argv
        self._render = render
        self._folder = folder
        self._workspace = workspace
        self._environment = environment
        self._confine = confine
        self._allow_options = allow_options
        self._is_json = is_json

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
            env = await self._environment()
        except PiRunError as error:
            return ToolResult(f"The command can't be made: {error}", is_error=True)
        if not self._allow_options and (option := _option_among(self._argv, argv)):
            return ToolResult(OPTION.format(value=option, program=argv[0]), is_error=True)
        # Imported when a program is run: a check of a spec runs none.
        from asyncio import CancelledError

        from runner.process import Child, program_path

        argv[0] = program_path(argv[0], self._folder)
        if self._confine is not None:
            argv = list(self._confine(argv))
        child = Child(argv, cwd=self._workspace, env=env)
        try:
            return _result(await child.run(), is_json=self._is_json)
        except CancelledError:
            said = _joined(child.stdout.text, child.stderr.text)
            return ToolResult(said, is_error=True)


def _option_among(items: Sequence[str], argv: Sequence[str]) -> str | None:
    """An argument of the call that a program would take for an option, if there is one.

    That is one which is an item by itself and begins with ``-``, with no ``--`` before it. What an
    item begins with in the spec (``--name={{ … }}``) is the author's, and a number is harmless.
    """
    for item, value in zip(items[1:], argv[1:], strict=True):
        if item == "--":
            return None
        is_argument = item.lstrip().startswith(("{{", "{%")) and _ARGUMENT.search(item)
        if is_argument and value.startswith("-") and not _NUMBER.fullmatch(value) and value != "-":
            return value
    return None


def _result(finished: Finished, *, is_json: bool = False) -> ToolResult:
    """What a program said; how it failed, if it did."""
    details: dict[str, Any] = {"exit_code": finished.exit_code}
    if finished.left_out:
        details["left_out"] = finished.left_out
    if finished.exit_code == 0 and is_json:
        return _json_result(finished.stdout, details)
    if finished.exit_code == 0:
        return ToolResult(finished.stdout or finished.stderr, details)
    if finished.exit_code < 0:
        failed = f"It was ended by signal {-finished.exit_code}."
    else:
        failed = f"It ended with exit code {finished.exit_code}."
    said = _joined(finished.stdout, finished.stderr)
    return ToolResult(f"{said}\n{failed}" if said else failed, details, is_error=True)


def _json_result(stdout: str, details: dict[str, Any]) -> ToolResult:
    try:
        return ToolResult(line(parse(stdout)), details)
    except (ValueError, RecursionError) as error:
        said = f"It printed what is no JSON: {error}\n{stdout[:_SHOWN]}"
        return ToolResult(said.rstrip(), details, is_error=True)


def _joined(stdout: str, stderr: str) -> str:
    return "\n".join(part.rstrip("\n") for part in (stdout, stderr) if part.strip())
