"""One run of a server: it goes on by itself, whoever watches or leads it."""

from __future__ import annotations

import sys
import traceback
from typing import Any

from runner import api
from runner.api.telling import now
from runner.error import PiRunError, describe, named
from runner.server.feed import Feed
from runner.server.past import ending
from runner.server.question import Questions
from runner.server.refusal import Refusal
from runner.server.spec import ServedSpec


class HostedRun:
    """A run, from its preparation on.

    Args:
        spec: The spec.
        inputs: Its inputs, as JSON values.
        prompt: Its prompt, where the spec has none.
        within: Seconds that a question waits for an answer; 0 where nobody is asked.

    Raises:
        Refusal: where the spec can't be run with that.
    """

    def __init__(
        self, spec: ServedSpec, inputs: dict[str, Any], prompt: str | None, within: float
    ) -> None:
        self._questions = Questions(lambda: self.feed.wake(), within)
        ask = self._questions.ask if within else None
        self._prepared: api.Prepared | None = spec.prepare(inputs, prompt, ask)
        self._control = api.Control()
        self._end: dict[str, Any] = {}
        self.spec = spec.name
        self.id = self._prepared.run_id
        self.started_at = now()

    def log_to(self, feed: Feed) -> None:
        """Have its log written where this feed reads it."""
        assert self._prepared is not None
        self.feed = feed
        self._prepared.log = feed.path

    async def run(self, *, verbose: bool) -> None:
        """Do it. Never raises for what happens in it; with ``verbose`` bugs are told on stderr."""
        assert self._prepared is not None
        try:
            result = await api.run(self._prepared, on_line=self.feed.append, control=self._control)
        except PiRunError as error:
            self._end = {"status": "error", "exit_code": error.exit_code, "error": describe(error)}
        except Exception as error:
            if verbose:
                traceback.print_exception(error, file=sys.stderr)
            told = f"this is a bug of pi-run: {named(error)}"
            self._end = {"status": "error", "exit_code": 70, "error": told}
        else:
            self._end = {
                name: getattr(result, name)
                for name in api.RunResult.__dataclass_fields__
                if name != "error" or result.error is not None
            }
        finally:
            self._prepared = None  # what it held is as large as the run
            self.feed.end()

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return not self.feed.ended

    @property
    def questions(self) -> Questions:
        """What it asks."""
        return self._questions

    def as_json(self, *, whole: bool = False) -> dict[str, Any]:
        """What clients are told of it.

        Args:
            whole: Whether to tell what it came to as well.
        """
        begun = "running" if self.feed.count else "starting"
        return {
            "id": self.id,
            "spec": self.spec,
            "status": begun if self.live else self._end.get("status", "error"),
            "live": self.live,
            "started_at": self.started_at,
            "questions": self._questions.as_json(),
            **ending(self._end, whole=whole),
        }

    def forget(self) -> None:
        """Hold no more of what it came to than the list tells: its log has the rest."""
        for name in ("text", "output"):
            self._end.pop(name, None)

    # --- leading it -------------------------------------------------------------------------------

    def say(self, text: str, *, later: bool) -> None:
        """Queue a message: for the next turn, or for when it would stop.

        Raises:
            Refusal: where it has ended.
        """
        self._hold_live()
        (self._control.follow_up if later else self._control.steer)(text)

    def abort(self) -> None:
        """End it in order.

        Raises:
            Refusal: where it has ended.
        """
        self._hold_live()
        self._control.abort()

    def end_by(self, signal: int) -> None:
        """End it in order, since a signal ends the server."""
        self._control.abort(signal)

    def _hold_live(self) -> None:
        if not self.live:
            raise Refusal(409, "run_ended", f"run {self.id} has ended")
