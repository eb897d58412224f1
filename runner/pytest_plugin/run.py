"""The fixture `run_spec`: specs run from a test in Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.api import RunOptions, RunResult


class RunSpec:
    """Runs specs, each with a log of its own.

    Args:
        folder: What paths of specs are relative to.
        logs: Where the logs go.
    """

    def __init__(self, folder: Path, logs: Path) -> None:
        self._folder = folder
        self._logs = logs
        self._runs = 0

    def __call__(
        self,
        spec: str | os.PathLike[str],
        /,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
        **named: Any,
    ) -> RunResult:
        """Run a spec to its end, with a log in canonical form.

        Args:
            spec: The spec's file.
            inputs: Its inputs, those whose names are none in Python among them.
            options: All else that the command can be told, such as ``workspace``.
            named: Its inputs by their names.

        Raises:
            SpecError: with all that is wrong with the spec; nothing was run.
            UsageError: if it can't be run like that; nothing was run.
            LogError: if the log can't be written.
            RuntimeError: in an ``async`` test; there, await `runner.run_spec_async`.
        """
        __tracebackhide__ = True
        from dataclasses import replace

        from runner import api
        from runner.error import PiRunError

        options = options or api.RunOptions()
        values = {**options.values, **(inputs or {}), **named}
        log = options.log or str(self._log(Path(spec).stem))
        options = replace(options, values=values, log=log, frozen=True)
        try:
            return api.run_spec(shown(self._folder / spec), options=options)
        except PiRunError as error:
            # What pi-run did until then says nothing to who wrote the test.
            raise error.with_traceback(None) from None

    def _log(self, name: str) -> Path:
        self._runs += 1
        number = f"-{self._runs}" if self._runs > 1 else ""
        return self._logs / f"{name}{number}.jsonl"


def shown(path: Path) -> str:
    """A path as a person would write it here: relative to the current folder, if it is below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
