"""The command ``pi-run``. One file a command: options in, exit code out, no logic."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import click

from runner.cli.failure import tell
from runner.cli.interrupts import end_by_interrupt
from runner.cli.streams import (
    Streams,
    let_go_of_standard_streams,
    open_standard_descriptors,
)
from runner.error import UsageError, nearest

COMMANDS = {
    "run": "Run specs. `pi-run SPEC` is short for it.",
    "batch": "Run specs over rows of inputs, many at a time.",
    "worker": "Do the runs of a database that many workers share.",
    "runs": "List, cancel, retry and export the runs of a database.",
    "check": "Check specs, without a model call.",
    "replay": "Run a log again, offline, and compare every event; or fork it.",
    "resume": "Go on with a run that was killed, stopped or at a limit.",
    "show": "Tell what happened in a run, from its log.",
    "diff": "Compare two logs.",
    "export": "Pass a log on to OpenTelemetry, Perfetto or Chrome.",
    "logs": "List the logs of runs.",
    "script": "Make a script for the scripted model of a log.",
    "coverage": "Tell what of a spec no log ever exercised.",
    "doctor": "Check what a spec needs, and whether it does the same twice.",
    "chaos": "Run a recorded run again for each point where it can fail.",
    "tools": "List the tools that there are, with their schemas.",
    "mcp": "Serve specs as the tools of an MCP server.",
    "serve": "Serve specs by HTTP, with a page to watch and lead their runs.",
    "schema": "Print the JSON Schema of specs or of logs.",
    "init": "Write a first spec, a tool and a test that pass as they are.",
}
"""Each command with its line in the list. Its module has its name, and in it the function that
does; it is imported when the command is called."""

_MODULES = {"runs": "stored_runs"}
"""The modules of commands that have another name."""

_GROUP_OPTIONS = ("--help", "--version")


class Commands(click.Group):
    """The commands, each imported when it is called, with ``run`` for what is none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, the most used first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name."""
        if cmd_name not in COMMANDS:
            return None
        # importlib's module would have to be imported first.
        home = _MODULES.get(cmd_name, cmd_name)
        module = __import__(f"runner.cli.{home}", fromlist=["command"])
        command: click.Command = module.command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take a first word that is no command for the first argument of ``run``."""
        if args and args[0] not in COMMANDS and args[0] not in _GROUP_OPTIONS:
            _hold_for_a_spec(args[0])
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _hold_for_a_spec(word: str) -> None:
    """Refuse what is rather a command that is misspelt."""
    if word.isalpha() and not os.path.exists(word) and (near := nearest(word, COMMANDS)):
        raise UsageError(f'there is no command and no spec "{word}"; did you mean "{near}"?')


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"pi-run {version('pi-run')}")
        ctx.exit()


@click.group(
    cls=Commands,
    epilog="""\b
Examples:
  pi-run triage.yaml -i issue="It crashes at start"
  pi-run check triage.yaml

Each option of a command can stand in the environment too, such as --log in PI_RUN_LOG. A flag
beats it, and both beat the spec.""",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def commands() -> None:
    """Run agent workflows that are written as plain YAML."""


def _use_utf8() -> None:
    """Start again in Python's UTF-8 mode where the locale is of another encoding.

    Arguments, file names and the files that tools open are UTF-8 in any locale, and Python decides
    that at its start. The process stays the same one.
    """
    if sys.flags.utf8_mode or sys.getfilesystemencoding() == "utf-8" or not sys.executable:
        return
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def execute(arguments: list[str], streams: Streams) -> int:
    """Do what a command line says.

    Returns:
        The exit code. Nothing is raised: what goes wrong is told on stderr.
    """
    try:
        with commands.make_context("pi-run", arguments, obj=streams) as context:
            code: Any = commands.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except BaseException as error:
        if isinstance(error, OSError) and not streams.claimed:
            # Before a command is invoked nothing is written but help, to stdout.
            error = streams.unwritten(error)
        return tell(error, streams)
    return code if isinstance(code, int) else 0


def main() -> NoReturn:
    """Run the command that the arguments of this process say."""
    _use_utf8()
    open_standard_descriptors()
    end_by_interrupt()
    code = execute(sys.argv[1:], Streams())
    thread = sys.modules.get("runner.thread")
    let_go_of_standard_streams()
    if thread is not None and thread.left_behind:
        # Python's own end would free them, and some never let it.
        os._exit(code)
    sys.exit(code)
