"""How far a batch is: on a terminal drawn in place, elsewhere as a plain line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from runner.views.escape import one_line
from runner.views.screen import BOLD, DIM, GREEN, RED, Screen, Span
from runner.views.text import dollars, duration, plural

PLAIN_SECONDS = 5.0
"""How often a plain line is printed at most."""
MAX_FAILURES = 20
"""How many failures are told one by one; of the others there is their number."""
_SMOOTHING = 30.0
"""Seconds over which the rate is measured."""


@dataclass(slots=True)
class Progress:
    """How far a batch is."""

    total: int
    done: int = 0
    kept: int = 0
    """Those of `done` that were done before."""
    failed: int = 0
    running: int = 0
    unfinished: int = 0
    """Runs that were stopped, and go on the next time."""
    cost_usd: float = 0.0
    tokens: int = 0
    slowed: list[tuple[str, float]] = field(default_factory=list)
    """The models whose servers refuse more, with how many requests a second they get."""
    started: float = field(default_factory=time.monotonic)
    _marks: list[tuple[float, int]] = field(default_factory=list)

    def rate(self) -> float | None:
        """Runs a second in the last half minute; None where none was done yet."""
        now, new = time.monotonic(), self.done - self.kept
        if not self._marks or now - self._marks[-1][0] >= 1:
            self._marks.append((now, new))
            while len(self._marks) > 2 and now - self._marks[1][0] > _SMOOTHING:
                self._marks.pop(0)
        at, count = self._marks[0] if len(self._marks) > 1 else (self.started, 0)
        return (new - count) / (now - at) if new > count and now > at else None

    def left(self) -> float | None:
        """Seconds until all are done, if it goes on like this."""
        rate = self.rate()
        return None if rate is None else (self.total - self.done) / rate

    def words(self) -> list[str]:
        """All of it but for how many are done, for a person."""
        rate, left = self.rate(), self.left()
        told = [f"{self.failed:,} failed" if self.failed else ""]
        told += [f"{self.kept:,} kept" if self.kept else ""]
        told += [f"{rate:.1f} runs/s" if rate is not None else ""]
        told += [dollars(self.cost_usd) if self.cost_usd else ""]
        told += [plural(self.tokens, "token") if self.tokens and not self.cost_usd else ""]
        told += [f"{model} slowed to {n:.3g} requests/s" for model, n in self.slowed]
        told += [f"{duration(left)} left" if left is not None and self.done < self.total else ""]
        return [each for each in told if each]


class PlainProgress:
    """Lines for a pipe or a CI log, not more than one in `PLAIN_SECONDS`."""

    def __init__(self, say: Callable[[str], None], progress: Progress) -> None:
        self._say = say
        self._progress = progress
        self._told = time.monotonic()
        self._failures = 0

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def step(self) -> None:
        """Something changed."""
        now = time.monotonic()
        if now - self._told >= PLAIN_SECONDS:
            self._told = now
            done = f"{self._progress.done:,} of {plural(self._progress.total, 'run')}"
            self._say(", ".join([done, *self._progress.words()]))

    def failure(self, text: str) -> None:
        """A run failed."""
        self._failures += 1
        if self._failures <= MAX_FAILURES:
            self._say(one_line(text, 500))
        if self._failures == MAX_FAILURES:
            self._say("what else fails is only counted; the report tells all of it")


class LiveProgress(PlainProgress):
    """A bar at the bottom of a terminal, drawn ten times a second."""

    def __init__(self, file: TextIO, progress: Progress, *, color: bool) -> None:
        self._screen = Screen(file, color, self._lines)
        super().__init__(lambda text: self._screen.print((text, RED)), progress)

    def __enter__(self) -> LiveProgress:
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.stop()

    def step(self) -> None:
        """Nothing: what is drawn is looked up when it is drawn."""

    def _lines(self, width: int, height: int) -> Sequence[Sequence[Span]]:
        progress = self._progress
        count = f" {progress.done:,}/{progress.total:,} "
        words = f" {' · '.join(progress.words())}"
        room = max(10, min(40, width - len(count) - len(words) - 2))
        full = room * progress.done // max(progress.total, 1)
        look = RED if progress.failed else GREEN
        bar = [("━" * full, look), ("━" * (room - full), DIM)]
        return [[*bar, (count, BOLD), (words[: max(0, width - room - len(count))], "")]]
