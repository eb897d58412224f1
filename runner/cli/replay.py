"""``pi-run replay``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from runner.cli.command import Command, FiniteRange, format_option
from runner.cli.streams import Streams
from runner.error import UsageError

if TYPE_CHECKING:
    from runner.cli.runs import Wanted
    from runner.log.parting import Parting


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run replay last
  pi-run replay run.jsonl --spec triage.yaml
  pi-run replay run.jsonl --from-turn 3 --override call_2=other.txt
  pi-run replay run.jsonl --live model --log new.jsonl
  pi-run replay run.jsonl --print --speed 2
  pi-run replay run.jsonl --spec triage.yaml --html parted.html

\b
LOG is a path, a run's id or the beginning of one, or `last`.
Exit codes: 0 all as recorded, 1 it differs, 3 a hook tried to reach a network, a program or a
tool, 6 the log can't be read.""",
)
@click.argument("log")
@click.option("--spec", metavar="FILE", help="Hold a changed spec against the log.")
@click.option(
    "--live",
    "real",
    type=click.Choice(("tools", "hooks", "model")),
    multiple=True,
    help="Run these for real instead of playing them back.",
)
@click.option(
    "--on-miss",
    type=click.Choice(("fail", "live")),
    help="With --live model: what becomes of a call that the log has not. By default the replay "
    "ends there; live runs it.",
)
@click.option("--from-turn", type=click.IntRange(1), metavar="N", help="Fork: live from turn N on.")
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="ID=FILE",
    help="In a fork: give a message or a call's result another content first.",
)
@click.option(
    "--log",
    "new_log",
    metavar="PATH",
    help="The new log of a fork or --live model; - prints it, or none.",
)
@click.option(
    "--html",
    "page",
    metavar="FILE",
    help="Write a page of the log as well, with the place where the replay parted from it.",
)
@click.option("--print", "shows", is_flag=True, help="Show it as it looked, and run nothing.")
@click.option(
    "--speed",
    metavar="N",
    type=FiniteRange(0),
    help="With --print: in its own time, N times as fast. By default at once.",
)
@format_option()
@click.option("--no-color", is_flag=True, help="Use no colour. NO_COLOR does the same.")
@click.option("-q", "--quiet", is_flag=True, help="Tell nothing but errors.")
@click.pass_obj
def command(streams: Streams, /, log: str, **flags: Any) -> int:
    """Run a log again, with no network and no tool, and compare every event."""
    from runner.log.find import find

    _refuse_what_does_not_fit(flags)
    path = str(find(log))
    if flags["page"] is not None:
        from runner.cli.page_file import hold_writable

        hold_writable(flags["page"], path)
    if flags["shows"]:
        from runner.cli.playback import play

        speed, color = flags["speed"] or 0.0, not flags["no_color"]
        return play(streams, path, speed=speed, quiet=flags["quiet"], color=color)
    if flags["from_turn"] is not None:
        return _fork(streams, path, flags)
    if "model" in flags["real"]:
        return _ask_anew(streams, path, flags)
    return _replay(streams, path, flags)


def _refuse_what_does_not_fit(flags: dict[str, Any]) -> None:
    """Refuse options that would have no effect.

    Raises:
        UsageError: for the first of them.
    """
    if flags["shows"]:
        runs = ("spec", "real", "on_miss", "from_turn", "overrides", "new_log")
        if any(flags[name] for name in runs):
            raise UsageError("--print runs nothing; leave what it is to run with out")
        if flags["page"] is not None:
            raise UsageError("--print shows text; pi-run show LOG --html FILE writes a page")
        if flags["form"] != "text":
            raise UsageError("--print shows text; pi-run show LOG --format json gives the events")
    elif flags["speed"] is not None:
        raise UsageError("--speed is that of --print; add --print")
    if flags["page"] is not None:
        _refuse_no_page(flags)
    if flags["from_turn"] is not None and flags["real"]:
        raise UsageError("--from-turn N is all live from turn N on; leave --live out")
    if flags["from_turn"] is None and flags["overrides"]:
        raise UsageError("--override belongs to a fork; add --from-turn N")
    asks = "model" in flags["real"]
    if asks and "tools" in flags["real"]:
        raise UsageError("--live model answers calls by the log; to run them, run the spec")
    if flags["on_miss"] is not None and not asks:
        raise UsageError("--on-miss is that of --live model; add --live model")
    if flags["new_log"] and flags["from_turn"] is None and not asks:
        raise UsageError("--log is that of a fork or of --live model; add --from-turn N")


def _refuse_no_page(flags: dict[str, Any]) -> None:
    """Refuse a page where there is none, or where it would be in the way.

    Raises:
        UsageError: for the first such option.
    """
    if flags["from_turn"] is not None:
        raise UsageError(
            "--html shows where a replay parted; of a fork's log: pi-run show LOG --html"
        )
    if flags["page"] == "-":
        raise UsageError("--html -: stdout tells how the replay went; name a file")


def _page(
    streams: Streams,
    path: str,
    flags: dict[str, Any],
    parting: Parting | None,
    prompts: tuple[str, str] | None = None,
) -> None:
    """Write a page of the log, and of where a replay parted from it, if that is wanted."""
    if flags["page"] is None:
        return
    from runner.cli.page_file import write_page
    from runner.log.read import read
    from runner.views.html import report
    from runner.views.replay import parting_json

    # What a broken log's end says was told by the replay.
    events = (event for _, event in read(path))
    notices = [] if parting else ["a replay of this log came out as recorded"]
    told = parting_json(parting) | {"prompts": prompts} if parting else None
    pieces = report(events, notices=notices, parting=told)
    write_page(streams, flags["page"], pieces, quiet=flags["quiet"])


def _replay(streams: Streams, path: str, flags: dict[str, Any]) -> int:
    from runner import json_text
    from runner.api.replay import replay
    from runner.views.replay import parting_json, parting_lines

    result = replay(path, spec=flags["spec"], real=flags["real"])
    told = [] if flags["quiet"] else result.warnings
    if result.status is None and not flags["quiet"]:
        told.append(f"{path}: the log breaks off before its run ended: replayed that far")
    for warning in told:
        streams.say(f"pi-run: {warning}")
    parting = result.difference
    _page(streams, path, flags, parting, result.prompts)
    if flags["form"] == "json":
        streams.line(
            json_text.line(
                {
                    "log": path,
                    "status": result.status,
                    "same": parting is None,
                    "difference": None if parting is None else parting_json(parting),
                }
            )
        )
    elif parting is not None:
        streams.result("\n".join([f"{path}:", *parting_lines(parting, result.prompts)]))
    if parting is None and not flags["quiet"]:
        ended = f", and the run ended as {result.status}" if result.status else ""
        streams.say(f"{path}: {result.lines} events as recorded{ended}")
    return 0 if parting is None else 1


def _wanted(flags: dict[str, Any]) -> Wanted:
    from runner.cli.runs import Wanted

    color, quiet = not flags["no_color"], flags["quiet"]
    form = "jsonl" if flags["new_log"] == "-" else flags["form"]
    return Wanted(form, 1, 1.0, None, color=color, quiet=quiet)


def _log(flags: dict[str, Any]) -> str | None:
    """Where the new log goes, as a file."""
    return "none" if flags["new_log"] == "-" else flags["new_log"]


def _ask_anew(streams: Streams, path: str, flags: dict[str, Any]) -> int:
    from runner import json_text
    from runner.api.live_model import ModelReplay, ModelReplayOptions
    from runner.cli.options import can_ask
    from runner.cli.runs import Runs
    from runner.views.replay import asked_json, asked_line, parting_lines

    options = ModelReplayOptions(
        spec=flags["spec"],
        runs=flags["on_miss"] == "live",
        hooks="hooks" in flags["real"],
        log=_log(flags),
        interactive=can_ask(),
    )
    work = ModelReplay(path, options)
    wanted = _wanted(flags)
    result = Runs(streams, wanted).do(work)
    if result.log is not None and not flags["quiet"]:
        streams.say(f"log: {result.log}")
    if wanted.form == "json":
        streams.line(json_text.line(asked_json(path, work, result)))
    elif work.difference is not None:
        # With --log - stdout has the log's lines and nothing else.
        tell = streams.result if wanted.form == "text" else streams.say
        tell("\n".join([f"{path}:", *parting_lines(work.difference, None)]))
    _page(streams, path, flags, work.difference)
    if not flags["quiet"]:
        streams.say(asked_line(path, work, result))
    return work.exit_code(result)


def _fork(streams: Streams, path: str, flags: dict[str, Any]) -> int:
    from runner.api.fork import Fork, ForkOptions
    from runner.cli.options import can_ask
    from runner.cli.runs import Runs

    overrides = {}
    for item in flags["overrides"]:
        name, equals, file = item.partition("=")
        if not equals:
            raise UsageError(f"--override {item}: write ID=FILE")
        overrides[name] = file
    options = ForkOptions(
        flags["from_turn"], overrides, flags["spec"], _log(flags), interactive=can_ask()
    )
    wanted = _wanted(flags)
    return Runs(streams, wanted).go_on(Fork(path, options), path)
