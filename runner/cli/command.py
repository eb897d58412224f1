"""What all commands have in common: their class, and the options that several of them take."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from runner.cli.streams import Streams

_F = TypeVar("_F", bound=Callable[..., Any])

MAX_AT_ONCE = 1000
"""More runs at a time than any model's server takes."""
MAX_RUNS = 100_000
"""How many runs one command does at most: a larger number is a slip."""


def _keep_verbose(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.ensure_object(Streams).verbose = value


class Command(click.Command):
    """A command that keeps stdout for its result, and takes ``PI_RUN_NAME`` for ``--name``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", {"auto_envvar_prefix": "PI_RUN"})
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(
                ["--verbose"],
                is_flag=True,
                expose_value=False,
                callback=_keep_verbose,
                help="Tell more; with an error, its traceback.",
            )
        )

    def invoke(self, ctx: click.Context) -> Any:
        """Do it, with stdout kept for the result."""
        ctx.ensure_object(Streams).claim()
        return super().invoke(ctx)


class Line(click.types.StringParamType):
    """A text; in the environment, where there may be several, a line each."""

    envvar_list_splitter = "\n"


class FiniteRange(click.FloatRange):
    """A number between bounds. What is none (``nan``) passes every comparison of click's own."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is no number.", param, ctx)
        return number


def specs_argument(function: _F) -> _F:
    """Let a command take specs, one at least."""
    return click.argument("specs", metavar="SPEC...", nargs=-1, required=True)(function)


def format_option(*more: str, help: str = "What stdout gets.") -> Callable[[_F], _F]:
    """Let a command take the format of its result: text, JSON, or one of `more`."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(("text", "json", *more)),
        default="text",
        envvar="PI_RUN_FORMAT",
        help=help,
    )


def at_once_option(function: _F) -> _F:
    """Let a command do several runs at a time."""
    return click.option(
        "-j",
        "at_once",
        metavar="N",
        type=click.IntRange(1, MAX_AT_ONCE),
        default=8,
        show_default=True,
        help="How many runs are under way at a time.",
    )(function)


def repeat_option(what: str) -> Callable[[_F], _F]:
    """Let a command do a run several times.

    Args:
        what: What is repeated: a spec, or a row.
    """
    return click.option(
        "--repeat",
        metavar="N",
        type=click.IntRange(1, MAX_RUNS),
        default=1,
        help=f"Run each {what} N times.",
    )


def min_pass_option(function: _F) -> _F:
    """Let a command be content with less than all runs being good."""
    return click.option(
        "--min-pass",
        metavar="RATE",
        type=FiniteRange(0, 1),
        default=1.0,
        help="How much of the runs of a spec must be good, from 0 to 1 (the default).",
    )(function)


def page_option(function: _F) -> _F:
    """Let a command write what it tells as a page."""
    return click.option(
        "--html",
        "page",
        metavar="FILE",
        help="Write one page of HTML that needs nothing else; - is stdout.",
    )(function)


_INPUTS = click.option(
    "--inputs", metavar="FILE", help="Take inputs from a map in a JSON or YAML file."
)


def spec_options(function: _F) -> _F:
    """Let a command take what changes a spec before it is checked, and its inputs."""
    return change_options(_INPUTS)(function)


def change_options(inputs: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Let a command take what changes a spec before it is checked, and single inputs of it.

    Args:
        inputs: Its option for a file of inputs.
    """

    def add(function: _F) -> _F:
        for option in _options(inputs):
            function = option(function)
        return function

    return add


def _options(inputs: Callable[[_F], _F]) -> tuple[Callable[[_F], _F], ...]:
    return (
        click.option(
            "--env-file",
            metavar="FILE",
            help="Read NAME=value lines; a real variable beats one of the same name.",
        ),
        click.option("--model", metavar="PROVIDER/ID", help="Ask this model instead."),
        click.option(
            "--set",
            "sets",
            envvar="PI_RUN_SET",
            metavar="PATH=VALUE",
            multiple=True,
            type=Line(),
            help="Change the spec, as in --set limits.turns=5. The value is YAML.",
        ),
        inputs,
        click.option(
            "-i",
            "--input",
            "given",
            envvar="PI_RUN_INPUT",
            metavar="NAME=VALUE",
            multiple=True,
            type=Line(),
            help="Give an input: name=text, name=@file or name:=JSON.",
        ),
    )
