"""Programs as tools: what their arguments can't become, and what they print."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.engine.contract import Cancellation, ToolResult
from runner.spec.template import Template
from runner.toolkit.command import CommandTool


async def inherited() -> dict[str, str]:
    return dict(os.environ)


def render(template: str, values: Mapping[str, Any]) -> str:
    return Template(template, "here").render({"inputs": {"x": "-author"}, **values})


def made(at: Path, *argv: str, **options: Any) -> CommandTool:
    return CommandTool(
        "say",
        "Say it.",
        {"type": "object"},
        argv,
        render=render,
        folder=at,
        workspace=at,
        environment=inherited,
        **options,
    )


def run_tool(tool: CommandTool, **arguments: Any) -> ToolResult:
    return asyncio.run(tool.execute("call_1", arguments, lambda _: None, Cancellation()))


@pytest.mark.parametrize(
    ("items", "value", "is_run"),
    [
        (["{{ args.x }}"], "-n", False),
        (["{{ args.x }}"], "--help", False),
        ([" {% if true %}{{ args.x }}{% endif %}"], "-n", True),  # a blank stands before it
        (["{% if true %}{{ args.x }}{% endif %}"], "-n", False),
        (["--", "{{ args.x }}"], "-n", True),
        (["--x={{ args.x }}"], "-n", True),
        (["./{{ args.x }}"], "-n", True),
        (["{{ args.x }}", "--"], "-n", False),
        (["{{ args.x }}"], "-5", True),
        (["{{ args.x }}"], "-2.5", True),
        (["{{ args.x }}"], "-5n", False),
        (["{{ args.x }}"], "-", True),
        (["{{ args.x }}"], "a -n", True),
        (["{{ inputs.x }}"], "-n", True),
    ],
)
def test_no_argument_becomes_an_option(
    tmp_path: Path, items: list[str], value: str, is_run: bool
) -> None:
    echo = ["true", *items]
    result = run_tool(made(tmp_path, *echo), x=value)
    assert result.is_error == (not is_run)
    if not is_run:
        assert "would take it for an option" in str(result.content)
    assert not run_tool(made(tmp_path, *echo, allow_options=True), x=value).is_error


def test_json_is_held_to_be_json(tmp_path: Path) -> None:
    said = run_tool(made(tmp_path, "echo", '{"a": [1, 2.0]}', is_json=True))
    assert said.content == '{"a":[1,2.0]}'
    for bad in ("{", "NaN", "", "[" * 100_000):
        result = run_tool(made(tmp_path, "printf", "%s", bad, is_json=True))
        assert result.is_error
        assert "no JSON" in str(result.content)
