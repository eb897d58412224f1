"""Spec files as pytest collects them: a file, and in it one test, named by what it does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.pytest_plugin.case import Case, Scratch
from runner.pytest_plugin.failure import Cause, FailureRepr, SpecFailure
from runner.pytest_plugin.look import Look, log_beside, log_path, look
from runner.pytest_plugin.run import shown

NOTHING_EXPECTED = (
    "nothing is expected of it; add `expect` or `output`, or record a log beside it: "
    "pytest --record"
)
INCOMPLETE = (
    "a spec that `extends` this one can give its inputs a `default`, and be the test; "
    "so can a test in Python, by run_spec"
)


class Found:
    """What was found in one session."""

    def __init__(self) -> None:
        self.scratch = Scratch()
        self._used: set[str] = set()
        self._untested: list[Path] = []

    def add(self, path: Path, seen: Look, *, tested: bool) -> None:
        """Note a spec."""
        self._used |= seen.uses
        if not tested:
            self._untested.append(path)

    def parts_of(self, items: Iterable[pytest.Item]) -> list[pytest.Item]:
        """The tests of specs that are but parts of others here."""
        return [
            item
            for item in items
            if isinstance(item, SpecItem) and item.may_be_part and self._is_used(item.path)
        ]

    def untested(self) -> list[str]:
        """The specs that have no test, nor another that uses them."""
        return [shown(path) for path in self._untested if not self._is_used(path)]

    def _is_used(self, path: Path) -> bool:
        return os.path.realpath(path) in self._used


class SpecFile(pytest.File):
    """A spec. It has one test, or none where nothing is expected of it."""

    def __init__(self, *, named: bool, found: Found, **given: Any) -> None:
        super().__init__(**given)
        self._named = named
        self._found = found

    def collect(self) -> Sequence[SpecItem]:
        """The test: ``replay`` where a log is beside it, ``record`` or ``expect`` otherwise."""
        seen = look(shown(self.path))
        log = log_beside(self.path)
        recording = bool(self.config.getoption("pi_run_record", False))
        # A log that was forgotten must not go unnoticed where all depends on it.
        tested = log is not None or recording or seen.expects or self._named or _in_ci()
        self._found.add(self.path, seen, tested=tested)
        if not tested:
            return []
        kind = "replay" if log is not None else "record" if recording else "expect"
        alone = kind == "replay" or (seen.alone and seen.expects)
        item: SpecItem = SpecItem.from_parent(
            self,
            name=kind,
            seen=seen,
            scratch=self._found.scratch,
            may_be_part=not self._named and not alone,
        )
        return [item]


class SpecItem(pytest.Item):
    """The test of a spec."""

    def __init__(self, *, seen: Look, scratch: Scratch, may_be_part: bool, **given: Any) -> None:
        super().__init__(**given)
        self._seen = seen
        self._scratch = scratch
        self.may_be_part = may_be_part
        """Whether it is left to the tests of those that use the spec, if there are any."""

    def runtest(self) -> None:
        """Run the test.

        Raises:
            SpecFailure: where it fails.
        """
        try:
            self._run(Case(self.path, self._scratch), log_path(self.path))
        except SpecFailure as failure:
            if not self._seen.alone and self.name != "replay":
                failure.notes = [*failure.notes, INCOMPLETE]
            raise

    def _run(self, case: Case, log: Path) -> None:
        if self.name == "replay":
            renewing = self.config.getoption("--snapshot-update", False) and not _in_ci()
            return case.renew(log) if renewing else case.replay(log)
        if self.name == "expect":
            if not self._seen.expects:
                raise self._failure(NOTHING_EXPECTED)
            return case.run()
        if _in_ci():
            raise self._failure(
                f"there is no {shown(log)}, and nothing is recorded while CI is set; "
                "record it elsewhere, and commit it"
            )
        return case.record(log)

    def _failure(self, text: str) -> SpecFailure:
        return SpecFailure(text, [Cause(shown(self.path), 1, self.name, [text], quotes=False)])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A failure of the spec as such; all else as pytest does."""
        if isinstance(excinfo.value, SpecFailure):
            return FailureRepr(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the test is, counted from 0, and what it is called in headings."""
        return self.path, self._seen.line - 1, f"{self.path.name}: {self.name}"


def _in_ci() -> bool:
    """Whether nothing is to be written. What is set to nothing is not set, as pytest sees it."""
    return bool(os.environ.get("CI"))
