"""The one place where an exception becomes words for a person and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

from runner.cli.streams import Streams
from runner.error import BUG, Fault, PiRunError, SpecError


def tell(error: BaseException, streams: Streams) -> int:
    """Say on stderr what went wrong, and give the exit code.

    A spec's faults stand as they are, a line each; all else is ``pi-run: what happened; what to
    do``, a line each. A traceback is printed with ``--verbose`` alone.
    """
    if isinstance(error, SpecError):
        tell_faults(error.faults, streams)
        return error.exit_code
    if isinstance(error, PiRunError):
        _traceback(error, streams)
        for line in str(error).splitlines() or [type(error).__name__]:
            streams.say(f"pi-run: {line}")
        return error.exit_code
    if isinstance(error, click.ClickException):
        return _tell_usage(error, streams)
    if isinstance(error, KeyboardInterrupt):
        streams.say("pi-run: interrupted")
        return 130
    if isinstance(error, BrokenPipeError):
        # Nobody reads the help. What is left of it must not be tried again at the end.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        return 1
    return _tell_bug(error, streams)


def tell_faults(faults: list[Fault], streams: Streams) -> None:
    """Say on stderr what is wrong in specs; in GitHub Actions also as annotations."""
    for fault in faults:
        streams.say(fault_line(fault))
    if streams.in_actions:
        for line in annotation_lines(faults):
            streams.annotate(line)


def fault_line(fault: Fault) -> str:
    """A fault in one line; a warning says that it is one."""
    if not fault.warning:
        return str(fault)
    place = f"{fault.file}:{fault.line}:{fault.column}"
    return f"{place}: {fault.path}: warning: {fault.message}"


def annotation_lines(faults: Iterable[Fault]) -> list[str]:
    """Faults as annotations of GitHub Actions, a line each."""
    from runner.views.ci import annotation

    root = os.environ.get("GITHUB_WORKSPACE")
    return [annotation(fault, root) for fault in faults]


def _tell_usage(error: click.ClickException, streams: Streams) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        streams.say(error.format_message())
        return error.exit_code
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message[:1].lower() + message[1:].replace(". Did you mean", "; did you mean")
    if "did you mean" not in message.lower():
        message += f"; see {context.command_path if context else 'pi-run'} --help"
    streams.say(f"pi-run: {message}")
    return error.exit_code


def _tell_bug(error: BaseException, streams: Streams) -> int:
    _traceback(error, streams)
    what = " ".join(f"{type(error).__name__}: {error}".split())
    hint = "report it" if streams.verbose else "run it with --verbose for a report's traceback"
    streams.say(f"pi-run: this is a bug of pi-run: {what}; {hint}")
    return BUG


def _traceback(error: BaseException, streams: Streams) -> None:
    if streams.verbose:
        import traceback

        streams.say("".join(traceback.format_exception(error)).rstrip())
