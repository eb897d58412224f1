"""A spec made ready to be run: all that can be known before a token is spent."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.api.build import Builder
from runner.api.live import Live
from runner.api.options import RunOptions
from runner.engine.plan import Plan
from runner.error import Fault, SpecError, TemplateError, UsageError
from runner.log.place import default_path, new_run_id
from runner.log.redact import LogRedactor
from runner.spec.decode import to_json
from runner.spec.load import load
from runner.spec.loaded import Loaded
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
    log: Path | None
    """Where the log goes; None for no log."""

    @property
    def name(self) -> str:
        """The spec's name."""
        return self.loaded.name

    @property
    def path(self) -> str:
        """The spec's file, as it was given."""
        return self.loaded.file

    @property
    def warnings(self) -> list[Fault]:
        """What should be looked at, though nothing is wrong."""
        return self.loaded.warnings


def prepare(path: str, options: RunOptions | None = None) -> Prepared:
    """Load and check a spec, bind its inputs and make its plan. Nothing is run.

    Raises:
        SpecError: with all that is wrong with the spec.
        UsageError: for what is wrong with the options.
    """
    options = options or RunOptions()
    loaded = load(path, sets=_changes(options))
    faults = loaded.missing_environment(options.environ)
    redactor = LogRedactor(patterns=loaded.spec.log.redact, known=loaded.spec.log.redact_known)
    live = Live(options.environ, _workspace(loaded, options), redactor)
    run_id = new_run_id(time.time_ns())
    builder = Builder(live, options.environ, run_id)
    faults += tool_faults(loaded, builder)
    if faults:
        raise SpecError(faults)
    inputs = loaded.bind_inputs(options.values, options.texts)
    if loaded.spec.prompt is None and options.prompt is None:
        raise UsageError(f"{path} has no prompt; give it one with --prompt TEXT, or --prompt -")
    if options.require_expect and not (loaded.spec.expect or loaded.spec.output):
        raise UsageError(f"{path} expects nothing, and --require-expect is set; add an expect")
    try:
        plan = builder.plan(loaded, inputs, options.prompt)
        log = _log_path(loaded, options, builder, inputs, run_id)
    except TemplateError as error:
        # Nothing was run: with these inputs the spec can't be.
        raise UsageError(f"{loaded.file}: {error}") from error
    return Prepared(loaded, options, run_id, inputs, plan, builder, redactor, log)


def check(path: str, options: RunOptions | None = None) -> list[Fault]:
    """All that is wrong with a spec, or should be looked at, as far as it can be known.

    Raises:
        UsageError: if there is no such file, or an option is wrong.
    """
    options = options or RunOptions()
    try:
        loaded = load(path, sets=_changes(options))
    except SpecError as error:
        return error.faults
    live = Live(options.environ, Path.cwd(), LogRedactor())
    return tool_faults(loaded, Builder(live, options.environ, "")) + loaded.warnings


def explain(path: str, options: RunOptions | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """A spec as JSON, defaulted, and those that it uses by the path that names each.

    Raises:
        SpecError: with all that is wrong with the spec.
        UsageError: if there is no such file, or an option is wrong.
    """
    loaded = load(path, sets=_changes(options or RunOptions()))
    agents = {
        at: {**to_json(other.spec), "name": other.name} for at, other in loaded.agents.items()
    }
    return {**to_json(loaded.spec), "name": loaded.name}, agents


def tools(path: str | None = None) -> list[dict[str, Any]]:
    """The tools of a spec, or the built-in ones, each with its schema and where it comes from.

    Raises:
        SpecError: with all that is wrong with the spec.
    """
    if path is None:
        return []
    loaded = load(path)
    builder = Builder(Live({}, Path.cwd(), LogRedactor()), {}, "")
    if faults := tool_faults(loaded, builder):
        raise SpecError(faults)
    made = builder.tools(loaded, {})
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
            "source": _source(loaded, index),
        }
        for index, tool in enumerate(made)
    ]


def tool_faults(loaded: Loaded, builder: Builder) -> list[Fault]:
    """What is wrong with the tools of a spec and of all that it uses: each is made once."""
    faults: list[Fault] = []
    for each in loaded.everything():
        taken: dict[str, int] = {}
        for index in range(len(each.spec.tools)):
            path = f"tools[{index}]"
            try:
                tool = builder.tool(each, index, {})
            except UsageError as error:
                faults.append(each.fault(_part(each, path), str(error)))
                continue
            if tool.name in taken:
                first = f"tools[{taken[tool.name]}]"
                message = f'there is a tool "{tool.name}" already, {first}; give one another name'
                faults.append(each.fault(path, message))
            taken.setdefault(tool.name, index)
    return faults


def _part(loaded: Loaded, path: str) -> str:
    """The part of a tool's entry that says what it is."""
    from runner.spec.model.tool import PythonTool

    index = int(path[len("tools[") : -1])
    return f"{path}.python" if isinstance(loaded.spec.tools[index], PythonTool) else path


def _source(loaded: Loaded, index: int) -> str:
    entry = loaded.spec.tools[index]
    return f"built-in {entry}" if isinstance(entry, str) else loaded.where(f"tools[{index}]")


def _changes(options: RunOptions) -> list[str | tuple[str, Any]]:
    changes: list[str | tuple[str, Any]] = [f"{path}={text}" for path, text in options.sets]
    if options.model is not None:
        provider, slash, model = options.model.partition("/")
        if not slash or not provider or not model:
            raise UsageError(
                f"--model {options.model}: write PROVIDER/ID, such as openai/gpt-5-mini"
            )
        changes += [("model.provider", provider), ("model.id", model)]
    return changes


def _workspace(loaded: Loaded, options: RunOptions) -> Path:
    given = options.workspace or loaded.spec.workspace or "."
    folder = Path(given).resolve()
    if not folder.is_dir():
        raise UsageError(f"the workspace {folder} is no folder; make it, or name another")
    return folder


def _log_path(
    loaded: Loaded, options: RunOptions, builder: Builder, inputs: dict[str, Any], run_id: str
) -> Path | None:
    if options.log == "none":
        return None
    if options.log is not None:
        return Path(options.log)
    if loaded.spec.log.path is None:
        return default_path(loaded.name, run_id)
    names = builder.names(loaded, inputs)
    return Path(Template(loaded.spec.log.path, loaded.where("log.path")).render(names))
