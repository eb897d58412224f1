"""How fast a model may be asked: what a spec says of it, and what its server taught.

Requests are spaced evenly. Where the server refuses one, all wait as long as it says; what it took
until then, over the time until it takes more, is the rate it allows. Somewhat less is asked of it
from then on, and the rate goes up along a cubic curve: soon near to where it was refused, there for
long, and beyond it ever faster, since a limit may have gone. A first guess is tried out sooner.

How many requests are under way is bounded too: at first by a window that each answer opens, which a
refusal halves, and that opens slowly afterwards; but never to less than what the rate comes to at
the time that an answer takes.

Nothing here waits or looks at a clock: times, in seconds, come in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FIRST_WINDOW = 16
"""Requests that are under way at first of a server of which nothing is known."""
LESS = 0.05
"""The part of the rate that is given up when it is refused."""
PLATEAU, FIRST_PLATEAU = 30.0, 10.0
"""Seconds until the rate is back where it was refused; and where that is a first guess."""
LITTLE = 0.1
"""A pause that is a smaller part of the time before it says little of the rate."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds that all wait when a server refuses and does not say how long, doubled each time."""
MARGIN = 0.02
"""Seconds that are waited beyond what a server says, whose clock is not ours; and by which a
request that came too late to its turn does not delay those after it."""
IDLE = 3.0
"""Seconds without a request, after which what was sent before says nothing of the rate."""
SPARE = 1.25
"""How much more may be under way than the rate comes to, since not all answers take as long."""


@dataclass(slots=True, frozen=True)
class RateLimit:
    """What a spec says of how fast a model may be asked."""

    requests: float | None = None
    """In `per` seconds; None for no bound."""
    tokens: float | None = None
    """In `per` seconds, those of the prompts, the answers and the cache; None for no bound."""
    per: float = 60.0
    """Seconds."""


class Rate:
    """The rate of one model's server, and what is under way of it."""

    def __init__(self) -> None:
        self._most = math.inf
        """Requests a second by what specs say."""
        self._most_tokens = math.inf
        self._ceiling: float | None = None
        """Requests a second at which the server refused one; None while it has not."""
        self._grows_since = 0.0
        self._plateau = PLATEAU
        self._rounded = 0.0
        """Seconds by which servers that tell whole ones let us wait too long, on the average."""
        self._window = float(FIRST_WINDOW)
        self._in_flight = 0
        self._next = self._next_tokens = -math.inf
        """When the next request is due, by either bound."""
        self._paused_until = -math.inf
        self._latency = 0.0
        """Seconds that an answer takes, smoothed; 0 before the first."""
        self._cost: float | None = None
        """Tokens that a request takes, smoothed; None before the first."""
        self._begun = self._last = -math.inf
        """When the first and the last request was sent of those that are counted."""
        self._sent = 0
        """Requests that are counted: all since a pause, without those that were refused."""
        self._refused_at = -math.inf
        self._before = math.inf
        """The rate before the last refusal."""
        self._in_a_row = 0
        """Refusals without an answer in between, those of one moment counted as one."""

    def hold(self, limit: RateLimit) -> None:
        """Keep to a limit from now on; of several the least counts."""
        if limit.requests is not None:
            self._most = min(self._most, limit.requests / limit.per)
        if limit.tokens is not None:
            self._most_tokens = min(self._most_tokens, limit.tokens / limit.per)

    def allowed(self, now: float) -> float:
        """Requests a second; infinite while there is no bound."""
        if self._ceiling is None:
            return self._most
        plateau = max(self._plateau, 5 / self._ceiling)
        after = max(0.0, now - self._grows_since) - plateau
        return min(self._most, self._ceiling * (1 + LESS * (after / plateau) ** 3))

    @property
    def learned(self) -> bool:
        """Whether the server has refused a request."""
        return self._ceiling is not None

    def room(self, now: float) -> float:
        """How many requests may be under way."""
        if self._most_tokens < math.inf and self._cost is None:
            return 1  # which tells what one takes
        rate = self.allowed(now)
        if rate == math.inf:
            return self._window
        if self._ceiling is None:
            return math.inf
        return max(self._window, math.ceil(SPARE * rate * self._latency) + 1)

    def wait(self, now: float) -> float:
        """Seconds until the next request may be sent; infinite while too many are under way."""
        if self._in_flight + 1 > max(1.0, self.room(now)):
            return math.inf
        due = max(self._paused_until, self._next, self._next_tokens)
        return max(0.0, due - now)

    def send(self, now: float) -> None:
        """A request is sent."""
        self._in_flight += 1
        if now - self._last > max(IDLE, 3 / self.allowed(now)):
            self._begun, self._sent = now, 0
        self._last = now
        self._sent += 1
        rate = self.allowed(now)
        if rate < math.inf:
            late = now - self._next
            self._next = (self._next if late <= MARGIN else now) + 1 / rate
        if self._cost is not None and self._most_tokens < math.inf:
            self._next_tokens = max(self._next_tokens, now) + self._cost / self._most_tokens

    def answered(self, now: float, sent: float, tokens: int) -> None:
        """An answer is whole.

        Args:
            now: The time.
            sent: When its request was sent.
            tokens: What it took.
        """
        self._in_flight -= 1
        self._in_a_row = 0
        self._window += 1.0 if self._ceiling is None else 1.0 / self._window
        took = now - sent
        self._latency += (took - self._latency) * (0.1 if self._latency else 1.0)
        expected = self._cost or 0.0
        if self._most_tokens < math.inf:
            # What was reserved is put right; where it was too little, the next ones wait.
            base = max(self._next_tokens, sent)
            self._next_tokens = base + (tokens - expected) / self._most_tokens
        self._cost = tokens if self._cost is None else expected + 0.1 * (tokens - expected)

    def failed(self) -> None:
        """A request came to nothing, for a reason that has nothing to do with the rate."""
        self._in_flight -= 1

    def refused(self, now: float, sent: float, retry_after: float | None) -> None:
        """The server refused a request since there were too many.

        Args:
            now: The time.
            sent: When it was sent.
            retry_after: Seconds until the server takes more, where it says so.
        """
        self._in_flight -= 1
        if sent >= self._refused_at:
            self._begin_refusal(now)
        if sent >= self._begun:
            self._sent -= 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._in_a_row - 1, 10))
        pause = pause if retry_after is None else retry_after
        self._rounded = 0.5 if retry_after is not None and retry_after == int(retry_after) else 0.0
        self._paused_until = max(self._paused_until, now + pause + MARGIN)
        self._learn(now)

    def _begin_refusal(self, now: float) -> None:
        """It is the first of those that were under way at this moment."""
        self._before = self.allowed(now)
        self._refused_at = now
        self._in_a_row += 1
        self._window = max(1.0, min(self._window, self._in_flight + 1.0) / 2)

    def _learn(self, now: float) -> None:
        """What was taken until now, over the time until more is, is what the server allows."""
        until_now, until_then = now - self._begun, self._paused_until - self._begun
        if self._sent <= 0:
            self._ceiling = None if self._before == math.inf else 0.7 * self._before
        elif self._before == math.inf:
            self._ceiling = self._sent / until_then
        else:
            seen = self._sent / (until_then - self._rounded)
            if until_then - until_now < LITTLE * until_now:
                # It went up all the time: its mean was taken, and its end was not.
                seen = (seen + self._before) / 2
            self._ceiling = min(self._before, seen)
        self._plateau = FIRST_PLATEAU if until_now < FIRST_PLATEAU else PLATEAU
        self._grows_since = self._next = self._paused_until
        # What is sent after the pause is counted anew.
        self._last = -math.inf
