"""The rows of a file, each the inputs of one run: JSON Lines, CSV or a YAML list.

They are read one by one, whatever the size of the file; what is wrong is given in their place. What
CSV, and YAML without quotes, have is text, which is read by the type that the spec declares.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from runner import json_text
from runner.error import Fault, LogError, UsageError

MAX_ROW = 16 << 20
"""The longest row, in characters (of YAML, 1 MiB)."""
NOT_UTF_8 = "it is not UTF-8; save the file in that encoding"
_ITEM = re.compile(r"( *)-(?=\s)")
_IN_LINE = re.compile(r"\bin line ([0-9]+)$")
"""How a fault of YAML ends that tells where what is not closed began, counted in its item."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Row:
    """The inputs of one run."""

    line: int
    """Where it begins, from 1."""
    values: dict[str, Any] = field(default_factory=dict)
    """Inputs as JSON values."""
    texts: dict[str, str] = field(default_factory=dict)
    """Inputs as text, to be read by their types. An empty one of CSV may stand for none."""


@dataclass(slots=True)
class BadRow:
    """A row that can't be read."""

    line: int
    message: str
    column: int = 1
    """From 1; where in a line is not known, its beginning."""


def read_rows(path: str) -> Iterator[Row | BadRow]:
    """The rows of a file, by its suffix: ``.jsonl``, ``.ndjson``, ``.csv``, ``.tsv``, ``.yaml``.

    Raises:
        UsageError: where it is of another kind, or can't be opened.
        LogError: where reading it fails.
    """
    reader = _READERS.get(path[path.rfind(".") :].lower())
    if reader is None:
        raise UsageError(f"{path}: rows are read of .jsonl, .csv, .tsv and .yaml files; name one")
    if not os.path.isfile(path):
        # What is no file can't be read twice, and a batch that goes on does so.
        raise UsageError(f"{path}: there is no such file; name one that has a row for each run")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            yield from reader(file, path)
    except OSError as error:
        raise LogError(f"{path}: can't be read: {error.strerror or error}") from None


def _lines(file: IO[str]) -> Iterator[str]:
    """Its lines; one that is too long ends with that as its last part, which has no end of line."""
    line = file.readline(MAX_ROW).removeprefix("\ufeff")
    while line:
        yield line
        if len(line) >= MAX_ROW and not line.endswith("\n"):
            return
        line = file.readline(MAX_ROW)


def _too_long(line: str) -> bool:
    return len(line) >= MAX_ROW and not line.endswith("\n")


def _json_rows(file: IO[str], path: str) -> Iterator[Row | BadRow]:
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        if _too_long(line):
            yield BadRow(number, f"it is longer than {MAX_ROW >> 20} MiB; keep data in other files")
        elif found := _SURROGATE.search(line):
            yield BadRow(number, NOT_UTF_8, found.start() + 1)
        else:
            yield _json_row(number, line)


def _json_row(number: int, line: str) -> Row | BadRow:
    try:
        value = json_text.parse(line)
    except json.JSONDecodeError as error:
        wanted = "an object is needed, with a value for each input"
        return BadRow(number, f"not JSON: {error.msg}; {wanted}", error.colno)
    except (ValueError, RecursionError) as error:
        return BadRow(number, f"not JSON that can be used: {error}")
    if not isinstance(value, dict):
        return BadRow(number, "an object of inputs is needed, with a value for each")
    return Row(number, values=value)


def _csv_rows(file: IO[str], path: str) -> Iterator[Row | BadRow]:
    csv.field_size_limit(MAX_ROW)
    delimiter = "\t" if path.lower().endswith(".tsv") else ","
    reader = csv.reader(_lines(file), delimiter=delimiter, strict=True)
    names: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield BadRow(line, f"not CSV: {error}; what follows can't be read")
            return
        if cells is None:
            return
        if any(map(_SURROGATE.search, cells)):
            yield BadRow(line, NOT_UTF_8)
        elif names is None:
            names = [cell.strip() for cell in cells]
            if problem := _header_problem(names):
                yield BadRow(line, problem)
                return
        elif cells:
            yield _csv_row(line, names, cells)


def _header_problem(names: list[str]) -> str | None:
    if not all(names):
        return "a column has no name; the first line names an input for each column"
    double = next((name for name in names if names.count(name) > 1), None)
    return None if double is None else f'two columns are called "{double}"; leave one out'


def _csv_row(line: int, names: list[str], cells: list[str]) -> Row | BadRow:
    if len(cells) != len(names):
        return BadRow(line, f"it has {len(cells)} cells, and the first line names {len(names)}")
    return Row(line, texts=dict(zip(names, cells, strict=True)))


def _yaml_rows(file: IO[str], path: str) -> Iterator[Row | BadRow]:
    indent: str | None = None
    kept: list[str] = []
    begun = size = 0
    for number, line in enumerate(_lines(file), 1):
        item = _ITEM.match(line)
        if indent is None:
            if item is None and not _is_nothing(line):
                yield BadRow(number, "a list of maps is needed, each item on lines after a -")
                return
            indent = None if item is None else item[1]
        elif _is_between(line):
            continue
        if item is not None and item[1] == indent:
            yield from _yaml_item(path, begun, kept)
            begun, kept, size = number, [], 0
        size += len(line)
        if size > MAX_ROW or _too_long(line):
            yield BadRow(begun or number, "it is larger than 1 MiB; keep data in other files")
            return
        if begun:
            kept.append(line)
    yield from _yaml_item(path, begun, kept)


def _is_between(line: str) -> bool:
    """Whether a line begins or ends a document."""
    return line[:3] in ("---", "...") and not line[3:].strip()


def _is_nothing(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#") or _is_between(line)


def _yaml_item(path: str, begun: int, lines: list[str]) -> Iterator[Row | BadRow]:
    """The row of the lines of one item of a list."""
    if not lines:
        return
    from runner.spec import node, yaml

    faults: list[Fault] = []
    data = "".join(lines).encode("utf-8", "surrogateescape")
    tree = yaml.parse(data, node.Source(path), faults)
    if faults:
        for fault in faults:
            message = _IN_LINE.sub(
                lambda found: f"in line {int(found[1]) + begun - 1}", fault.message
            )
            yield BadRow(begun + fault.line - 1, message, fault.column)
        return
    items = tree.items if isinstance(tree, node.ListNode) else []
    if len(items) != 1 or not isinstance(items[0], node.MapNode):
        yield BadRow(begun, "a map is needed, with a value for each input")
        return
    row = Row(begun)
    for name, value in items[0].entries.items():
        if isinstance(value, node.ScalarNode) and value.plain and value.value is not None:
            row.texts[name] = value.text
        else:
            row.values[name] = node.to_value(value)
    yield row


_READERS = {
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
    ".csv": _csv_rows,
    ".tsv": _csv_rows,
    ".yaml": _yaml_rows,
    ".yml": _yaml_rows,
}
