"""Replays whose model is asked anew: its calls come to what they came to in the log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from runner.api.live import Live
from runner.api.model_edges import ModelEdges
from runner.api.options import Control, OnEvent, OnLine, RunResult
from runner.api.replay import Recording, forked_start, plan_of
from runner.api.static import POINTS
from runner.api.telling import Telling, new_log
from runner.engine.contract import Clock
from runner.engine.event import Event
from runner.engine.options import Ending
from runner.engine.run import Run
from runner.engine.session import current
from runner.engine.sub_agent import AgentTool
from runner.error import UsageError
from runner.log.calls import RecordedCalls
from runner.log.drive import Drive
from runner.log.parting import Parting
from runner.log.read import read
from runner.log.tape import Tape
from runner.log.write import LogWriter
from runner.spec.load import load
from runner.spec.loaded import Loaded


@dataclass(slots=True)
class ModelReplayOptions:
    """How a model is asked anew."""

    spec: str | None = None
    """A changed spec, whose model is asked instead of the log's."""
    runs: bool = False
    """Whether what the log can't answer is run for real: calls that it has not, hooks, programs."""
    hooks: bool = False
    """Whether all hooks are real."""
    log: str | None = None
    """The new run's own log; ``none`` for none, None for the usual place."""
    workspace: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    interactive: bool = False
    """Whether a person sits at the terminal who can be asked."""


class ModelReplay:
    """A log's run again, with a model that is asked anew.

    It parts from its log with the first call that the log has not, or by the status that it ends
    with. What the model says, and in how many turns, may be another.

    Raises:
        LogError: where the log can't be read.
        SpecError: with all that is wrong with the changed spec.
        UsageError: where a hook or an expectation is a program or a function whose part can't be
            taken from the log.
    """

    def __init__(self, log: str | Path, options: ModelReplayOptions) -> None:
        self.options = options
        self.recording = Recording(log)
        self.calls = RecordedCalls(event for _, event in read(log))
        self.made = 0
        """How many calls were made that the log has."""
        self.difference: Parting | None = None
        """Where the run parts from its log."""
        self._turns: dict[str | None, int] = {}
        self._run: Run | None = None
        given = options.workspace or self.recording.plan.get("workspace") or "."
        self._workspace = Path(given).resolve()
        self._redactor = self.recording.redactor()
        if not (options.runs or options.hooks):
            self._refuse_programs()

    # --- what can't be taken from the log ---------------------------------------------------------

    def _refuse_programs(self) -> None:
        loaded = self.recording.loaded()
        if self.options.spec is not None:
            loaded = load(self.options.spec)
        if found := next(_programs(loaded), None):
            raise UsageError(
                f"{found} decides by what the model says, which the log can't answer for another "
                "answer; --live hooks runs it"
            )

    # --- the run ----------------------------------------------------------------------------------

    async def run(
        self,
        *,
        on_event: OnEvent | None = None,
        on_line: OnLine | None = None,
        control: Control | None = None,
    ) -> RunResult:
        """Run it, to its end or to the first call that the log has not.

        Raises:
            LogError: where the new log can't be written.
            RunError: where an MCP server does not start that has to.
        """
        recording, options = self.recording, self.options
        environ = {**options.environ, **recording.environ()}
        live = Live(
            environ,
            self._workspace,
            self._redactor,
            yes=recording.answered_yes,
            interactive=options.interactive,
        )
        live.servers.recorded = recording.plan
        edges = ModelEdges(
            Drive(Tape(()), recording.survey),
            recording.resolved,
            live,
            self.calls,
            runs=options.runs,
            hooks=options.hooks,
        )
        try:
            plan = plan_of(recording, edges, options.spec)
            await live.start(control)
            start = forked_start(recording, edges, options.spec)
            clock, outputs = Clock(), [on_line] if on_line is not None else ()
            telling = Telling(
                LogWriter.open(new_log(options.log, start), outputs=outputs),
                clock,
                self._redactor,
                deltas=recording.deltas,
                on_event=on_event,
            )
            telling.emitter.recorded = self._look
            self._run = Run(plan, start, telling.emitter, clock)
            result = await telling.execute(self._run, start, control)
        finally:
            await live.close()
        self._hold_end(result)
        return result

    @property
    def left(self) -> int:
        """How many recorded calls were not made again."""
        return self.calls.left

    def exit_code(self, result: RunResult) -> int:
        """0 where it came out as the log says; 1 where it parts from it, unless it went wrong."""
        end = self.recording.survey.end
        if self.difference is not None and self.difference.type != "run_end":
            return 1
        if end is not None and end["status"] == result.status:
            return 0
        return result.exit_code or (0 if end is None else 1)

    # --- what is compared -------------------------------------------------------------------------

    def _look(self, event: Event, agent: str | None) -> bool:
        """Look for each call in the log. All events are told."""
        if event["type"] == "turn_start":
            self._turns[agent] = event["turn"]
        elif event["type"] == "tool_execution_start":
            shown = cast("dict[str, Any]", self._redactor.value(event))
            self._call(agent, event["tool_call_id"], shown["tool_name"], shown["arguments"])
        return False

    def _call(self, agent: str | None, tool_call_id: str, name: str, arguments: Any) -> None:
        if self.calls.take(agent, tool_call_id, name, arguments) is not None:
            self.made += 1
            return
        # An agent is run anew, like its model: what it is asked for may be another.
        is_agent = isinstance(current.get().tools.get(name), AgentTool)
        if is_agent or self.options.runs or self.difference is not None:
            return
        nearest = self.calls.nearest(name, arguments)
        times = self.calls.times(agent, name, arguments)
        cause = "the log has no call"
        if nearest is not None:
            start = nearest.start
            place = f"{start['tool_call_id']} in turn {nearest.turn}"
            place += f" of {start['agent']}" if "agent" in start else ""
            cause = f"the log has no such call; the nearest is {place}"
        if times:
            cause = f"the log has this call {times} times, and this is one more"
        self.difference = Parting(
            nearest.start["seq"] if nearest is not None else 0,
            agent,
            self._turns.get(agent, 0),
            "tool_execution_start",
            "",
            None
            if nearest is None
            else _told(nearest.start["tool_name"], nearest.start["arguments"]),
            _told(name, arguments),
            cause,
        )
        ending = Ending("aborted", f"the model made a call that the log has not: {name}")
        cast("Run", self._run).session.abort(ending)

    def _hold_end(self, result: RunResult) -> None:
        """Hold how the run ended against how its log did."""
        end = self.recording.survey.end
        if self.difference is not None or end is None or end["status"] == result.status:
            return
        if result.exit_code > 128:
            return  # a signal ended it
        self.difference = Parting(
            end["seq"],
            None,
            self._turns.get(None, 0),
            "run_end",
            "status",
            end["status"],
            result.status,
            result.error or "the model says something else now",
        )


def _told(name: str, arguments: Any) -> dict[str, Any]:
    return {"tool_name": name, "arguments": arguments}


def _programs(top: Loaded) -> Iterator[str]:
    """The hooks and expectations whose part a log can't take when the model says something else."""
    for loaded in top.everything():
        for point in POINTS:
            python_runs = point in ("transform_context", "convert_to_llm")
            if point in ("before_tool_call", "after_tool_call"):
                continue  # what they decided of a call holds for the same call
            for n, hook in enumerate(getattr(loaded.spec.hooks, point)):
                if hook.command is not None or (hook.python is not None and not python_runs):
                    yield loaded.where(f"hooks.{point}[{n}]")
        tasks = enumerate(loaded.spec.follow_ups.tasks)
        lists = [("expect", loaded.spec.expect)]
        lists += [(f"follow_ups.tasks[{n}].expect", task.expect) for n, task in tasks]
        for path, expectations in lists:
            for n, wanted in enumerate(expectations):
                if wanted.command is not None:
                    yield loaded.where(f"{path}[{n}].command")
