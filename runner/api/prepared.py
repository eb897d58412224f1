"""A spec made ready to be run: all that can be known before a token is spent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.api.build import Builder
from runner.api.live import Live
from runner.api.options import Control, RunOptions
from runner.api.static import changes_of, key_faults, look_at_targets, target_problem
from runner.engine.plan import Plan
from runner.error import Fault, SpecError, TemplateError, UsageError
from runner.log.place import default_path, new_run_id
from runner.log.redact import LogRedactor
from runner.spec.load import load
from runner.spec.loaded import Loaded
from runner.spec.model.tool import McpTools
from runner.spec.template import Template


@dataclass(slots=True)
class Prepared:
    """A spec that can be run, once."""

    loaded: Loaded
    options: RunOptions
    run_id: str
    inputs: dict[str, Any]
    plan: Plan
    builder: Builder
    redactor: LogRedactor
    live: Live
    """What it reaches out with."""
    log: Path | None
    """Where the log goes; None for no log."""
    doubts: list[Fault] = field(default_factory=list)
    """Names of tools in what the spec says of calls that no tool has."""

    @property
    def name(self) -> str:
        """The spec's name."""
        return self.loaded.name

    @property
    def path(self) -> str:
        """The spec's file, as it was given."""
        return self.loaded.file

    async def start(self, control: Control | None = None) -> None:
        """Start its MCP servers, and those of all agents in it; their tools join the plan."""
        loaded, builder = self.loaded, self.builder
        if not any(isinstance(entry, McpTools) for entry in _tool_entries(loaded)):
            return
        from runner.api.mcp import start_servers

        for each in loaded.everything():
            # An agent's inputs are known only when it is asked.
            builder.tool_groups(each, builder.names(each, self.inputs if each is loaded else {}))
        await start_servers(self.live.servers, control)
        names = builder.names(loaded, self.inputs)
        self.plan.options.tools = builder.tools(loaded, names)
        self.plan.unavailable = self.live.servers.unavailable()

    async def close(self) -> None:
        """End its MCP servers."""
        await self.live.close()

    @property
    def warnings(self) -> list[Fault]:
        """What should be looked at, though nothing is wrong."""
        return [*self.loaded.warnings, *self.doubts]


@dataclass(slots=True)
class Compiled:
    """A spec that was loaded and checked, from which any number of runs can be prepared.

    What is made here is what no run changes, so that the next one costs little.
    """

    loaded: Loaded
    options: RunOptions
    """How all of its runs are to be run."""
    workspace: Path
    doubts: list[Fault] = field(default_factory=list)
    """What may not do what it is to do: see `Prepared.doubts`."""

    def prepare(self, options: RunOptions | None = None) -> Prepared:
        """Bind inputs and make a plan. Nothing is run.

        Args:
            options: Those of one run: other inputs, another log. What changes a spec, or says where
                it is run, is as it was when the spec was compiled.

        Raises:
            UsageError: for what is wrong with the options.
        """
        loaded, options = self.loaded, options or self.options
        log = loaded.spec.log
        redactor = LogRedactor(patterns=log.redact, known=log.redact_known)
        live = Live(
            options.environ,
            self.workspace,
            redactor,
            yes=options.yes,
            interactive=options.interactive,
            ask=options.ask,
            paced=options.paced,
        )
        run_id = new_run_id(time.time_ns())
        builder = Builder(live, options.environ, run_id)
        inputs = loaded.bind_inputs(options.values, options.texts)
        if loaded.spec.prompt is None and options.prompt is None:
            raise UsageError(
                f"{loaded.file} has no prompt; give it one with --prompt TEXT, or --prompt -"
            )
        if options.require_expect and not (loaded.spec.expect or loaded.spec.output):
            raise UsageError(
                f"{loaded.file} expects nothing, and --require-expect is set; add an expect"
            )
        try:
            plan = builder.plan(loaded, inputs, options.prompt)
            path = _log_path(loaded, options, builder, inputs, run_id)
        except TemplateError as error:
            # Nothing was run: with these inputs the spec can't be.
            raise UsageError(str(error)) from error
        made = (loaded, options, run_id, inputs, plan, builder, redactor, live, path)
        return Prepared(*made, self.doubts)


def compile_spec(path: str, options: RunOptions | None = None) -> Compiled:
    """Load and check a spec, but for its inputs.

    Raises:
        SpecError: with all that is wrong with the spec.
        UsageError: for what is wrong with the options.
    """
    options = options or RunOptions()
    loaded = load(path, sets=changes_of(options), probe=target_problem)
    faults = loaded.missing_environment(options.environ)
    workspace = _workspace(loaded, options)
    wrong, doubts = look_at_targets(loaded)
    faults += [*wrong, *key_faults(loaded, options.environ)]
    if faults:
        raise SpecError(faults)
    return Compiled(loaded, options, workspace, doubts)


def prepare(path: str, options: RunOptions | None = None) -> Prepared:
    """Load and check a spec, bind its inputs and make its plan. Nothing is run.

    Raises:
        SpecError: with all that is wrong with the spec.
        UsageError: for what is wrong with the options.
    """
    return compile_spec(path, options).prepare()


def _tool_entries(loaded: Loaded) -> Iterator[Any]:
    for each in loaded.everything():
        yield from each.spec.tools


def _workspace(loaded: Loaded, options: RunOptions) -> Path:
    given = options.workspace or loaded.spec.workspace or "."
    folder = _path(given, "the workspace").resolve()
    if not folder.is_dir():
        raise UsageError(f"the workspace {folder} is no folder; make it, or name another")
    return folder


def _log_path(
    loaded: Loaded, options: RunOptions, builder: Builder, inputs: dict[str, Any], run_id: str
) -> Path | None:
    if options.log == "none":
        return None
    if options.log is not None:
        return _path(options.log, "the log's path")
    if loaded.spec.log.path is None:
        return default_path(loaded.name, run_id)
    names = builder.names(loaded, inputs)
    rendered = Template(loaded.spec.log.path, loaded.where("log.path")).render(names)
    return _path(rendered, "the log's path")


def _path(text: str, what: str) -> Path:
    """A path that the system could take.

    Raises:
        UsageError: for one that is empty or has a NUL in it.
    """
    if not text or "\0" in text:
        raise UsageError(f"{what} {text!r} is none; name a file or folder")
    return Path(text)
