"""Runs that go on in the log that they left: after a crash, a kill, an abort, a limit, an error."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from runner.api.build import Builder
from runner.api.driven import Driven
from runner.api.going_on import GoingOn, Open, open_calls
from runner.api.live import Live
from runner.api.options import Control, OnEvent, OnLine, RunResult
from runner.api.plan_json import plan_json
from runner.api.replay import Recording, changes_of, start_of
from runner.api.telling import Telling
from runner.engine.plan import Plan
from runner.engine.run import Run
from runner.error import LogError, UsageError
from runner.log.drive import Drive, DrivenClock
from runner.log.survey import Call
from runner.log.write import LogWriter
from runner.spec.load import load
from runner.spec.loaded import Loaded


@dataclass(slots=True)
class ResumeOptions:
    """How a run is to go on."""

    sets: list[tuple[str, str]] = field(default_factory=list)
    """Changes to its spec: a PATH in it and the YAML text of a value."""
    open: Open | None = None
    """What becomes of calls that were under way: answered as unknown, run again, or nothing is
    done at all; None: run again where their tool is idempotent."""
    accept_spec_change: bool = False
    """Whether it goes on by its spec as that is now, where it has changed."""
    workspace: str | None = None
    durable: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    secrets: Mapping[str, Any] = field(default_factory=dict)
    """Values of secret inputs, of which the log has only placeholders."""
    interactive: bool = False
    """Whether a person sits at the terminal who can be asked."""
    paced: bool = False
    """Whether it is one of many, which slow down together where a model's server refuses some."""


class Resumption:
    """A run that can go on.

    Raises:
        LogError: where its log can't be read.
        UsageError: where there is nothing to go on with, or its spec has changed.
    """

    def __init__(self, log: str | Path, options: ResumeOptions) -> None:
        self.options = options
        self.recording = Recording(log)
        self.survey = self.recording.survey
        known = {k: v for k, v in options.secrets.items() if k in self.recording.inputs}
        self.recording.inputs = self.recording.inputs | known
        self._refuse_what_is_done()
        self.rerun, self.unknown = self._open_calls()
        self._redactor = self.recording.redactor()
        self._drive = Drive(self.recording.tape(), self.survey)
        self._drive.rerun = frozenset(self.rerun)
        environ = {**options.environ, **self.recording.environ()}
        workspace = Path(options.workspace or self.recording.plan.get("workspace") or ".")
        yes = self.recording.answered_yes
        live = self._live = Live(
            environ,
            workspace.resolve(),
            self._redactor,
            yes=yes,
            interactive=options.interactive,
            paced=options.paced,
        )
        live.servers.recorded = self.survey.plan
        edges = Driven(self._drive, self.recording.resolved, live)
        run_id = self.survey.start.get("run_id", "")
        self._builder = Builder(edges, self.recording.environ(), run_id)
        self.recording.builder = self._builder
        self._plain = Builder(live, environ, run_id)
        self._changes: list[tuple[str, str]] = []
        self._new_json: dict[str, Any] | None = None
        self._new_plan: Plan | None = None
        self._plan = self._make_plans()

    def _refuse_what_is_done(self) -> None:
        end = self.survey.end
        if end is not None and end["status"] in ("ok", "failed"):
            raise UsageError(
                f"{self.recording.path}: the run ended as {end['status']}, so there is nothing to "
                "resume; run it again, or fork it with replay --from-turn"
            )
        missing = self.recording.plan.get("resolved", {}).get("unavailable", ())
        if any(one.get("needed") for one in missing):
            raise UsageError(
                f"{self.recording.path}: an MCP server did not start, so there is nothing to "
                "resume; run it again"
            )

    def _open_calls(self) -> tuple[list[Call], list[Call]]:
        """The calls that were under way: those that are run again, and those that are not."""
        if self.options.open == "stop" and self.survey.open_calls:
            ids = ", ".join(call for _, call in self.survey.open_calls)
            raise UsageError(
                f"{self.recording.path}: it is unknown whether {ids} had an effect, "
                "and --open stop is set; choose --open error or --open rerun"
            )
        return open_calls(self.recording, self.options.open)

    # --- plans ------------------------------------------------------------------------------------

    def _make_plans(self) -> Plan:
        """The plan that the log is driven by; beside it, the one that the run goes on by."""
        recording = self.recording
        spec = self._spec()
        if spec is None:
            plan = self._builder.plan(recording.loaded(), recording.inputs, literal=True)
            if self.options.sets:
                raise UsageError(
                    f"{recording.path}: its spec {recording.survey.start['spec'].get('path')} is "
                    "not there any more, so --set can't change it"
                )
            return plan
        changed = list(_changed(self.survey.plan, self._json(spec)))
        if changed and not self.options.accept_spec_change:
            raise UsageError(
                f"{recording.path}: the spec has changed since: {', '.join(changed)}; "
                "--accept-spec-change goes on by the new one"
            )
        if changed or self.survey.plan != recording.plan:
            plan = self._builder.plan(recording.loaded(), recording.inputs, literal=True)
        else:
            recording.knows(spec, recording.plan)
            plan = self._plan_of(spec)
        if changed or self.options.sets or self.survey.plan != recording.plan:
            self._changes = self.options.sets
            spec = self._spec(self.options.sets) or spec
            recording.knows(spec, self.survey.plan)
            self._new_plan, self._new_json = self._plan_of(spec), self._json(spec)
        return plan

    def _spec(self, sets: list[tuple[str, str]] | None = None) -> Loaded | None:
        """The run's spec as it is now; None where it isn't there any more."""
        path = self.survey.start["spec"].get("path")
        if path is None or not Path(path).is_file():
            return None
        changes = changes_of(self.survey.plan) + [f"{at}={text}" for at, text in sets or ()]
        return load(path, sets=changes)

    def _plan_of(self, spec: Loaded) -> Plan:
        return self._builder.plan(spec, self._inputs(spec), self._prompt())

    def _json(self, spec: Loaded) -> dict[str, Any]:
        flags = dict(self.survey.plan.get("resolved", {}).get("flags", {}))
        if self._changes:
            flags["set"] = [*flags.get("set", ()), *map(list, self._changes)]
        plan = self._plain.plan(spec, self._inputs(spec), self._prompt())
        made = plan_json(spec, plan, self._plain, self._inputs(spec), flags)
        return cast("dict[str, Any]", self._redactor.value(made))

    def _inputs(self, spec: Loaded) -> dict[str, Any]:
        recorded = {k: v for k, v in self.recording.inputs.items() if k in spec.inputs}
        return spec.bind_inputs(recorded)

    def _prompt(self) -> str | None:
        flags = self.recording.plan.get("resolved", {}).get("flags", {})
        return cast("str | None", flags.get("prompt"))

    # --- the run ----------------------------------------------------------------------------------

    async def run(
        self,
        *,
        on_event: OnEvent | None = None,
        on_line: OnLine | None = None,
        control: Control | None = None,
    ) -> RunResult:
        """Go on with the run, to its end.

        Raises:
            RunError: where an MCP server does not start that has to; the log is as it was.
            LogError: where the log can't be followed or written.
        """
        try:
            await self._live.start(control)
            return await self._run(on_event, on_line, control)
        finally:
            await self._live.close()

    async def _run(
        self, on_event: OnEvent | None, on_line: OnLine | None, control: Control | None
    ) -> RunResult:
        writer = LogWriter.resume(
            self.recording.path,
            outputs=[on_line] if on_line is not None else (),
            durable=self.options.durable,
        )
        telling = Telling(
            writer,
            clock := DrivenClock(self._drive),
            self._redactor,
            deltas=self.recording.deltas,
            on_event=on_event,
            first_seq=self.survey.lines,
        )

        def attach(run: Run) -> None:
            if control is not None:
                control._attach(run)

        going_on = GoingOn(
            self.recording,
            self._drive,
            self._plan,
            self.rerun,
            self.unknown,
            self._new_plan,
            self._new_json,
        )
        ended, where = await going_on.run(clock, telling.emitter, attach)
        result = telling.close(ended, start_of(self.recording))
        if where is not None:
            raise LogError(
                f"{self.recording.path}: the run can't be brought to where it was: at seq "
                f"{where.seq}, {where.path} was {where.recorded!r:.80} and is {where.new!r:.80}: "
                f"{where.cause}"
            )
        return result


def _changed(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The paths at which two plans differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            below = f"{path}.{key}" if path else str(key)
            yield from _changed(old.get(key), new.get(key), below)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _changed(one, other, f"{path}[{index}]")
    elif old != new:
        yield path
