import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PiRun = Callable[..., Any]


@pytest.fixture
def log(pi_run: PiRun, spec: Callable[..., Path]) -> str:
    """The log of a run."""
    spec()
    done = pi_run("spec.yaml", "--log", "run.jsonl")
    assert done.returncode == 0, done.stderr
    return "run.jsonl"


def test_a_trace_goes_to_a_file_or_to_stdout(pi_run: PiRun, folder: Path, log: str) -> None:
    done = pi_run("export", log, "--chrome", "trace.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "trace.json: written\n")
    whole = json.loads((folder / "trace.json").read_text(encoding="utf-8"))
    slices = [event["name"] for event in whole["traceEvents"] if event["ph"] == "B"]
    assert slices == ["invoke_agent spec", "task main", "turn 1", "chat scripted"]

    printed = pi_run("export", log, "--chrome", "-")
    assert json.loads(printed.stdout) == whole
    assert "hello" not in printed.stdout
    assert "hello" in pi_run("export", log, "--chrome", "-", "--content").stdout


def test_a_trace_does_not_take_its_log_s_place(pi_run: PiRun, folder: Path, log: str) -> None:
    before = (folder / log).read_bytes()
    done = pi_run("export", log, "--chrome", log)

    assert done.returncode == 2
    assert done.stderr == "pi-run: --chrome run.jsonl: it is the log; name another file\n"
    assert (folder / log).read_bytes() == before


def test_it_asks_where_to(pi_run: PiRun, log: str) -> None:
    # A run's PI_RUN_OTLP is no wish to send old logs.
    done = pi_run("export", log, env={"PI_RUN_OTLP": "http://127.0.0.1:1"})

    assert done.returncode == 2
    assert "give --chrome FILE, or --otlp [ENDPOINT]" in done.stderr


def test_a_log_without_times_leaves_no_file(pi_run: PiRun, folder: Path, log: str) -> None:
    assert pi_run("spec.yaml", "--frozen", "--log", "frozen.jsonl").returncode == 0
    done = pi_run("export", "frozen.jsonl", "--chrome", "trace.json")

    assert done.returncode == 2
    assert done.stderr.startswith("pi-run: frozen.jsonl: a canonical log has no times")
    assert done.stderr.count("\n") == 1
    assert not (folder / "trace.json").exists()


def test_a_broken_log_is_told_by_its_line(pi_run: PiRun, folder: Path, log: str) -> None:
    lines = (folder / log).read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "broken.jsonl").write_text("".join([*lines[:3], "x\n", *lines[4:]]), encoding="utf-8")
    done = pi_run("export", "broken.jsonl", "--chrome", "trace.json")

    assert done.returncode == 6
    assert done.stderr.startswith("pi-run: broken.jsonl: line 4: is not JSON")
    (folder / "torn.jsonl").write_text("".join([*lines[:3], '{"seq":']), encoding="utf-8")
    torn = pi_run("export", "torn.jsonl", "--chrome", "-")
    assert torn.returncode == 0
    assert "was cut off" in torn.stderr
    assert json.loads(torn.stdout)["traceEvents"][-1]["args"]["error.type"] == "unfinished"


def test_a_log_that_can_t_be_sent_is_an_error(pi_run: PiRun, log: str) -> None:
    done = pi_run("export", log, "--otlp", "http://127.0.0.1:1/v1/traces")

    assert done.returncode == 6
    told = "pi-run: 3 spans could not be sent to http://127.0.0.1:1: connection refused\n"
    assert (done.stdout, done.stderr) == ("", told)


def test_a_run_without_a_collector_is_a_run_all_the_same(
    pi_run: PiRun, spec: Callable[..., Path]
) -> None:
    spec()
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    done = pi_run("spec.yaml", "--log", "none", "-q", "--otlp", env=environ)
    told = (
        "pi-run: telemetry: 3 spans could not be sent to http://127.0.0.1:1: connection refused\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", told)

    asked = pi_run("spec.yaml", "--log", "none", "-q", env={"PI_RUN_OTLP": "http://127.0.0.1:1"})
    assert asked.stderr == told
    for off in ({}, {"PI_RUN_OTLP": "0"}):
        assert pi_run("spec.yaml", "--log", "none", "-q", env=environ | off).stderr == ""


def test_a_spec_is_no_address(pi_run: PiRun, spec: Callable[..., Path]) -> None:
    spec()
    done = pi_run("run", "--otlp", "spec.yaml")

    assert done.returncode == 2
    assert '"spec.yaml" is no address of a collector, such as http://localhost:4318' in done.stderr


def test_without_the_extra_nothing_is_run(
    pi_run: PiRun, spec: Callable[..., Path], folder: Path, log: str
) -> None:
    package = folder / "without" / "opentelemetry"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(package.parent), os.environ.get("PYTHONPATH")]))
    for words in (["spec.yaml", "--otlp"], ["export", log, "--otlp"]):
        done = pi_run(*words, env={"PYTHONPATH": path})
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr == (
            "pi-run: OpenTelemetry is not installed, which telemetry needs; "
            "pip install 'pi-run[otel]'\n"
        )
