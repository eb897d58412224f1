"""Replays of a log: the run again, with no network and no tool, held against its record."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from runner.api.build import Builder
from runner.api.driven import Driven
from runner.api.live import Live
from runner.api.plan_json import plan_json
from runner.api.telling import now, runner_version
from runner.engine.emit import Emitter
from runner.engine.event import RunResume, RunStart
from runner.engine.plan import Plan
from runner.engine.run import Run
from runner.error import LogError, SpecError, TemplateError, UsageError
from runner.log.drive import Drive, DrivenClock
from runner.log.follow import Follower
from runner.log.parting import Parting
from runner.log.place import new_run_id
from runner.log.read import Warn, read
from runner.log.redact import LogRedactor
from runner.log.survey import Survey, survey
from runner.log.tape import Tape
from runner.log.whole import Wholeness
from runner.spec.file import locate
from runner.spec.load import load, load_plan
from runner.spec.loaded import Loaded
from runner.spec.node import split
from runner.thread import run_in_loop


@dataclass(slots=True)
class Replayed:
    """What a replay came to."""

    log: str
    status: str | None
    """How the recorded run ended; None where its log breaks off."""
    difference: Parting | None
    """Where the run parts from its log; None where it came out as recorded."""
    lines: int
    warnings: list[str] = field(default_factory=list)
    prompts: tuple[str, str] | None = None
    """The recorded and the new system prompt, where another one is the cause."""


def _sha256(file: Path) -> str | None:
    """Of a regular file's bytes, in hexadecimal; None where there is none."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    except (OSError, ValueError):
        return None


class Recording:
    """A log that a run can be driven with.

    Args:
        path: Its file.
        lines: What is in it, where that was read already.

    Raises:
        LogError: where it can't be read.
    """

    def __init__(self, path: str | Path, lines: Sequence[dict[str, Any]] | None = None) -> None:
        self.path = Path(path)
        self.warnings: list[str] = []
        self._known = lines
        self.survey: Survey = survey(self.lines(self.warnings.append))
        if lines is None and not self.path.is_file():
            raise LogError(
                f"{self.path}: is a pipe, which gives its lines only once, and a run is driven by "
                "them after a first look; write them to a file"
            )
        self.plan: dict[str, Any] = self.survey.start["plan"]
        self.inputs: dict[str, Any] = self.survey.start["inputs"]
        self.builder: Builder | None = None
        """Makes the plans that it went on by later; None where a changed spec goes on."""
        self._resolved: dict[int, Mapping[str, Any]] = {}
        self._kept: list[Loaded] = []

    def tape(self, change: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None) -> Tape:
        """Its lines, each changed, or left out, as is asked for."""

        def lines() -> Iterator[dict[str, Any]]:
            for event in self.lines():
                changed = event if change is None else change(event)
                if changed is not None:
                    yield changed

        return Tape(lines())

    def lines(self, warn: Warn | None = None) -> Iterator[dict[str, Any]]:
        """Its lines as they are; ``warn`` is told of a torn tail."""
        if self._known is not None:
            return iter(self._known)
        return (event for _, event in read(self.path, warn))

    @property
    def folder(self) -> str:
        """The folder of the run's spec.

        Its path is as it was given in the run's own folder: that may have been the current one, or
        what the log lies in, if it was not moved. Where the very file is there, that is it.
        """
        spec = self.survey.start["spec"]
        beside = self.path.parent.absolute()
        bases = [Path.cwd(), beside, *list(beside.parents)[:2]]
        files = [base / spec.get("path", "spec.yaml") for base in bases]
        known = next((file for file in files if _sha256(file) == spec["sha256"]), files[0])
        return str(known.parent)

    def environ(self, plan: Mapping[str, Any] | None = None) -> dict[str, str]:
        """The values of the environment that the run saw."""
        resolved = (plan or self.plan).get("resolved", {})
        values: dict[str, str] = dict(resolved.get("env", {}))
        for agent in resolved.get("agents", {}).values():
            values = self.environ(agent) | values
        return values

    def loaded(self, plan: Mapping[str, Any] | None = None) -> Loaded:
        """The spec that a plan of the log holds; by default that of its start.

        Raises:
            LogError: where it holds none.
        """
        try:
            return self._loaded(plan or self.plan, self.folder)
        except (SpecError, LookupError, TypeError) as error:
            raise LogError(f"{self.path}: line 1: its plan is no spec: {error}") from None

    def _loaded(self, plan: Mapping[str, Any], folder: str) -> Loaded:
        spec = {key: value for key, value in plan.items() if key != "resolved"}
        loaded = load_plan(spec, name=str(self.path), folder=folder)
        for path, other in plan.get("resolved", {}).get("agents", {}).items():
            # Paths in another spec are relative to its own file.
            file = locate(folder, str(_at(plan, path)))
            loaded.agents[path] = self._loaded(other, str(Path(file).parent))
        self.knows(loaded, plan)
        return loaded

    def knows(self, loaded: Loaded, plan: Mapping[str, Any]) -> None:
        """Say that a spec is that of a plan, and so are those that it uses."""
        resolved = plan.get("resolved", {})
        self._resolved[id(loaded)] = {
            "tools": resolved.get("tools", ()),
            "entries": plan.get("tools", ()),
            "mcp": resolved.get("mcp", {}),
            "unavailable": resolved.get("unavailable", ()),
        }
        self._kept.append(loaded)
        for path, other in loaded.agents.items():
            if path in resolved.get("agents", {}):
                self.knows(other, resolved["agents"][path])

    @property
    def deltas(self) -> bool:
        """Whether the log has deltas."""
        return bool(self.plan.get("log", {}).get("deltas", True))

    def redactor(self) -> LogRedactor:
        """What takes out of a log what its spec says, besides secrets."""
        log = self.plan.get("log", {})
        return LogRedactor(patterns=log.get("redact", ()), known=log.get("redact_known", True))

    def replaced(self) -> dict[str, Any]:
        """By id: the content that messages of a fork had from its start."""
        fork: Mapping[str, Any] = self.survey.start.get("forked_from", {})
        ids = set(fork.get("overrides", ()))
        found: dict[str, Any] = {}
        for line in self.lines() if ids else ():
            if line["type"] == "message_end" and "agent" not in line:
                message = line["message"]
                if message["id"] in ids and message["role"] != "assistant":
                    found[message["id"]] = message["content"]
        return found

    @property
    def answered_yes(self) -> bool:
        """Whether every question that permissions ask is answered with yes."""
        return bool(self.plan.get("resolved", {}).get("flags", {}).get("yes"))

    def resolved(self, loaded: Loaded) -> Mapping[str, Any]:
        """What the log knows of a spec's tools."""
        return self._resolved.get(id(loaded), {})


def replay(log: str | Path, *, spec: str | None = None, real: Sequence[str] = ()) -> Replayed:
    """Run a log again, from the log alone, and compare every event.

    Args:
        log: The log's file.
        spec: A changed spec to hold it against, instead of its own.
        real: What is not played back but run: ``tools``, ``hooks``.

    Raises:
        LogError: where the log can't be read.
        SpecError: with all that is wrong with the changed spec.
        HookError: where a hook tried to reach a network, a program or a tool.
    """
    recording = Recording(log)
    wholeness = Wholeness()
    drive = Drive(recording.tape(wholeness.see), recording.survey)
    drive.timers = "tools" in real
    live = None
    if real:
        live = Live(_todays(recording), Path.cwd(), LogRedactor())
    edges = Driven(drive, recording.resolved, live, real)
    plan = plan_of(recording, edges, spec)
    follower = Follower(drive)
    run_in_loop(_closing(live, follow(recording, drive, follower, plan)))
    edges.offline.check()
    recorded = recording.survey.end
    result = Replayed(
        str(log),
        recorded["status"] if recorded is not None else None,
        follower.difference or _misfit(drive.tape, wholeness),
        recording.survey.lines,
        recording.warnings,
    )
    difference = follower.difference
    if difference is not None and difference.cause.startswith("the system prompt"):
        result.prompts = recording.plan.get("system_prompt", ""), plan.options.system_prompt
    return result


def _at(plan: Any, path: str) -> Any:
    """What stands at a PATH in a plan."""
    for step in split(path) or ():
        plan = plan[step]
    return plan


def _misfit(tape: Tape, wholeness: Wholeness) -> Parting | None:
    """The first line that does not fit the others, though the run came out as its own line says."""
    tape.read_all()
    misfit = wholeness.misfit
    if misfit is None:
        return None
    line = misfit.line
    return Parting(
        line["seq"],
        line.get("agent"),
        wholeness.turn,
        line["type"],
        misfit.path,
        misfit.recorded,
        misfit.fitting,
        misfit.why,
    )


async def _closing(live: Live | None, work: Awaitable[None]) -> None:
    """Do something; what real tools started for it is ended then."""
    try:
        await work
    finally:
        if live is not None:
            await live.close()


def _todays(recording: Recording) -> dict[str, str]:
    import os

    return {**os.environ, **recording.environ()}


def plan_of(recording: Recording, edges: Driven, spec: str | None = None) -> Plan:
    """The plan that a log is driven by: its own, or that of a changed spec with the log's inputs.

    Raises:
        LogError: where the log's plan is none.
        SpecError: with all that is wrong with the changed spec.
        UsageError: where the log's inputs don't fit the changed spec.
    """
    run_id = recording.survey.start.get("run_id")
    builder = Builder(edges, recording.environ(), run_id or "", one_by_one=run_id is None)
    try:
        if spec is None:
            recording.builder = builder
            return builder.plan(recording.loaded(), recording.inputs, literal=True)
        loaded = load(spec, sets=changes_of(recording.plan))
        recording.knows(loaded, recording.plan)
        flags = recording.plan.get("resolved", {}).get("flags", {})
        inputs = {k: v for k, v in recording.inputs.items() if k in loaded.inputs}
        return builder.plan(loaded, loaded.bind_inputs(inputs), flags.get("prompt"))
    except TemplateError as error:
        raise UsageError(f"{spec or recording.path}: {error}") from error


def forked_start(
    recording: Recording,
    edges: Driven,
    spec: str | None = None,
    turn: int = 1,
    overrides: Sequence[str] = (),
) -> RunStart:
    """The ``run_start`` of a run that parts from a log.

    Args:
        recording: The log.
        edges: What its plan is made with.
        spec: A changed spec that it goes by.
        turn: The first turn that is not the log's.
        overrides: Ids of the messages and calls that were replaced.

    Raises:
        SpecError: with all that is wrong with the changed spec.
        UsageError: where the log's inputs don't fit it.
    """
    start = cast("dict[str, Any]", start_of(recording))
    if spec is not None:
        start |= _changed_start(recording, edges, spec)
    from_id = start.get("run_id", "")
    start |= {"run_id": new_run_id(time.time_ns()), "runner_version": runner_version()}
    start |= {"started_at": now()}
    start["forked_from"] = {"run_id": from_id, "turn": turn, "overrides": list(overrides)}
    return cast("RunStart", start)


def _changed_start(recording: Recording, edges: Driven, spec: str) -> dict[str, Any]:
    """What a ``run_start`` tells of a changed spec and its plan, in place of what the log does."""
    loaded = load(spec, sets=changes_of(recording.plan))
    recording.knows(loaded, recording.plan)
    flags = recording.plan.get("resolved", {}).get("flags", {})
    builder = Builder(edges, recording.environ(), recording.survey.start.get("run_id", ""))
    inputs = loaded.bind_inputs({k: v for k, v in recording.inputs.items() if k in loaded.inputs})
    plan = builder.plan(loaded, inputs, flags.get("prompt"))
    return {
        "spec": {"name": loaded.name, "path": loaded.file, "sha256": loaded.sha256},
        "plan": plan_json(loaded, plan, builder, inputs, flags),
        "inputs": inputs,
    }


def changes_of(plan: Mapping[str, Any]) -> list[str | tuple[str, Any]]:
    """The changes that flags made to a plan's spec."""
    flags = plan.get("resolved", {}).get("flags", {})
    changes: list[str | tuple[str, Any]] = [f"{path}={text}" for path, text in flags.get("set", ())]
    if model := flags.get("model"):
        provider, _, name = model.partition("/")
        changes += [("model.provider", provider), ("model.id", name)]
    return changes


async def follow(recording: Recording, drive: Drive, follower: Follower, plan: Plan) -> None:
    """Run a plan by a log to the log's end, or to the first difference.

    Raises:
        Exception: a bug that is not in the log.
    """
    clock = DrivenClock(drive)
    emitter = Emitter(clock, deltas=recording.plan.get("log", {}).get("deltas", True))
    emitter.recorded = follower
    run = Run(plan, start_of(recording), emitter, clock)
    run.session.replaced.update(recording.replaced())
    follower.run, drive.root = run, run.session
    follower.on_resume = adopting(recording, run, plan)
    ended = await run.execute()
    while _goes_on(drive, follower):
        line = cast("Any", drive.tape.next(None))
        ended = await run.go_on(resume_of(line), later_plan(recording, plan, line))
    if ended.bug is not None and follower.difference is None and not follower.past_end:
        raise ended.bug


def _goes_on(drive: Drive, follower: Follower) -> bool:
    if follower.difference is not None or follower.past_end:
        return False
    line = drive.tape.next(None)
    return line is not None and line["type"] == "run_resume"


def adopting(recording: Recording, run: Run, plan: Plan) -> Callable[[Mapping[str, Any]], None]:
    """Has a run go on by another plan where its log says that it was resumed by one."""

    def adopt(line: Mapping[str, Any]) -> None:
        if (later := later_plan(recording, plan, line)) is not None:
            run.adopt(later)

    return adopt


def later_plan(recording: Recording, plan: Plan, line: Mapping[str, Any]) -> Plan | None:
    """The plan that a resumed run went on by, if it was another.

    Raises:
        LogError: where it is none.
    """
    if "plan" not in line:
        return None
    if recording.builder is not None:
        loaded = recording.loaded(line["plan"])
        inputs = {name: value for name, value in recording.inputs.items() if name in loaded.inputs}
        return recording.builder.plan(loaded, loaded.bind_inputs(inputs), literal=True)
    # A changed spec goes on as it is, but for the limits that the run was given.
    from dataclasses import replace

    from runner.engine.limit import Limits

    limits = line["plan"].get("limits", {})
    known = {name: limits.get(name) for name in Limits.__slots__}
    return replace(plan, options=replace(plan.options, limits=Limits(**known)))


def start_of(recording: Recording) -> RunStart:
    """The ``run_start`` of a log, to be told again."""
    left_out = ("seq", "t", "agent")
    return cast("RunStart", {k: v for k, v in recording.survey.start.items() if k not in left_out})


def resume_of(line: Mapping[str, Any]) -> RunResume:
    """A ``run_resume`` of a log, to be told again."""
    return cast("RunResume", {k: v for k, v in line.items() if k not in ("seq", "t", "agent")})
