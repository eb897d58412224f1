"""Specs as the tools of an MCP server: any client of the protocol can have them run."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.api.options import Control, RunOptions, RunResult
from runner.api.prepared import prepare
from runner.api.runs import run
from runner.api.static import changes_of, key_faults, look_at_targets
from runner.api.telling import runner_version
from runner.error import PiRunError, SpecError, UsageError, did_you_mean
from runner.json_text import line
from runner.spec.inputs import parameters
from runner.spec.load import load
from runner.spec.loaded import Loaded

_PROMPT = {"type": "string", "description": "What is asked."}
"""The parameter of a spec that has no prompt of its own."""

_LAST_WORDS = 2.0
"""Seconds that the last of what a client is told may take."""

Report = Callable[[float, str], Awaitable[None]]
"""Tells a client how far a run is: a number that grows, and what is done."""


@dataclass(slots=True)
class ServedSpec:
    """A spec as a tool."""

    path: str
    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of its inputs."""
    output: Mapping[str, Any] | None
    """JSON Schema of its output, where that is an object."""
    asks_for_prompt: bool
    """Whether its prompt is a parameter."""


class SpecServer:
    """Specs, each of which a client can call.

    Args:
        paths: The specs' files.
        options: How they are run; what a call gives is added.

    Raises:
        SpecError: with all that is wrong with the specs.
        UsageError: where one can't be a tool, or two have one name.
    """

    def __init__(self, paths: Sequence[str], options: RunOptions) -> None:
        self._options = options
        self.specs: dict[str, ServedSpec] = {}
        faults = []
        for path in paths:
            try:
                served, wrong = _served(path, options)
            except SpecError as error:
                faults += error.faults
                continue
            faults += wrong
            if served.name in self.specs:
                other = self.specs[served.name].path
                raise UsageError(
                    f'{path}: there is a tool "{served.name}" already, {other}; give one another '
                    "`name`"
                )
            self.specs[served.name] = served
        if faults:
            raise SpecError(faults)

    def sdk_server(self) -> Any:
        """The SDK's server of them."""
        from mcp.server.lowlevel import Server
        from mcp_types import ListToolsResult, Tool

        tools = [
            Tool(
                name=spec.name,
                description=spec.description,
                input_schema=dict(spec.parameters),
                output_schema=dict(spec.output) if spec.output is not None else None,
            )
            for spec in self.specs.values()
        ]

        async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
            return ListToolsResult(tools=tools)

        return Server(
            "pi-run",
            version=runner_version(),
            on_list_tools=list_tools,
            on_call_tool=self._call,
        )

    async def _call(self, context: Any, params: Any) -> Any:
        """Run a spec for a client; its cancellation aborts the run, which is waited for."""
        import anyio

        spec = self.specs.get(params.name)
        if spec is None:
            hint = did_you_mean(params.name, self.specs)
            return _error(f'there is no tool "{params.name:.100}"; {hint}')
        control = Control()

        async def report(progress: float, message: str) -> None:
            await context.session.report_progress(progress, None, message)

        work = asyncio.ensure_future(self.run(spec, params.arguments or {}, report, control))
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            control.abort()
            # The SDK cancels again and again until this returns.
            with anyio.CancelScope(shield=True):
                await asyncio.wait({work})
            raise
        return work.result()

    async def run(
        self, spec: ServedSpec, arguments: Mapping[str, Any], report: Report, control: Control
    ) -> Any:
        """What a run comes to, as the SDK's result. Never raises for what happens in it."""
        values = dict(arguments)
        prompt = None
        if spec.asks_for_prompt:
            prompt = values.pop("prompt", None)
            if not isinstance(prompt, str):
                return _error("prompt: a string is needed")
        base = self._options
        options = dataclasses.replace(base, values={**base.values, **values}, prompt=prompt)
        progress = _Progress(report)
        telling = asyncio.ensure_future(progress.tell())
        try:
            prepared = prepare(spec.path, options)
            result = await run(prepared, on_event=progress.event, control=control)
        except PiRunError as error:
            return _error(str(error))
        finally:
            await progress.end(telling)
        return _result(result, with_output=spec.output is not None)


def _served(path: str, options: RunOptions) -> tuple[ServedSpec, list[Any]]:
    loaded = load(path, sets=changes_of(options))
    faults = loaded.missing_environment(options.environ)
    wrong, _ = look_at_targets(loaded)
    faults += [*wrong, *key_faults(loaded, options.environ)]
    open_inputs = {
        name: known for name, known in loaded.inputs.items() if name not in options.values
    }
    schema = parameters(open_inputs)
    asks_for_prompt = loaded.spec.prompt is None
    if asks_for_prompt:
        if "prompt" in loaded.inputs:
            raise UsageError(f'{path} has no prompt, and an input "prompt" that no prompt uses')
        schema["properties"] = {"prompt": _PROMPT, **schema["properties"]}
        schema["required"] = ["prompt", *schema["required"]]
    about = loaded.spec.description or f"Run {loaded.name}."
    return (
        ServedSpec(path, loaded.name, about, schema, _output_of(loaded), asks_for_prompt),
        faults,
    )


def _output_of(loaded: Loaded) -> Mapping[str, Any] | None:
    output = loaded.spec.output
    schema = output.schema if output is not None else None
    # The protocol takes objects alone.
    return schema if isinstance(schema, dict) and schema.get("type") == "object" else None


def _error(text: str) -> Any:
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _result(result: RunResult, *, with_output: bool) -> Any:
    from mcp_types import CallToolResult, TextContent

    if result.status != "ok":
        said = f"\nIt said so far: {result.text}" if result.text else ""
        return _error(f"The run ended as {result.status}: {result.error}{said}")
    text = result.text if result.output is None else line(result.output)
    structured = result.output if with_output else None
    return CallToolResult(content=[TextContent(text=text)], structured_content=structured)


class _Progress:
    """What a client is told of a run, made of its events."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._waiting: asyncio.Queue[str | None] = asyncio.Queue()

    def event(self, event: dict[str, Any]) -> None:
        """Take an event."""
        if event["type"] == "turn_start":
            self._waiting.put_nowait(f"turn {event['turn']}")
        elif event["type"] == "tool_execution_start":
            self._waiting.put_nowait(f"tool {event['tool_name']}")
        elif event["type"] == "task_start" and event["task_id"] != "main":
            self._waiting.put_nowait(f"task {event['task_id']}")

    async def tell(self) -> None:
        """Tell of each, until the end."""
        count = 0
        while (message := await self._waiting.get()) is not None:
            count += 1
            await self._report(count, message)

    async def end(self, telling: asyncio.Task[None]) -> None:
        """Tell what is left, before the result; not to a client that reads nothing."""
        self._waiting.put_nowait(None)
        await asyncio.wait({telling}, timeout=_LAST_WORDS)
        telling.cancel()
        # What goes wrong with it is that the client went away, which ends the run anyhow.
        await asyncio.gather(telling, return_exceptions=True)


# --- by stdin and stdout --------------------------------------------------------------------------


async def serve_lines(server: SpecServer, pipe: Any) -> None:
    """Serve one client that talks by lines, until it goes away.

    Args:
        server: What is served.
        pipe: A `runner.toolkit.mcp.stdio.Pipe`.
    """
    from runner.toolkit.mcp.stdio import Lines

    sdk = server.sdk_server()
    async with Lines(pipe).streams() as (incoming, outgoing):
        await sdk.run(incoming, outgoing, sdk.create_initialization_options())
