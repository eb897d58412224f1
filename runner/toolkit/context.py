"""What a function that is a tool may know of the call it works for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.engine.contract import Cancellation, Update
from runner.json_text import parse
from runner.toolkit.result import json_of
from runner.toolkit.workspace import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class ToolContext:
    """The call that a function works for, if it has a parameter of this type."""

    tool_call_id: str
    """The call's id, as it stands in the log."""
    workspace: Path
    """The folder that the tool is to stay inside."""
    environment: Mapping[str, str]
    """The environment for child processes: this process's own, without secrets."""
    _on_update: Update
    _cancellation: Cancellation

    @property
    def files(self) -> Workspace:
        """The files of the workspace, of which no path leads out of it."""
        return Workspace(self.workspace)

    @property
    def cancelled(self) -> bool:
        """Whether to stop and to return what there is so far. True at a timeout or an abort."""
        return self._cancellation.cancelled

    def update(self, content: Any) -> None:
        """Tell how far the work is, from any thread: a text, or anything else that is JSON."""
        self._on_update(content if isinstance(content, str) else parse(json_of(content)))
