"""What a CI reads: JUnit XML, annotations of GitHub Actions, and its step summary."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from runner.error import Fault, LogError
from runner.views.escape import one_line, visible

SUMMARY_BYTES = 1024 * 1024
"""GitHub drops a step summary that is larger than this, all of it."""


@dataclass(slots=True)
class CaseResult:
    """One run, as a CI sees it."""

    file: str
    """The spec's path as it was given."""
    name: str
    """The run's name; where a spec is run several times, with its number."""
    status: str
    """A status of a run, or ``skipped``."""
    seconds: float = 0.0
    text: str = ""
    """The final text."""
    why: list[str] = field(default_factory=list)
    """Why it did not end as it should, one line a reason."""
    totals: str = ""
    """Turns, calls, tokens and cost, for people."""


def junit(results: Sequence[CaseResult]) -> bytes:
    """The results as JUnit XML: one suite, one test case a run, valid whatever the texts are."""
    failed = sum(r.status == "failed" for r in results)
    skipped = sum(r.status == "skipped" for r in results)
    good = sum(r.status == "ok" for r in results)
    counts = {
        "name": "pi-run",
        "tests": str(len(results)),
        "failures": str(failed),
        "errors": str(len(results) - failed - skipped - good),
        "skipped": str(skipped),
        "time": f"{sum(r.seconds for r in results):.3f}",
    }
    top = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(top, "testsuite", counts)
    for result in results:
        _testcase(suite, result)
    ElementTree.indent(top)
    text: str = ElementTree.tostring(top, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _testcase(suite: ElementTree.Element, result: CaseResult) -> None:
    attributes = {
        "classname": _xml(result.file),
        "name": _xml(result.name),
        "file": _xml(result.file),
        "time": f"{result.seconds:.3f}",
    }
    case = ElementTree.SubElement(suite, "testcase", attributes)
    if result.status != "ok":
        tag = {"failed": "failure", "skipped": "skipped"}.get(result.status, "error")
        why = _xml("\n".join(result.why) or result.status)
        reason = ElementTree.SubElement(case, tag, {"message": why, "type": result.status})
        reason.text = why
    if result.text:
        ElementTree.SubElement(case, "system-out").text = _xml(result.text)


def _xml(text: str) -> str:
    """A text without what XML 1.0 can't hold, not even escaped."""
    return re.sub("[\ufffe\uffff]", "\ufffd", visible(text))


def hold_junit(path: str) -> None:
    """Make sure, before a token is spent, that results can be written there.

    Raises:
        LogError: where they can't.
    """
    if _is_device(path):
        return
    with _told(path, "the JUnit file"):
        part = _part(path)
        part.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        part.unlink()


def write_junit(path: str, results: Sequence[CaseResult]) -> None:
    """Write the results as JUnit XML, in one step, so that no reader finds half of it.

    Raises:
        LogError: where the file can't be written.
    """
    with _told(path, "the JUnit file"):
        if _is_device(path):
            Path(path).write_bytes(junit(results))
            return
        part = _part(path)
        part.write_bytes(junit(results))
        part.replace(os.path.realpath(path))


def _is_device(path: str) -> bool:
    """Whether a path leads to what is written into and never replaced, such as a FIFO."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _part(path: str) -> Path:
    place = Path(os.path.realpath(path))
    return place.with_name(place.name + ".part")


@contextmanager
def _told(path: str, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LogError(f"{path}: {error.strerror}; {what} could not be written") from None


def annotation(fault: Fault, root: str | None = None) -> str:
    """A fault as a workflow command of GitHub Actions.

    https://docs.github.com/actions/reference/workflow-commands-for-github-actions

    Args:
        fault: What is wrong, and where.
        root: The repository's folder, from which Actions counts paths.
    """
    kind = "warning" if fault.warning else "error"
    message = f"{fault.path}: {fault.message}" if fault.path else fault.message
    if fault.file.startswith("--"):  # an option of the command, which is in no file
        return f"::{kind}::{_data(f'{fault.file}: {message}')}"
    place = f"file={_property(_in_repository(fault.file, root))}"
    if fault.line:
        place += f",line={fault.line},col={fault.column or 1}"
    return f"::{kind} {place}::{_data(message)}"


def _in_repository(file: str, root: str | None) -> str:
    if root:
        path = os.path.relpath(os.path.realpath(file), os.path.realpath(root))
        if not path.startswith(".."):
            return path
    return file


def _data(text: str) -> str:
    text = visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
    return text.replace("##[", "##\\[")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def summary(results: Sequence[CaseResult], room: int = SUMMARY_BYTES) -> str:
    """The results as a Markdown table of at most ``room`` bytes, in which no markup is parsed."""
    head = "\n| spec | result | took | why |\n| --- | --- | --- | --- |\n"
    rows: list[str] = []
    # The closing line tells how many rows there was no room for.
    left = room - len(head) - 100
    for result in results:
        row = _row(result)
        left -= len(row.encode())
        if left < 0:
            rows.append(f"\n{len(results) - len(rows)} more had no room here.\n")
            break
        rows.append(row)
    return head + "".join(rows) if room > len(head) + 100 else ""


def _row(result: CaseResult) -> str:
    cells = (result.name, result.status, result.totals, one_line(" / ".join(result.why), 500))
    return "| " + " | ".join(map(_cell, cells)) + " |\n"


def _cell(text: str) -> str:
    """A text for a table's cell: each sign that Markdown or HTML knows as a character reference."""
    return re.sub(r"[^\w\s.,/…-]|_", lambda m: f"&#{ord(m[0])};", one_line(text, 1000))


def append_summary(path: str, results: Sequence[CaseResult]) -> None:
    """Append the results to a step summary, and keep it under the size at which GitHub drops it.

    Raises:
        LogError: where the file can't be written.
    """
    with _told(path, "the step summary"), open(path, "a", encoding="utf-8") as file:
        file.write(summary(results, SUMMARY_BYTES - 1 - file.tell()))
