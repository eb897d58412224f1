"""``pi-run show``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from runner.cli.command import Command, format_option, page_option
from runner.cli.streams import Streams
from runner.error import UsageError

if TYPE_CHECKING:
    from runner.views.chosen import Chosen

_WRITTEN_AT_ONCE = 64 << 10
"""Characters that are gathered before they are written."""


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run show last
  pi-run show run.jsonl --turn 3..5 --tool shell
  pi-run show run.jsonl --context 2..3
  pi-run show last --html report.html

\b
LOG is a path, a run's id or the beginning of one, or `last`.
With --format json: a list of events; with --context an object.""",
)
@click.argument("log")
@click.option("--turn", metavar="N|A..B", help="Only these turns.")
@click.option("--tool", metavar="NAME", help="Only the calls of this tool.")
@click.option("--agent", metavar="PATH", help="Only this agent, such as main/reviewer#1.")
@click.option(
    "--context",
    metavar="N|A..B",
    help="What the model really read in a turn, or what changed in it between two.",
)
@page_option
@format_option()
@click.pass_obj
def command(
    streams: Streams,
    /,
    log: str,
    form: str,
    context: str | None,
    page: str | None,
    **chosen: Any,
) -> int:
    """Tell what happened in a run, from its log."""
    from runner.log.find import find
    from runner.log.read import read

    path = str(find(log))
    events = (event for _, event in read(path, lambda text: streams.say(f"pi-run: {text}")))
    if context is not None:
        if chosen["turn"] or chosen["tool"]:
            raise UsageError("--context shows all of a turn; leave --turn and --tool out")
        if page is not None:
            raise UsageError("--context is told as text or JSON; leave --html out")
        _write(streams, [_context(events, path, context, form, chosen["agent"])])
        return 0
    choice = _choice(**chosen)
    if page is not None:
        _page(streams, events, path, page, choice, chosen)
        return 0
    seen = choice.among(events)
    _write(streams, _json(seen) if form == "json" else _lines(seen, whole=streams.verbose))
    _hold_for_something(streams, path, choice)
    return 0


def _choice(*, turn: str | None, tool: str | None, agent: str | None) -> Chosen:
    from runner.log.context import turns_of
    from runner.views.chosen import Chosen

    span = turns_of(turn) if turn else None
    if span is not None and span[0] > span[-1]:
        raise UsageError(f"--turn {turn}: the first turn is after the last; turn them round")
    return Chosen((span[0], span[-1]) if span else None, tool, agent)


def _hold_for_something(streams: Streams, path: str, choice: Chosen) -> None:
    if not streams.closed and (why := choice.why_nothing()):
        raise UsageError(f"{path}: {why}")


def _page(
    streams: Streams,
    events: Iterable[Mapping[str, Any]],
    path: str,
    page: str,
    choice: Chosen,
    chosen: Mapping[str, str | None],
) -> None:
    """Write a page of what is chosen, with the run's start and end, which stand at its top."""
    from runner.cli.page_file import hold_writable, write_page
    from runner.views.html import Slim, report

    hold_writable(page, path)
    only = ", ".join(f"{name} {value}" for name, value in chosen.items() if value)
    notices = [f"only a part of the run is shown: {only}"] if only else []
    slim = Slim()

    def pieces() -> Iterator[str]:
        yield from report(choice.among_framed(events), notices=notices, slim=slim)
        # Before the file takes its place.
        _hold_for_something(streams, path, choice)

    write_page(streams, page, pieces())
    for told in slim.notices():
        streams.say(f"pi-run: {page}: {told}")


def _lines(events: Iterable[Mapping[str, Any]], *, whole: bool) -> Iterator[str]:
    from runner.views.show import Account

    lines: list[str] = []
    account = Account(lines.append, whole=whole)
    for event in events:
        account.event(event)
        yield from lines
        lines.clear()
    account.finish()
    yield from lines


def _json(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One JSON list, an event a line, without deltas: each message is there whole."""
    from runner import json_text

    before = "["
    for event in events:
        if event["type"] != "message_update":
            yield before + json_text.line(event)
            before = ","
    yield "]" if before == "," else "[]"


def _context(
    events: Iterable[Mapping[str, Any]], path: str, text: str, form: str, agent: str | None
) -> str:
    from runner import json_text
    from runner.log.context import context_at, context_change, turns_of
    from runner.views import context as view

    turns = turns_of(text)
    agent = None if agent == "main" else agent
    try:
        if len(turns) == 1:
            given = context_at(events, turns[0], agent=agent)
            if form == "json":
                return json_text.line(view.context_json(given))
            return "\n".join(view.context_lines(given))
        change = context_change(events, turns[0], turns[1], agent=agent)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if form == "json":
        return json_text.line(view.change_json(change))
    return "\n".join(view.change_lines(change))


def _write(streams: Streams, lines: Iterable[str]) -> None:
    """Write lines as they come, many at once, until nobody reads them any more."""
    gathered: list[str] = []
    size = 0
    try:
        for line in lines:
            gathered.append(line)
            size += len(line)
            if size > _WRITTEN_AT_ONCE:
                streams.result("\n".join(gathered))
                gathered, size = [], 0
            if streams.closed:
                return
    finally:
        # What was read before a broken line is told too.
        streams.result("\n".join(gathered))
