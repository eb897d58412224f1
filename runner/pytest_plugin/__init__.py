"""Specs and recorded logs as tests: pi-run's plug-in of pytest, which `docs/testing.md` explains.

Every pytest of an environment that has pi-run imports this module, so it imports nothing of pi-run
that is not small; the rest comes with the first spec, or the first use of a fixture.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runner.pytest_plugin.detect import is_spec
from runner.pytest_plugin.run import RunSpec

if TYPE_CHECKING:
    from runner.pytest_plugin.collect import Found, SpecFile

__all__ = ["RunSpec"]

_NAMED = 5
"""Of the specs that are not tested, how many are named."""
_found: pytest.StashKey[Found] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--record``, and the setting ``pi_run_specs``."""
    group = parser.getgroup("pi-run", "pi-run: specs and recorded logs as tests")
    # Where another plug-in has an option of that name, its users keep theirs.
    with contextlib.suppress(ValueError):
        group.addoption(
            "--record",
            action="store_true",
            dest="pi_run_record",
            help="Run each spec that has no recorded log beside it, and record one. "
            "--snapshot-update renews recorded logs. With CI set neither is done.",
        )
    parser.addini(
        "pi_run_specs",
        "Which YAML files may be specs: patterns, such as specs/*.yaml.",
        type="linelist",
        default=["*.yaml", "*.yml"],
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SpecFile | None:
    """Take a file for a test where it is a spec; all other YAML is left alone."""
    if file_path.suffix not in (".yaml", ".yml"):
        return None
    named = parent.session.isinitpath(file_path)
    if not named and not any(map(file_path.match, parent.config.getini("pi_run_specs"))):
        return None
    if not is_spec(file_path):
        return None
    from runner.pytest_plugin.collect import Found, SpecFile

    found = parent.config.stash.setdefault(_found, Found())
    return SpecFile.from_parent(parent, path=file_path, named=named, found=found)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out specs that can't be run alone, and that others use: their tests test them too."""
    found = config.stash.get(_found, None)
    if found is not None and (parts := found.parts_of(items)):
        items[:] = [item for item in items if item not in parts]
        config.hook.pytest_deselected(items=parts)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Name the specs that are not tested."""
    found = config.stash.get(_found, None)
    untested = found.untested() if found is not None else []
    if not untested:
        return []
    names = ", ".join(untested[:_NAMED]) + (", …" if untested[_NAMED:] else "")
    return [f"pi-run: not tested, since nothing is expected: {names}"]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folder of logs, if no failed test's log is in it."""
    if found := config.stash.get(_found, None):
        found.scratch.close()


@pytest.fixture
def run_spec(request: pytest.FixtureRequest, tmp_path: Path) -> RunSpec:
    """Runs a spec: ``run_spec("triage.yaml", issue="It crashes.")`` gives its `RunResult`.

    Paths are relative to the test's file. Inputs are given by name. The log is in ``tmp_path``.
    """
    return RunSpec(request.path.parent, tmp_path)


@pytest.fixture
def log_snapshot(request: pytest.FixtureRequest) -> Any:
    """The snapshot of a run's log: ``assert result.log == log_snapshot``. It needs syrupy."""
    try:
        from runner.pytest_plugin.snapshot import log_snapshot_of

        return log_snapshot_of(request.getfixturevalue("snapshot"), record=recording(request))
    except (ImportError, TypeError, pytest.FixtureLookupError):
        needed = "log_snapshot needs the plug-in syrupy; pip install 'pi-run[pytest]'"
    pytest.fail(needed, pytrace=False)


def recording(request: pytest.FixtureRequest) -> bool:
    """Whether logs are to be written where there are none."""
    return bool(request.config.getoption("pi_run_record", False)) and not os.environ.get("CI")
