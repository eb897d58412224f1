"""Runs of specs, as the command does them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner.api.options import Control, OnEvent, OnLine, RunOptions, RunResult
from runner.api.plan_json import plan_json
from runner.api.prepared import Prepared, prepare
from runner.api.telling import Telling, now, runner_version
from runner.engine.contract import Clock
from runner.engine.event import FORMAT, RunStart
from runner.engine.run import Run
from runner.log.write import LogWriter
from runner.thread import run_in_loop


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
    options, writer = prepared.options, None
    if prepared.log or on_line:
        writer = LogWriter.open(
            prepared.log,
            outputs=[on_line] if on_line is not None else (),
            durable=options.durable,
            frozen=options.frozen,
        )
    clock, deltas = Clock(), prepared.loaded.spec.log.deltas
    telling = Telling(writer, clock, prepared.redactor, deltas=deltas, on_event=on_event)
    start = _start(prepared)
    one = Run(prepared.plan, start, telling.emitter, clock)
    return await telling.execute(one, start, control)


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
