"""What can be known of a spec without running it: nothing of the loop is imported for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.error import Fault, SpecError, UsageError
from runner.spec.decode import to_json
from runner.spec.load import load
from runner.spec.loaded import Loaded

if TYPE_CHECKING:
    from runner.api.live import Live
    from runner.api.options import RunOptions
    from runner.spec.model.tool import McpTools

POINTS = (
    "transform_context",
    "convert_to_llm",
    "before_tool_call",
    "after_tool_call",
    "stop_after_turn",
    "steering_messages",
    "follow_up_messages",
)
"""The extension points that a spec has keys for."""


def check(path: str, options: RunOptions | None = None) -> list[Fault]:
    """All that is wrong with a spec, or should be looked at, as far as it can be known.

    Raises:
        UsageError: if there is no such file, or an option is wrong.
    """
    try:
        loaded = load(path, sets=changes_of(options), probe=target_problem)
    except SpecError as error:
        return error.faults
    faults, doubts = look_at_targets(loaded)
    return faults + loaded.warnings + doubts


def explain(path: str, options: RunOptions | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """A spec as JSON, defaulted, and those that it uses by the path that names each.

    Raises:
        SpecError: with all that is wrong with the spec.
        UsageError: if there is no such file, or an option is wrong.
    """
    loaded = load(path, sets=changes_of(options))
    return _named(loaded), {at: _named(other) for at, other in loaded.agents.items()}


def _named(loaded: Loaded) -> dict[str, Any]:
    return {**to_json(loaded.spec), "name": loaded.name}


def tools(path: str | None = None) -> list[dict[str, Any]]:
    """The tools of a spec, or those that need none, each with its schema and where it comes from.

    Of those that need none, one that can't be had has a ``problem`` in place of a schema.

    Raises:
        SpecError: with all that is wrong with the spec.
    """
    if path is None:
        return _built_in()
    loaded = load(path)
    faults, _ = look_at_targets(loaded)
    if faults:
        raise SpecError(faults)
    from runner.spec.model.tool import McpTools

    live = _edges()
    if any(isinstance(entry, McpTools) for entry in loaded.spec.tools):
        from runner.api.listed import listed_tools

        return listed_tools(loaded, lambda index: _tool(loaded, index, live))
    return [_tool(loaded, index, live) for index in range(len(loaded.spec.tools))]


def _built_in() -> list[dict[str, Any]]:
    from runner.api.tooling import tool_names
    from runner.spec.load import load_plan

    names = tool_names()
    model = {"provider": "scripted", "script": []}
    loaded = load_plan({"version": 1, "model": model, "tools": names}, name="built-in")
    return [_listed(loaded, index) for index in range(len(names))]


def _listed(loaded: Loaded, index: int) -> dict[str, Any]:
    """A tool of a list in which one that can't be had takes no other with it."""
    from runner.api.tooling import source_of

    try:
        return _tool(loaded, index, _edges())
    except UsageError as error:
        name = str(loaded.spec.tools[index])
        known = {"name": name, "description": "", "parameters": {}, "source": source_of(name)}
        return known | {"problem": f"it can't be used: {error}"}


def _tool(loaded: Loaded, index: int, live: Live) -> dict[str, Any]:
    from runner.spec.inputs import parameters
    from runner.spec.model.tool import AgentTool, McpTools

    path, entry = f"tools[{index}]", loaded.spec.tools[index]
    if isinstance(entry, str):
        from runner.api.tooling import source_of

        source = source_of(entry)
    else:
        source = loaded.where(path)
    if isinstance(entry, AgentTool):
        other = loaded.agents[f"{path}.agent"]
        about = entry.description or other.spec.description or f"Ask {other.name}."
        schema: Mapping[str, Any] = parameters(other.spec.inputs)
        name = entry.name or other.name
    else:
        assert not isinstance(entry, McpTools)
        tool = live.tool(loaded, path, entry, {})
        name, about, schema = tool.name, tool.description, tool.parameters
    return {"name": name, "description": about, "parameters": dict(schema), "source": source}


# --- what a spec names ----------------------------------------------------------------------------


def look_at_targets(loaded: Loaded) -> tuple[list[Fault], list[Fault]]:
    """What is wrong with what a spec, and all that it uses, names: tools, hooks, providers.

    Returns:
        What is wrong, and what should be looked at though nothing is.
    """
    faults: list[Fault] = []
    names: dict[int, list[str]] = {}
    for each in loaded.everything():
        faults += _tool_faults(each, names.setdefault(id(each), []))
        faults += _python_faults(each)
        faults += _provider_faults(each)
        faults += _sandbox_faults(each)
    if faults:  # which tools there are is not known
        return faults, []
    from runner.api.tool_names import doubts

    return [], list(doubts(loaded, names))


def target_problem(target: str, folder: str) -> str | None:
    """What is wrong with a function that a spec names; None where it can be had."""
    from runner.python_file import load_callable

    try:
        load_callable(target, Path(folder))
    except UsageError as error:
        return str(error)
    return None


def _tool_faults(loaded: Loaded, names: list[str]) -> Iterator[Fault]:
    """What is wrong with the tools of a spec; ``names`` gets what each is called."""
    from runner.spec.model.tool import AgentTool, McpTools, PythonTool

    taken: dict[str, int] = {}
    for index, entry in enumerate(loaded.spec.tools):
        path = f"tools[{index}]"
        if isinstance(entry, McpTools):
            yield from _server_faults(loaded, index, entry)
            continue
        try:
            if isinstance(entry, AgentTool):
                name = entry.name or loaded.agents[f"{path}.agent"].name
            else:
                name = _edges().tool(loaded, path, entry, {}).name
        except UsageError as error:
            part = f"{path}.python" if isinstance(entry, PythonTool) else path
            yield loaded.fault(part, str(error))
            continue
        if name in taken:
            first = f"tools[{taken[name]}]"
            message = f'there is a tool "{name}" already, {first}; give one another name'
            yield loaded.fault(path, message)
        taken.setdefault(name, index)
        names.append(name)


def _server_faults(loaded: Loaded, index: int, entry: McpTools) -> Iterator[Fault]:
    """What is wrong with an MCP server as it is written: it is not started."""
    from runner.api.mcp import problems
    from runner.spec.model.tool import McpTools

    path, name = f"tools[{index}].mcp", entry.mcp.name
    for key, problem in problems(entry):
        yield loaded.fault(path + key, problem)
    for before, other in enumerate(loaded.spec.tools[:index]):
        if isinstance(other, McpTools) and other.mcp.name == name:
            message = f'there is a server "{name}" already, tools[{before}]; give one another name'
            yield loaded.fault(f"{path}.name", message)
            return


def _sandbox_faults(loaded: Loaded) -> Iterator[Fault]:
    if loaded.spec.sandbox == "bwrap":
        from runner.toolkit.sandbox import MISSING, is_there

        if not is_there():
            yield loaded.fault("sandbox", MISSING)


def _python_faults(loaded: Loaded) -> Iterator[Fault]:
    """What is wrong with the Python of hooks and keys."""
    spec = loaded.spec
    named = [
        (f"hooks.{point}[{n}].python", hook.python)
        for point in POINTS
        for n, hook in enumerate(getattr(spec.hooks, point))
    ]
    for path, choice in _models(loaded):
        if choice.api_key is not None:
            named.append((f"{path}.api_key.python", choice.api_key.python))
    for path, target in named:
        if target is None:
            continue
        if problem := target_problem(target, loaded.folder_of(path)):
            yield loaded.fault(path, problem)


def _provider_faults(loaded: Loaded) -> Iterator[Fault]:
    for path, choice in _models(loaded):
        if choice.provider == "scripted":
            continue
        from runner import providers
        from runner.error import did_you_mean

        if not providers.exists(choice.provider):
            known = did_you_mean(choice.provider, providers.names())
            message = f'there is no provider "{choice.provider}"; {known}'
            yield loaded.fault(f"{path}.provider", message)


def key_faults(loaded: Loaded, environ: Mapping[str, str]) -> Iterator[Fault]:
    """The models that need a key, say nothing of one, and whose usual name is not set."""
    for each in loaded.everything():
        for path, choice in _models(each):
            if choice.api_key is not None or choice.provider in ("scripted", "local"):
                continue
            from runner.providers.keys import default_names

            # An address that is a template is known only later; it is no public one.
            names = default_names(choice.provider, choice.base_url)
            if names and not any(environ.get(name, "").strip() for name in names):
                message = f"{choice.provider} needs a key; set {names[0]}, or give it an api_key"
                yield each.fault(f"{path}.provider", message)


def _models(loaded: Loaded) -> Iterator[tuple[str, Any]]:
    yield "model", loaded.spec.model
    for n, choice in enumerate(loaded.spec.model.fallback):
        yield f"model.fallback[{n}]", choice


def _edges() -> Live:
    from runner.api.live import Live

    return Live({}, Path.cwd(), None)


def changes_of(options: RunOptions | None) -> list[str | tuple[str, Any]]:
    """The changes that options make to a spec.

    Raises:
        UsageError: for a model that is not named as it must be.
    """
    if options is None:
        return []
    changes: list[str | tuple[str, Any]] = [f"{path}={text}" for path, text in options.sets]
    if options.model is not None:
        provider, slash, model = options.model.partition("/")
        if not slash or not provider or not model:
            raise UsageError(
                f"--model {options.model}: write PROVIDER/ID, such as openai/gpt-5-mini"
            )
        changes += [("model.provider", provider), ("model.id", model)]
    return changes
