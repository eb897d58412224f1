"""Forks: a log replayed up to a turn, perhaps with another result in it, then live."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.api.driven import Driven
from runner.api.live import Live
from runner.api.options import Control, OnEvent, OnLine, RunResult
from runner.api.replay import Recording, adopting, forked_start, plan_of
from runner.api.telling import Telling, new_log
from runner.engine.emit import Emitter
from runner.engine.event import Event, RunStart
from runner.engine.plan import Plan
from runner.engine.run import Run
from runner.error import UsageError, did_you_mean
from runner.log.drive import Drive, DrivenClock
from runner.log.follow import Follower
from runner.log.write import LogWriter
from runner.spec.load import read_data


@dataclass(slots=True)
class ForkOptions:
    """Where a run parts from its log, and how."""

    turn: int
    """The first turn that is live."""
    overrides: dict[str, str] = field(default_factory=dict)
    """By id of a message or a call: the file whose content it gets."""
    spec: str | None = None
    """A changed spec to go on by."""
    log: str | None = None
    """The fork's own log; ``none`` for none, None for the usual place."""
    workspace: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    interactive: bool = False
    """Whether a person sits at the terminal who can be asked."""


class Fork:
    """A run that is replayed up to a turn and goes on live.

    Raises:
        LogError: where the log can't be read.
        UsageError: where it has no such turn or id, or a file can't be read.
    """

    def __init__(self, log: str | Path, options: ForkOptions) -> None:
        self.options = options
        self.recording = Recording(log)
        last = self.recording.survey.turns.get(None, 0)
        if not 1 <= options.turn <= last:
            known = f"its turns are 1 to {last}" if last else "it has none"
            raise UsageError(f"{log}: there is no turn {options.turn}; {known}")
        ids = _ids(self.recording) if options.overrides else ()
        for name in options.overrides:
            if name not in ids:
                hint = did_you_mean(name, ids)
                raise UsageError(f'{log}: no message or call is "{name}"; {hint}')
        given = options.workspace or self.recording.plan.get("workspace") or "."
        self._workspace = Path(given).resolve()
        self._contents = {name: _content(file) for name, file in options.overrides.items()}

    async def run(
        self,
        *,
        on_event: OnEvent | None = None,
        on_line: OnLine | None = None,
        control: Control | None = None,
    ) -> RunResult:
        """Replay and go on, to the run's end. The first log stays as it is.

        Raises:
            LogError: where a log can't be read or written.
        """
        recording, options = self.recording, self.options
        redactor = recording.redactor()
        drive = Drive(recording.tape(self._change), recording.survey)
        environ = {**options.environ, **recording.environ()}
        live = Live(
            environ,
            self._workspace,
            redactor,
            yes=recording.answered_yes,
            interactive=options.interactive,
        )
        live.servers.recorded = recording.plan
        edges = Driven(drive, recording.resolved, live)
        try:
            plan = plan_of(recording, edges, options.spec)
            await live.start(control)
            replaced = recording.replaced() | self._contents
            start = forked_start(recording, edges, options.spec, options.turn, sorted(replaced))
            clock = DrivenClock(drive)
            outputs = [on_line] if on_line is not None else ()
            writer = LogWriter.open(new_log(options.log, start), outputs=outputs)
            telling = Telling(writer, clock, redactor, deltas=recording.deltas, on_event=on_event)
            run = self._driven(drive, clock, plan, start, telling.emitter)
            run.session.replaced.update(replaced)
            return await telling.execute(run, start, control)
        finally:
            await live.close()

    def _driven(
        self, drive: Drive, clock: DrivenClock, plan: Plan, start: RunStart, emitter: Emitter
    ) -> Run:
        """The run, driven by the log up to its turn."""
        run = Run(plan, start, emitter, clock)

        def go_live(_: Event) -> None:
            clock.go_live()
            run.limit_time()

        follower = Follower(drive, go_live=go_live, tells=True, up_to_turn=self.options.turn)
        emitter.recorded = follower
        follower.run, drive.root = run, run.session
        follower.on_resume = adopting(self.recording, run, plan)
        return run

    def _change(self, line: dict[str, Any]) -> dict[str, Any] | None:
        """A line of the first log as the fork is driven by it."""
        contents = self._contents
        if line["type"] == "message_update" and line["message_id"] in contents:
            return None
        if line["type"] == "tool_execution_end" and line["tool_call_id"] in contents:
            result = {**line["result"], "content": contents[line["tool_call_id"]]}
            return {**line, "result": result}
        if line["type"] == "message_end" and line["message"]["id"] in contents:
            content = contents[line["message"]["id"]]
            return {**line, "message": {**line["message"], "content": content}}
        return line


def _ids(recording: Recording) -> set[str]:
    """The ids of all messages and tool calls of the main agent."""
    ids: set[str] = set()
    for line in recording.lines():
        if line["type"] == "message_end" and "agent" not in line:
            message = line["message"]
            calls = (block for block in message["content"] if block["type"] == "tool_call")
            ids.update((message["id"], *(call["id"] for call in calls)))
    return ids


def _content(file: str) -> list[dict[str, Any]]:
    """The content blocks in a file: text as it is, or what a JSON or YAML file holds."""
    path = Path(file)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"{path.resolve()} can't be read: {reason}") from None
    if path.suffix not in (".json", ".yaml", ".yml"):
        return [{"type": "text", "text": text}]
    value = read_data(file)
    if isinstance(value, Mapping) and "content" in value:
        value = value["content"]
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if isinstance(value, list) and all(isinstance(b, Mapping) and "type" in b for b in value):
        return [dict(block) for block in value]
    raise UsageError(f"{path}: a text, or a list of content blocks, is needed")
