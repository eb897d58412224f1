"""When events were: by the run's start, and what each says of the time since."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from typing import Any

from runner.error import UsageError

Event = Mapping[str, Any]

_LATEST = 2**62
"""Nanoseconds since 1970 that are still told; what is beyond fits no receiver."""
_LONGEST = 1e9
"""Seconds that a run may take, for the same reason."""


class Moments:
    """The moments of one run's events, in nanoseconds since 1970."""

    def __init__(self) -> None:
        self._zero: int | None = None
        self._now = 0
        self.began = 0
        """When its first event was."""

    def of(self, event: Event) -> int:
        """When the next event was: never before the one before, or a span would end too early.

        Raises:
            UsageError: for the first, where it has no time.
        """
        t, since, known = event.get("t"), 0, False
        if isinstance(t, int | float) and 0 <= t < _LONGEST:
            # A log's times are of milliseconds.
            since, known = round(t * 1000) * 1_000_000, True
        if self._zero is None:
            self.began = self._now = _started(event)
            self._zero = self.began - since
        if known:
            self._now = max(self._now, self._zero + since)
        return self._now


def _started(event: Event) -> int:
    """When a run's first event was, in nanoseconds since 1970.

    Raises:
        UsageError: where it has no time.
    """
    if event["type"] != "run_start":
        # A run that goes on, told live: its start is in its log alone.
        return time.time_ns()
    try:
        if isinstance(event.get("t"), int | float):
            started = datetime.datetime.fromisoformat(event["started_at"])
            if started.tzinfo is None:
                started = started.replace(tzinfo=datetime.UTC)
            since = started - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
            return max(0, min(since // datetime.timedelta(microseconds=1) * 1000, _LATEST))
    except (KeyError, TypeError, ValueError):
        pass
    raise UsageError(
        "a canonical log has no times, so there is nothing to draw to scale; "
        "export the log of a run without --frozen"
    )
