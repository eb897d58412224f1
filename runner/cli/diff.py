"""``pi-run diff``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from runner.cli.command import Command, Line, format_option, page_option
from runner.cli.streams import Streams
from runner.error import LogError

if TYPE_CHECKING:
    from runner.log.difference import Difference


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run diff old.jsonl new.jsonl
  pi-run diff golden.jsonl last --ignore run_end.usage --ignore .spec
  pi-run diff old.jsonl new.jsonl --html diff.html

\b
A and B are each a path, a run's id or the beginning of one, or `last`.
Exit codes: 0 the same, 1 they differ, 6 a log can't be read.""",
)
@click.argument("a")
@click.argument("b")
@click.option(
    "--ignore",
    "ignored",
    envvar="PI_RUN_IGNORE",
    metavar="PATH",
    multiple=True,
    type=Line(),
    help="Leave this place out, and all below it: run_end.usage, or .usage for all events; "
    "* stands for any one key or index.",
)
@page_option
@format_option()
@click.pass_obj
def command(
    streams: Streams,
    /,
    a: str,
    b: str,
    ignored: tuple[str, ...],
    page: str | None,
    form: str,
) -> int:
    """Compare two logs in their canonical forms, by turn and path.

    What differs from run to run, such as times and ids, is no difference.
    """
    from runner import json_text
    from runner.log.compare import compare_logs
    from runner.log.find import find
    from runner.views.diff import diff_json, diff_lines

    one, other = str(find(a)), str(find(b))
    found = compare_logs(
        one, other, ignore=ignored, warn=lambda text: streams.say(f"pi-run: {text}")
    )
    if page is not None:
        return _page(streams, page, one, other, found)
    if form == "json":
        told = diff_json(found, one, other)
        streams.line(json_text.line(told))
        return 0 if told["same"] else 1
    differs = False
    for line in diff_lines(found, one, other):
        differs = True
        streams.result(line)
        if streams.closed:
            break
    if not differs:
        streams.say(f"{one} and {other} are the same, but for what differs from run to run")
    return 1 if differs else 0


def _page(streams: Streams, page: str, one: str, other: str, found: Iterable[Difference]) -> int:
    """Write a page of both runs and what differs.

    Raises:
        LogError: where a log can't be read twice.
    """
    from runner.cli.page_file import hold_writable, write_page
    from runner.log.read import read
    from runner.views.html import comparison

    hold_writable(page, one, other)
    for log in (one, other):
        if not os.path.isfile(log):
            raise LogError(
                f"{log}: is a pipe, which gives its lines only once, and a page tells them after "
                "they were compared; write them to a file"
            )
    differences = [difference.as_json() for difference in found]
    first, second = (event for _, event in read(one)), (event for _, event in read(other))
    write_page(streams, page, comparison(first, second, differences, names=(one, other)))
    return 1 if differences else 0
