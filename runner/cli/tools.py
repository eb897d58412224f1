"""``pi-run tools``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runner.cli.command import Command, format_option, spec_options
from runner.cli.streams import Streams
from runner.error import UsageError

if TYPE_CHECKING:
    from runner.api.calling import Called


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run tools
  pi-run tools triage.yaml --format json
  pi-run tools triage.yaml --call read_file '{"path": "README.md"}'

\b
Exit codes of a call:
  0 done                           3 it could not be made
  1 an error result                5 blocked by a permission or a hook
  2 wrong usage or spec            130, 143 interrupted, terminated""",
)
@click.argument("spec", required=False)
@click.option(
    "--call",
    nargs=2,
    metavar="NAME ARGUMENTS",
    help="Call a tool; its arguments are a JSON object, or - for one on stdin.",
)
@spec_options
@click.option("--workspace", metavar="DIR", help="The folder that the tools work in.")
@click.option("--yes", is_flag=True, help="Answer every question of a permission with yes.")
@click.option("--read-only", is_flag=True, help="Refuse tools that may change something.")
@format_option(
    help="A table, or a JSON list with each tool's schema; of a call, its text or all of it."
)
@click.pass_obj
def command(
    streams: Streams,
    /,
    spec: str | None,
    call: tuple[str, str] | None,
    form: str,
    **flags: Any,
) -> int:
    """List the tools that need no spec, or those of one, with where they come from.

    With --call, one is called as a model would call it: the spec's permissions and its hooks of
    calls are asked. stdout gets the result.
    """
    if call is not None:
        return _call(streams, spec, call[0], _arguments(call[1]), form, flags)
    from runner import api, json_text
    from runner.views.text import tool_lines

    tools = api.tools(spec)
    if form == "json":
        streams.line(json_text.line(tools))
    else:
        streams.result("\n".join(tool_lines(tools)))
    return 0


def _arguments(text: str) -> dict[str, Any]:
    from runner.cli.inputs import prompt_text
    from runner.json_text import parse

    try:
        value = parse(prompt_text(text) or "")
    except ValueError as error:
        raise UsageError(f"--call: the arguments are no JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError('--call: the arguments are a JSON object, such as {"path": "a.txt"}')
    return value


def _call(
    streams: Streams,
    spec: str | None,
    name: str,
    arguments: dict[str, Any],
    form: str,
    flags: dict[str, Any],
) -> int:
    import asyncio

    from runner import api
    from runner.api.calling import call_tool
    from runner.cli.interrupts import Interrupts
    from runner.cli.options import run_options
    from runner.thread import run_in_loop

    options, control = run_options(**flags), api.Control()
    with Interrupts() as interrupts:

        async def drive() -> Called:
            interrupts.attach(asyncio.get_running_loop(), control)
            return await call_tool(spec, name, arguments, options, control)

        try:
            called = run_in_loop(drive())
        finally:
            interrupts.detach()
    _tell(streams, called, form)
    return called.exit_code


def _tell(streams: Streams, called: Called, form: str) -> None:
    if form == "json":
        from dataclasses import asdict

        from runner import json_text

        streams.line(json_text.line(asdict(called)))
    elif called.error is None:
        streams.result("\n".join(map(_shown, called.content)))
    if called.error is not None:
        streams.say(f"pi-run: {called.error}")


def _shown(block: dict[str, Any]) -> str:
    if block["type"] == "text":
        return str(block["text"])
    return f"[{block['mime_type']}, {len(block['data'])} characters of base64]"
