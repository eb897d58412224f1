"""The public surface is what `__all__` says, and all of it can be had."""

import subprocess
import sys

import runner


def test_all_is_sorted_and_importable() -> None:
    assert runner.__all__ == sorted(runner.__all__)
    for name in runner.__all__:
        assert getattr(runner, name) is not None


def test_nothing_else_is_public() -> None:
    assert dir(runner) == runner.__all__


def test_importing_it_costs_nothing_heavy() -> None:
    heavy = "{'asyncio', 'httpx', 'jinja2', 'jsonschema', 'pydantic', 'yaml', 'click'}"
    code = f"import runner, sys; print(sorted(set(sys.modules) & {heavy}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
