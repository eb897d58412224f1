"""A log shown as its run looked, at once or in its own time, with nothing run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from runner.cli.interrupts import Stopped, signals_raised
from runner.cli.report import NO_TEXT
from runner.cli.streams import Streams
from runner.log.read import read
from runner.views.replay import Pace

Show = Callable[[Mapping[str, Any]], None]


def play(streams: Streams, path: str, *, speed: float, quiet: bool, color: bool) -> int:
    """Show a log on stdout: live on a terminal, else as plain lines; then its final text.

    Args:
        streams: The command's.
        path: The log's file.
        speed: How fast its time passes, 1 as it did; 0: it doesn't.
        quiet: Whether to tell nothing on stderr but errors.
        color: Whether colours are wanted where there could be some.

    Returns:
        The exit code: 0, or that of the signal which ended it.

    Raises:
        LogError: where the log can't be read; what comes before that is shown.
    """
    pace = Pace(speed, streams.wait)

    def warn(text: str) -> None:
        if not quiet:
            streams.say(f"pi-run: {text}")

    end: Mapping[str, Any] | None = None
    try:
        with signals_raised(), _view(streams, pace, draws=not quiet, color=color) as show:
            for _, event in read(path, warn):
                if streams.closed or not pace.reach(event):
                    return 0
                show(event)
                if event["type"] in ("run_end", "run_resume"):
                    end = event if event["type"] == "run_end" else None
    except Stopped as stopped:
        return 128 + stopped.number
    if end is None:
        warn(f"{path}: the log breaks off before its run ended")
    elif end["exit_code"] not in NO_TEXT:
        streams.result(end["text"])
    return 0


@contextmanager
def _view(streams: Streams, pace: Pace, *, draws: bool, color: bool) -> Iterator[Show]:
    """What shows events: drawn where both streams are a terminal, as the run was."""
    if draws and streams.can_draw and streams.result_is_terminal:
        from runner.views.live import LiveView

        color = color and not os.environ.get("NO_COLOR")
        with LiveView(sys.stderr, color=color, verbose=streams.verbose, clock=pace.now) as view:
            yield view.event
    else:
        from runner.views.text import TextView

        yield TextView(streams.result, verbose=streams.verbose).event
