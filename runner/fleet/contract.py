"""What a fleet is made of: the runs that there are, who keeps their state, and who does one.

A `Store` answers what there is to do and keeps what came of it; a `Doer` does one run. Neither
knows the other, so a batch can be kept in a folder, or in a database that many workers share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from runner.engine.message import Usage, no_usage

if TYPE_CHECKING:
    from runner.api import Control


@dataclass(slots=True)
class Job:
    """One run of a batch."""

    key: str
    """Tells it from all others: a hash of the spec, the inputs and the number."""
    row_key: str
    """The same for the same inputs of a spec of the same name, however the spec has changed."""
    spec: int
    """The place of its spec among those of the batch."""
    line: int
    """Where its inputs begin in their file, from 1; 0 where there is no file."""
    number: int
    """Which of the repetitions of its row it is, from 1."""
    inputs: dict[str, Any] = field(default_factory=dict)
    """All of them, as JSON values."""


@dataclass(slots=True)
class Outcome:
    """What came of one run. No text in it has a secret."""

    key: str
    row_key: str
    spec: str
    """The spec's name."""
    line: int
    number: int
    inputs: dict[str, Any]
    """Without the values of secret ones."""
    status: str
    """As of a run."""
    exit_code: int
    text: str = ""
    output: Any = None
    error: str | None = None
    """Why the status is not ``ok``."""
    failed: list[str] = field(default_factory=list)
    """The expectations that were not met, a sentence each."""
    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=no_usage)
    cost_usd: float | None = None
    """None where a price is not known."""
    seconds: float = 0.0
    log: str | None = None
    """The log's path; None for a run that could not begin."""
    log_bytes: int = 0
    done: bool = True
    """Whether it is not to be done again; False for one that goes on the next time."""

    @property
    def passed(self) -> bool:
        """Whether it ended as it should."""
        return self.exit_code == 0

    def as_json(self) -> dict[str, Any]:
        """All of it; its values are not copied."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Start:
    """How a run is begun."""

    log: Path
    how: Literal["new", "resume"] = "new"
    """Whether its log holds what it has to go on from."""


class Store(Protocol):
    """Keeps which runs of a batch were done."""

    def find(self, job: Job) -> Outcome | Start:
        """What came of a run that was done, or how to begin it.

        Raises:
            LogError: where that can't be read.
        """
        ...

    def finish(self, outcome: Outcome) -> None:
        """Keep what came of a run, which is not to be done again.

        Raises:
            LogError: where that can't be written.
        """
        ...

    def outcome(self, key: str) -> Outcome | None:
        """What is kept of a run; None where it was not done.

        Raises:
            LogError: where that can't be read.
        """
        ...

    def outcomes(self) -> Iterator[Outcome]:
        """What is kept of all runs, each once, in any order.

        Raises:
            LogError: where that can't be read.
        """
        ...


class Doer(Protocol):
    """Does runs, any number of them at a time."""

    async def run(self, job: Job, start: Start, control: Control) -> Outcome:
        """Do one. Never raises for what happens in it."""
        ...
