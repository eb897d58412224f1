"""Built-in tools, each made as a spec makes it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.bundled import folder
from runner.engine.contract import Cancellation, ToolResult
from runner.python_file import load_callable
from runner.toolkit.python import FunctionTool, from_function

Call = Callable[..., ToolResult]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace, and beside it a secret that no tool may come to."""
    room = tmp_path / "room"
    room.mkdir()
    (tmp_path / "secret.txt").write_text("outside text\n", encoding="utf-8")
    return room


@pytest.fixture
def made(workspace: Path) -> Callable[[str], FunctionTool]:
    def make(name: str) -> FunctionTool:
        tools = folder("tools")
        return from_function(load_callable(f"{tools}/{name}.py:{name}", tools), workspace=workspace)

    return make


@pytest.fixture
def call(made: Callable[[str], FunctionTool]) -> Call:
    def run(name: str, **arguments: Any) -> ToolResult:
        tool = made(name)
        assert not tool.check(arguments)
        return asyncio.run(tool.execute("call_1", arguments, lambda _: None, Cancellation()))

    return run
