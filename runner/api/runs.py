"""Runs of specs, as the command does them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from runner.api.options import Control, RunOptions, RunResult
from runner.api.plan_json import plan_json
from runner.api.prepared import Prepared, prepare
from runner.engine.contract import Clock
from runner.engine.emit import Emitter
from runner.engine.event import FORMAT, Event, RunStart
from runner.engine.plan import Expected
from runner.engine.run import Ended, Run
from runner.error import LogError, PiRunError, describe
from runner.log.write import LogWriter
from runner.thread import run_in_loop

OnEvent = Callable[[dict[str, Any]], None]
OnLine = Callable[[str], None]


def run_spec(
    spec: str | Path,
    *,
    inputs: Mapping[str, Any] | None = None,
    on_event: OnEvent | None = None,
    options: RunOptions | None = None,
) -> RunResult:
    """Run a spec to its end; ``pi-run SPEC`` does the same.

    Args:
        spec: The spec's file.
        inputs: Its inputs, as JSON values.
        on_event: Is called with each event, as it stands in the log.
        options: All else that the command can be told. Without it no log is written.

    Raises:
        SpecError: with all that is wrong with the spec; nothing was run.
        UsageError: if it can't be run like that; nothing was run.
        LogError: if the log can't be written.
        RuntimeError: in a running event loop; there, await `run_spec_async`.
    """
    work = run_spec_async(spec, inputs=inputs, on_event=on_event, options=options)
    return run_in_loop(work)


async def run_spec_async(
    spec: str | Path,
    *,
    inputs: Mapping[str, Any] | None = None,
    on_event: OnEvent | None = None,
    options: RunOptions | None = None,
    control: Control | None = None,
) -> RunResult:
    """As `run_spec`, in a running event loop. ``control`` steers the run, or ends it."""
    options = options or RunOptions(log="none")
    if inputs:
        # The caller's own options may be those of other runs too.
        options = replace(options, values={**options.values, **inputs})
    return await run(prepare(str(spec), options), on_event=on_event, control=control)


class Ready:
    """A spec that was prepared, as work to be done."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared

    async def run(
        self,
        *,
        on_event: OnEvent | None = None,
        on_line: OnLine | None = None,
        control: Control | None = None,
    ) -> RunResult:
        """Run it; see `run`."""
        return await run(self.prepared, on_event=on_event, on_line=on_line, control=control)


async def run(
    prepared: Prepared,
    *,
    on_event: OnEvent | None = None,
    on_line: OnLine | None = None,
    control: Control | None = None,
) -> RunResult:
    """Run what was prepared.

    Args:
        prepared: Used up by this.
        on_event: Is called with each event.
        on_line: Gets the log's lines, as they are in the log.
        control: Steers the run, or ends it.

    Raises:
        LogError: if the log can't be begun; nothing was run then.
    """
    try:
        await prepared.start(control)
        return await _run(prepared, on_event, on_line, control)
    finally:
        await prepared.close()


async def _run(
    prepared: Prepared,
    on_event: OnEvent | None,
    on_line: OnLine | None,
    control: Control | None,
) -> RunResult:
    """Run what was prepared and started."""
    options = prepared.options
    writer = LogWriter.open(
        prepared.log,
        outputs=[on_line] if on_line is not None else (),
        durable=options.durable,
        frozen=options.frozen,
    )
    clock = Clock()
    emitter = Emitter(
        clock,
        sink=cast("Callable[[Event], None]", writer.write) if prepared.log or on_line else None,
        redactor=prepared.redactor,
        deltas=prepared.loaded.spec.log.deltas,
    )
    if on_event is not None:
        emitter.subscribe(cast("Any", on_event))
    one = Run(prepared.plan, _start(prepared), emitter, clock)
    if control is not None:
        control._attach(one)
    ended = await one.execute()
    try:
        writer.close()
    except LogError as error:
        ended.log_error = ended.log_error or error
    if ended.bug is not None:
        raise ended.bug
    return result_of(
        ended,
        prepared.redactor.text,
        name=prepared.name,
        path=prepared.path,
        run_id=prepared.run_id,
        log=prepared.log,
    )


def _start(prepared: Prepared) -> RunStart:
    loaded, options = prepared.loaded, prepared.options
    flags = {
        "set": [list(change) for change in options.sets],
        "model": options.model,
        "prompt": options.prompt,
        "yes": options.yes,
    }
    return {
        "type": "run_start",
        "format": FORMAT,
        "run_id": prepared.run_id,
        "runner_version": runner_version(),
        "started_at": now(),
        "spec": {"name": loaded.name, "path": loaded.file, "sha256": loaded.sha256},
        "plan": plan_json(loaded, prepared.plan, prepared.builder, prepared.inputs, flags),
        "inputs": prepared.inputs,
    }


def now() -> str:
    """The time, UTC, as it stands in a log."""
    text = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def runner_version() -> str:
    """The version of pi-run that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pi-run")
    except PackageNotFoundError:
        return "unknown"


def result_of(
    ended: Ended,
    redacted: Callable[[str], str],
    *,
    name: str,
    path: str,
    run_id: str,
    log: Path | None,
) -> RunResult:
    """What came of a run, for those who asked for it."""
    end = ended.event
    status, code, error = end["status"], end["exit_code"], end.get("error")
    if ended.log_error is not None:
        status, error = "error", describe(ended.log_error)
        code = ended.log_error.exit_code if isinstance(ended.log_error, PiRunError) else 6
    return RunResult(
        name=name,
        path=path,
        run_id=run_id,
        status=status,
        exit_code=code,
        text=end["text"],
        output=end["output"],
        usage=dict(cast("dict[str, int]", end["usage"])),
        cost_usd=end["cost_usd"],
        turns=end["turns"],
        tool_calls=end["tool_calls"],
        seconds=end.get("seconds", 0.0),
        log=str(log) if log is not None else None,
        expectations=[_expectation(one, redacted) for one in ended.expected],
        error=error,
    )


def _expectation(one: Expected, redacted: Callable[[str], str]) -> dict[str, Any]:
    place = one.expectation.place
    return {
        "task_id": one.task_id,
        "kind": one.expectation.kind,
        "passed": one.verdict.passed,
        "detail": redacted(one.verdict.detail),
        "file": place.file if place is not None else None,
        "line": place.line if place is not None else None,
        "column": place.column if place is not None else None,
    }
