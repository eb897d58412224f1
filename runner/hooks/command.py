"""Hooks that are programs: JSON on stdin, a JSON decision on stdout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runner import process
from runner.json_text import line, parse

TIMEOUT = 10.0
"""Seconds that a program has where the spec gives it no other time."""
MAX_OUTPUT = 16 << 20
"""Bytes that it may say."""


def command_hook(
    argv: Callable[[], Sequence[str]],
    *,
    folder: Path,
    workspace: Path,
    environment: Callable[[], Awaitable[Mapping[str, str]]],
    timeout: float | None = None,
) -> Callable[..., Any]:
    """What the loop calls for a program.

    Args:
        argv: Gives the program and its arguments.
        folder: Where a program that begins with ``./`` or ``../`` is looked for.
        workspace: Where it runs.
        environment: Gives all of its environment.
        timeout: Seconds after which it has failed; by default `TIMEOUT`.
    """
    limit = TIMEOUT if timeout is None else timeout

    async def hook(*args: Any) -> Any:
        program, *rest = argv()
        finished = await process.run(
            [process.program_path(program, folder), *rest],
            cwd=workspace,
            env=await environment(),
            stdin=line(args[0] if args else {}).encode(),
            time_limit=limit,
            max_output=MAX_OUTPUT,
        )
        return decision(program, finished, limit)

    return hook


def decision(program: str, finished: process.Finished, limit: float) -> Any:
    """The decision of a program.

    Raises:
        ValueError: if there is none; the message says why.
    """
    if finished.timed_out:
        raise ValueError(f"{program} timed out after {limit:g} s")
    if finished.exit_code != 0:
        said = finished.stderr.strip() or finished.stdout.strip()
        told = f": {said[:300]}" if said else ""
        raise ValueError(f"{program} ended with exit code {finished.exit_code}{told}")
    if finished.left_out:
        raise ValueError(f"{program} said more than {MAX_OUTPUT} bytes")
    if not finished.stdout.strip():
        raise ValueError(f"{program} said nothing; JSON is needed, null to let pass")
    try:
        return parse(finished.stdout)
    except ValueError as error:
        raise ValueError(f"{program} said no JSON: {error}") from None
