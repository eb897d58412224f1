"""``pi-run export``."""

from __future__ import annotations

import click

from runner.cli.collector import STANDARD, Endpoint, address
from runner.cli.command import Command
from runner.cli.streams import Streams
from runner.error import UsageError


@click.command(
    cls=Command,
    epilog="""\b
Examples:
  pi-run export last --chrome trace.json
  pi-run export run.jsonl --otlp http://localhost:4318

\b
LOG is a path, a run's id or the beginning of one, or `last`.
Open trace.json in https://ui.perfetto.dev or chrome://tracing. The extra is for --otlp:
  pip install 'pi-run[otel]'""",
)
@click.argument("log")
@click.option(
    "--otlp",
    metavar="[ENDPOINT]",
    type=Endpoint(),
    is_flag=False,
    flag_value=STANDARD,
    allow_from_autoenv=False,
    help="Send spans and metrics to a collector, by OTLP over HTTP. Without an address: as "
    "OTEL_EXPORTER_OTLP_ENDPOINT says, or http://localhost:4318.",
)
@click.option(
    "--chrome",
    metavar="FILE",
    help="Write a trace that Perfetto and Chrome open; - is stdout.",
)
@click.option(
    "--content",
    is_flag=True,
    help="Also what was said: prompts, answers, arguments and results of tools.",
)
@click.pass_obj
def command(
    streams: Streams, /, log: str, otlp: str | None, chrome: str | None, content: bool
) -> int:
    """Pass on a log's times and numbers to tools that show traces.

    Nothing that was said is passed on without --content, and nothing that the log redacted.
    """
    from runner.api.export import chrome_trace, send
    from runner.cli.page_file import hold_writable, write_page
    from runner.log.find import find

    if otlp is None and chrome is None:
        raise UsageError("nothing to export to; give --chrome FILE, or --otlp [ENDPOINT]")
    path = str(find(log))

    def warn(text: str) -> None:
        streams.say(f"pi-run: {text}")

    if chrome is not None:
        hold_writable(chrome, path, option="--chrome")
        write_page(streams, chrome, chrome_trace(path, content=content, warn=warn))
    if otlp is not None:
        streams.say(send(path, address(otlp), content=content, warn=warn))
    return 0
