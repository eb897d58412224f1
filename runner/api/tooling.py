"""Tools as a spec names them: built-in ones, plug-ins', functions, programs, HTTP requests."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from runner import bundled
from runner.api.value import Names as Names
from runner.api.value import environment_of, values_of
from runner.engine.contract import Tool
from runner.error import TemplateError, UsageError, did_you_mean
from runner.spec.decode import to_json
from runner.spec.loaded import Loaded
from runner.spec.model.tool import (
    CommandTool,
    HttpTool,
    OwnToolOptions,
    PythonTool,
    UseTool,
)
from runner.spec.template import Template, render_all

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from runner.api.live import Live
    from runner.toolkit.http import HttpCall

ToolEntry = str | UseTool | PythonTool | CommandTool | HttpTool
"""A tool as a spec names it, but one that is an agent."""
GROUP = "pi_run.tools"
"""The entry points of tools that plug-ins bring: a name, and the function that it is."""
_ONLY = {"allow": "shell", "allow_private": "fetch", "allow_hosts": "fetch"}
"""Keys that belong to one built-in."""


def make_tool(live: Live, loaded: Loaded, path: str, entry: ToolEntry, names: Names) -> Tool:
    """A tool of a spec.

    Args:
        live: What it reaches out with.
        loaded: The spec.
        path: Where it stands in the spec.
        entry: What stands there.
        names: What its templates see.

    Raises:
        UsageError: where it can't be had, or has no legal name.
    """
    if isinstance(entry, CommandTool):
        made = _command(live, loaded, path, entry, names)
    elif isinstance(entry, HttpTool):
        made = _http(live, loaded, path, entry, names)
    elif isinstance(entry, PythonTool):
        from runner.python_file import load_callable

        folder = Path(loaded.folder_of(f"{path}.python"))
        function = load_callable(entry.python, folder)
        made = _function(live, function, loaded, path, entry, names)
    else:
        made = _named(live, loaded, path, entry, names)
    options = None if isinstance(entry, str) else entry
    # In a sandbox that can't be written out of, it is the sandbox that keeps a run read-only.
    is_confined = loaded.spec.sandbox == "bwrap" and _is_program(entry)
    return held(live, loaded, made, options, changes_nothing=is_confined)


def held(
    live: Live,
    loaded: Loaded,
    tool: Tool,
    entry: OwnToolOptions | None,
    *,
    changes_nothing: bool = False,
) -> Tool:
    """A tool that keeps to what its run asks of all: also one that nothing here made."""
    from runner.toolkit.held import HeldTool

    changes_nothing = changes_nothing or getattr(tool, "read_only", False)
    return HeldTool(
        tool,
        live.outputs,
        concurrency=entry.concurrency if entry is not None else None,
        refused=live.is_read_only(loaded) and not changes_nothing,
    )


def _is_program(entry: ToolEntry) -> bool:
    """Whether all that a tool does is done by a program."""
    if isinstance(entry, UseTool):
        entry = entry.use
    return isinstance(entry, CommandTool) or entry in ("python", "shell")


def tool_names() -> list[str]:
    """The names of all tools that a spec can use: built-in ones and those of plug-ins."""
    return sorted({*bundled.tool_names(), *_plug_ins().names})


def source_of(name: str) -> str:
    """Where a tool comes from that a spec names: built-in, or what plug-in."""
    if name in bundled.tool_names():
        return f"built-in {name}"
    return next((f"plug-in {each.value}" for each in _plug_ins().select(name=name)), name)


# --- functions ------------------------------------------------------------------------------------


def _named(live: Live, loaded: Loaded, path: str, entry: str | UseTool, names: Names) -> Tool:
    name = entry if isinstance(entry, str) else entry.use
    function = _built_in(name) if name in bundled.tool_names() else _plugged_in(name)
    if isinstance(entry, str) and name not in bundled.tool_names():
        # Its name is the entry point's, whatever the function's own is.
        entry = UseTool(use=name)
    if isinstance(entry, str):
        return _function(live, function, loaded, path, None, names)
    for key, owner in _ONLY.items():
        if getattr(entry, key) is not None and name != owner:
            raise UsageError(f"{name} takes no `{key}`; only {owner} does")
    if entry.env is not None and name in bundled.tool_names() and not _is_program(entry):
        raise UsageError(f"{name} takes no `env`, since it starts no program")
    if entry.allow is not None:
        function = _narrowed(function, entry.allow)
    return _function(live, function, loaded, path, entry, names)


def _built_in(name: str) -> Callable[..., Any]:
    from runner.python_file import load_callable

    file = bundled.folder("tools") / f"{name}.py"
    return cast("Callable[..., Any]", load_callable(f"{file}:{name}", file.parent))


def _plug_ins() -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def _plugged_in(name: str) -> Callable[..., Any]:
    for plug_in in _plug_ins().select(name=name):
        try:
            function = plug_in.load()
        except (Exception, SystemExit) as error:
            # A plug-in's import runs code that is not ours, and may raise anything.
            raise UsageError(
                f'the plug-in for tool "{name}" ({plug_in.value}) can\'t be loaded:'
                f" {type(error).__name__}: {error}"
            ) from error
        if not callable(function):
            raise UsageError(f'the plug-in for tool "{name}" ({plug_in.value}) is no function')
        return cast("Callable[..., Any]", function)
    raise UsageError(f'there is no built-in tool "{name}"; {did_you_mean(name, tool_names())}')


def _function(
    live: Live,
    function: Callable[..., Any],
    loaded: Loaded,
    path: str,
    entry: PythonTool | UseTool | None,
    names: Names,
) -> Tool:
    from runner.toolkit.python import from_function
    from runner.toolkit.surroundings import Surroundings

    given = _given(entry)
    options = {key: given.pop(key) for key in (*_ONLY,) if key in given}
    if isinstance(entry, PythonTool):
        options = {}
    more = None
    if entry is not None and entry.env:
        values = values_of(live, loaded, f"{path}.env", entry.env)
        more = functools.partial(values, names)
    output = loaded.spec.output
    # A redirect is not held against permissions, so it is for the model to ask for where it leads.
    options["same_host"] = loaded.spec.permissions is not None
    return from_function(
        function,
        name=entry.name or (entry.use if isinstance(entry, UseTool) else None) if entry else None,
        description=entry.description if entry else None,
        surroundings=Surroundings(
            workspace=live.workspace,
            environment=lambda: live.environment(loaded.folder, bare=True),
            more_environment=more,
            options=options,
            read_only=live.is_read_only(loaded),
            confine=_confine(live, loaded),
            ask=live.ask,
            outputs=live.outputs,
            output_schema=cast("Any", output.schema) if output is not None else None,
        ),
        apart=True,
        **options_of(entry),
    )


def _narrowed(function: Callable[..., Any], patterns: Sequence[str]) -> Callable[..., Any]:
    """A tool that runs commands, for only those that fit patterns."""

    @functools.wraps(function)
    async def narrowed(**arguments: Any) -> Any:
        from runner.engine.contract import ToolResult
        from runner.hooks.permission import refused_command

        refused = refused_command(arguments["command"], patterns)
        if refused is not None:
            return ToolResult(f"Not run: {refused}", is_error=True)
        return await function(**arguments)

    return narrowed


# --- programs and requests ------------------------------------------------------------------------


def _command(live: Live, loaded: Loaded, path: str, entry: CommandTool, names: Names) -> Tool:
    from runner.toolkit.command import CommandTool as Command

    where = loaded.where(f"{path}.command")

    def render(template: str, values: Mapping[str, Any]) -> str:
        return Template(template, where).render({**names, **values})

    return Command(
        entry.name,
        entry.description,
        entry.parameters,
        entry.command,
        render=render,
        folder=Path(loaded.folder_of(f"{path}.command")),
        workspace=live.workspace,
        environment=environment_of(live, loaded, f"{path}.env", entry.env, names),
        confine=_confine(live, loaded),
        allow_options=bool(entry.allow_options),
        is_json=entry.output == "json",
        **options_of(entry),
    )


def _confine(live: Live, loaded: Loaded) -> Callable[[Sequence[str]], Sequence[str]] | None:
    """What runs programs in the spec's sandbox; None where it has none."""
    if loaded.spec.sandbox != "bwrap":
        return None
    from runner.toolkit.sandbox import confine

    def also_read() -> list[Path]:
        needed = [Path(loaded.folder), Path(sys.base_prefix), Path(sys.prefix)]
        return needed if live.outputs.folder is None else [*needed, live.outputs.folder]

    return confine(live.workspace, read_only=live.is_read_only(loaded), also_read=also_read)


def _http(live: Live, loaded: Loaded, path: str, entry: HttpTool, names: Names) -> Tool:
    from runner.spec.url import UrlTemplate
    from runner.toolkit.http import HttpCall
    from runner.toolkit.http import HttpTool as Http

    request = entry.http
    if request.json is not None and request.body is not None:
        raise UsageError(f"{entry.name}: a request has `json` or `body`, not both")
    url = UrlTemplate(request.url, loaded.where(f"{path}.http.url"))
    headers = values_of(live, loaded, f"{path}.http.headers", request.headers)

    async def make(args: Mapping[str, Any]) -> HttpCall:
        seen = {**names, "args": args}
        call = HttpCall(
            url.render(names, args),
            render_all(request.query, seen, loaded.where(f"{path}.http.query")),
            await headers(seen),
        )
        kind = None
        if request.json is not None:
            given = render_all(request.json, seen, loaded.where(f"{path}.http.json"))
            call.body, kind = _json_bytes(given, loaded.where(f"{path}.http.json")), "json"
        elif request.body is not None:
            text = Template(request.body, loaded.where(f"{path}.http.body")).render(seen)
            call.body = text.encode(errors="replace")
        if kind is not None and not any(name.lower() == "content-type" for name in call.headers):
            call.headers = {**call.headers, "Content-Type": f"application/{kind}"}
        return call

    return Http(
        entry.name,
        entry.description,
        entry.parameters,
        method=request.method,
        make=make,
        max_bytes=request.max_bytes,
        **options_of(entry),
    )


def _json_bytes(value: Any, where: str) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TemplateError(f"{where}: it is no JSON: {error}") from error
    return text.encode(errors="replace")


def _given(entry: Any) -> dict[str, Any]:
    """The keys of an entry that say something."""
    if entry is None:
        return {}
    return {key: value for key, value in to_json(entry).items() if value is not None}


def options_of(entry: OwnToolOptions | None) -> dict[str, Any]:
    """What an entry says that any tool may say of itself."""
    given = _given(entry)
    return {
        key: given[key]
        for key in ("execution", "idempotent", "timeout", "read_only")
        if key in given
    }
