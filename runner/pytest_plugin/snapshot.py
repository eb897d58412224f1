"""Snapshots of logs: an extension of syrupy. A snapshot is one file, a log in canonical form."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from syrupy.assertion import SnapshotAssertion
from syrupy.data import SnapshotCollection
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from runner.error import LogError
from runner.json_text import line, parse
from runner.log.canonical import canonical
from runner.log.compare import compare
from runner.log.read import read
from runner.log.shape import problem
from runner.pytest_plugin.case import write_whole
from runner.views.diff import diff_lines


def log_snapshot_of(snapshot: Any, *, record: bool) -> SnapshotAssertion:
    """The snapshot of a log, by that of syrupy's fixture.

    Args:
        snapshot: What the fixture ``snapshot`` gives.
        record: Whether a missing snapshot is written.

    Raises:
        TypeError: where another plug-in's fixture has that name.
    """
    if not isinstance(snapshot, SnapshotAssertion):
        raise TypeError("the fixture `snapshot` is not that of syrupy")
    asserting = snapshot.use_extension(LogSnapshotExtension)
    if record:
        asserting.update_new_snapshots_only = True
    if os.environ.get("CI"):
        asserting.update_snapshots = asserting.update_new_snapshots_only = False
    return asserting


class LogSnapshotExtension(SingleFileSnapshotExtension):
    """One canonical log a snapshot, compared by what it means and shown by turn and path."""

    file_extension = _file_extension = "jsonl"  # the second is the name that syrupy 4 has for it
    _write_mode = WriteMode.TEXT

    def serialize(self, data: Any, **_: Any) -> str:
        """A log in canonical form.

        Args:
            data: A log's path, a `RunResult`, or events.

        Raises:
            LogError: where it can't be read.
            TypeError: where it is none of these.
        """
        return "".join(f"{line(event)}\n" for event in canonical(_events(data)))

    def matches(self, *, serialized_data: Any, snapshot_data: Any) -> bool:
        """Whether two logs tell the same; a comment that was changed in the spec is no matter."""
        if serialized_data == snapshot_data:
            return True
        try:
            return not any(compare(_parsed(snapshot_data), _parsed(serialized_data)))
        except LogError:
            return False

    def diff_lines(self, serialized_data: Any, snapshot_data: Any) -> Iterator[str]:
        """How a log differs from its snapshot, by turn and path."""
        if not snapshot_data:
            yield "pytest --snapshot-update writes it, unless CI is set"
            return
        try:
            found = list(compare(_parsed(snapshot_data), _parsed(serialized_data)))
        except LogError as error:
            yield str(error)
            return
        # Which side is which is said above by syrupy, and pytest shows but eight lines.
        yield from islice(diff_lines(found, "snapshot", "received"), 2, None)

    def delete_snapshots(self, *, snapshot_location: str, snapshot_names: set[str]) -> None:
        """Delete a snapshot that no test uses, unless CI is set."""
        if not os.environ.get("CI"):
            super().delete_snapshots(
                snapshot_location=snapshot_location, snapshot_names=snapshot_names
            )

    @classmethod
    def write_snapshot_collection(
        cls, *, snapshot_collection: SnapshotCollection, **_: Any
    ) -> None:
        """Write a snapshot, as a whole or not at all."""
        data = str(next(iter(snapshot_collection)).data)
        write_whole(Path(snapshot_collection.location), data.encode())


def _events(data: Any) -> Iterable[dict[str, Any]]:
    data = getattr(data, "log", data)
    if isinstance(data, (str, os.PathLike)):
        return (event for _, event in read(data))
    if isinstance(data, Iterable):
        return data
    raise TypeError(f"a log's path, a RunResult or events are needed, not {type(data).__name__}")


def _parsed(text: str) -> Iterator[dict[str, Any]]:
    """The events of a snapshot, which may have been edited.

    Raises:
        LogError: where it is no log.
    """
    for number, each in enumerate(text.removesuffix("\n").split("\n"), 1):
        try:
            event = parse(each)
        except ValueError as error:
            raise LogError(f"the snapshot's line {number} is not JSON: {error}") from None
        wrong = problem(event) if isinstance(event, dict) and "type" in event else "is no event"
        if wrong:
            raise LogError(f"the snapshot's line {number} {wrong}")
        yield event
