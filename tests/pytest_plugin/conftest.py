from collections.abc import Callable

import jinja2  # noqa: F401
import jsonschema  # noqa: F401
import pytest
import yaml  # noqa: F401

import runner.api.replay  # noqa: F401
import runner.pytest_plugin.collect  # noqa: F401
import runner.pytest_plugin.snapshot  # noqa: F401

# A pytest in this process forgets what it imported, which costs time, and which PyYAML's extension
# in C does not survive; so all of it is imported here before.

SPEC = """\
version: 1
model: {{provider: scripted, script: [{{text: {text}}}]}}
prompt: How are you?
"""

Write = Callable[..., None]


INI = """\
[pytest]
filterwarnings = error
# It takes seconds to say what it found.
addopts = -p no:hypothesispytest
"""


@pytest.fixture(autouse=True)
def _own_machine(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The pytest under test is neither in a CI nor a worker of the one that tests it."""
    pytester.makeini(INI)
    temporary = str(tmp_path_factory.mktemp("temporary"))
    monkeypatch.setenv("TMPDIR", temporary)
    monkeypatch.setattr("tempfile.tempdir", temporary)
    for name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def write(pytester: pytest.Pytester) -> Write:
    """Write specs whose model says a text: by name, what each has besides."""

    def write(text: str = "all is well", /, **specs: str) -> None:
        for name, added in specs.items():
            file = pytester.path / f"{name}.yaml"
            file.write_text(SPEC.format(text=text) + added, encoding="utf-8")

    return write
