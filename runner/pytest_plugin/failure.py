"""What a failed test of a spec shows, in the form that pytest has for its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.api import RunResult
from runner.error import PiRunError, SpecError
from runner.views.escape import visible


@dataclass(slots=True)
class Cause:
    """One reason for a failure, with the line that it is about."""

    file: str
    """As a person would write its path."""
    line: int
    """Counted from 1."""
    what: str
    """What the line is the place of, in a few words."""
    told: Sequence[str]
    """What is wrong, line by line."""
    quotes: bool = True
    """Whether the line itself is worth showing."""


class SpecFailure(Exception):  # noqa: N818 - a test that fails is no error
    """A spec's test failed. Its text is the first line of what is shown."""

    def __init__(self, text: str, causes: Sequence[Cause], notes: Sequence[str] = ()) -> None:
        super().__init__(visible(text))
        self.causes = causes
        self.notes = notes


def failure_of(path: str, error: PiRunError) -> SpecFailure:
    """An error that kept a spec from being run, as a failure."""
    if isinstance(error, SpecError) and error.faults:
        first, *others = error.faults
        causes = [Cause(one.file, one.line, one.path, [str(one)]) for one in error.faults]
        more = f" (and {len(others)} more)" if others else ""
        return SpecFailure(f"{first.path}: {first.message}{more}", causes)
    told = str(error).splitlines() or [type(error).__name__]
    return SpecFailure(told[0], [Cause(path, 1, "it can't be run", told, quotes=False)])


def hold(path: str, result: RunResult, *, allowed: str = "ok") -> None:
    """Fail where a run is not good: an expectation was not met, or it ended as it should not.

    Args:
        path: The spec.
        result: What came of it.
        allowed: A status besides ``ok`` that is good.

    Raises:
        SpecFailure: with each expectation that was not met.
    """
    notes = [f"log: {result.log}"] if result.log is not None else []
    hold_expectations(path, result.expectations, notes)
    if result.status not in ("ok", allowed):
        text = f"the run ended as {result.status}: {result.error}"
        raise SpecFailure(text, [Cause(path, 1, result.status, [text], quotes=False)], notes)


def hold_expectations(
    path: str, expectations: Sequence[dict[str, Any]], notes: Sequence[str] = ()
) -> None:
    """Fail where an expectation was not met.

    Raises:
        SpecFailure: with each of those.
    """
    causes = [
        Cause(
            one["file"] or path,
            one["line"] or 1,
            "expectation not met",
            [f"{one['kind']}: {one['detail']}"],
        )
        for one in expectations
        if not one["passed"]
    ]
    if causes:
        count = (
            f"{len(causes)} of {len(expectations)} expectations" if causes[1:] else "expectation"
        )
        raise SpecFailure(f"{count} not met: {causes[0].told[0]}", causes, notes)


@dataclass(slots=True)
class Crash:
    """The one line of a failure that summaries have."""

    path: str
    lineno: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


@dataclass(slots=True)
class FailureRepr:
    """A failure, as pytest and its plug-ins ask for it."""

    failure: SpecFailure
    reprcrash: Crash = field(init=False)

    def __post_init__(self) -> None:
        first = self.failure.causes[0]
        self.reprcrash = Crash(first.file, first.line, str(self.failure))

    def toterminal(self, tw: Any) -> None:
        """Write it to a terminal, in the colours of pytest."""
        for line in self._lines():
            is_error = line.startswith("E   ")
            tw.line(line, red=is_error, bold=is_error)

    def __str__(self) -> str:
        return "\n".join([str(self.failure), "", *self._lines()])

    def _lines(self) -> Iterator[str]:
        for number, cause in enumerate(self.failure.causes):
            if number:
                yield ""
            if cause.quotes and (source := _line(cause.file, cause.line)):
                yield visible(f">   {source}")
            yield from (visible(f"E   {line}") for line in cause.told)
            yield ""
            yield visible(f"{cause.file}:{cause.line}: {cause.what}")
        if self.failure.notes:
            yield ""
            yield from map(visible, self.failure.notes)


def _line(file: str, number: int) -> str:
    """A line of a file; empty where there is none."""
    try:
        lines = Path(file).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    return lines[number - 1].strip() if number <= len(lines) else ""
