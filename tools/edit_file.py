"""The built-in tool ``edit_file``."""

from __future__ import annotations

import difflib
import itertools
from dataclasses import dataclass

from runner import ToolContext, ToolResult, tool

MAX_BYTES = 10_000_000
"""Of a file."""
DIFF_LINES = 5_000
"""Lines of a file of which a diff is still made: its cost grows with their square."""


@dataclass
class Edit:
    """One replacement."""

    old: str
    """The text to replace, exactly as it is in the file; it must be there once."""
    new: str
    """The text to put there."""


def preview(path: str, edits: list[Edit], context: ToolContext) -> str | None:
    """What a call would change, as a diff; None where it would fail."""
    try:
        before = text_of(context.files.read(path, MAX_BYTES), path)
        return diff(before, edited(before, edits, path), path)
    except ValueError:
        return None


@tool(preview=preview)
def edit_file(path: str, edits: list[Edit], context: ToolContext) -> ToolResult:
    """Replace exact texts in a text file. All edits are made, or none.

    Args:
        path: The file, relative to the workspace.
        edits: Replacements. Each old text is looked for in the file as it was before the call,
            must be in it exactly once, and may not overlap another.
        context: The call.
    """
    files = context.files
    try:
        with files.lock(path):
            before = text_of(files.read(path, MAX_BYTES), path)
            after = edited(before, edits, path)
            files.write(path, after.encode())
    except ValueError as error:
        return ToolResult(f"Nothing was changed: {error}", is_error=True)
    count = f"{len(edits)} place" + ("s" if len(edits) > 1 else "")
    return ToolResult(f"Changed {path} in {count}.", {"diff": diff(before, after, path)})


def text_of(data: bytes, path: str) -> str:
    """A file's text, of which every byte can be written again."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no UTF-8 text") from None


def edited(text: str, edits: list[Edit], path: str) -> str:
    """A text with all edits made."""
    if not edits:
        raise ValueError("edits is empty; give at least one {old, new}")
    crlf = "\r\n" in text and "\n" not in text.replace("\r\n", "")
    places = []
    for number, edit in enumerate(edits):
        # A model writes plain line ends, whatever those of the file are.
        old, new = (ends(each, crlf) for each in (edit.old, edit.new))
        start = place(text, old, f"edits[{number}].old", path)
        places.append((start, start + len(old), new))
    places.sort()
    for (_, end, _), (start, _, _) in itertools.pairwise(places):
        if start < end:
            raise ValueError("two edits overlap; make one of them")
    pieces, at = [], 0
    for start, end, new in places:
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])


def ends(text: str, crlf: bool) -> str:
    """A text with the line ends of the file."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if crlf else text


def place(text: str, old: str, what: str, path: str) -> int:
    """Where a text is, exactly once."""
    if not old:
        raise ValueError(f"{what} is empty; to write a whole file, use write_file")
    start = text.find(old)
    if start < 0:
        raise ValueError(f"{what} is not in {path}; {nearest(text, old)}")
    if text.find(old, start + 1) >= 0:
        raise ValueError(
            f"{what} is in {path} {text.count(old)} times; add lines around it until it is unique"
        )
    return start


def nearest(text: str, old: str) -> str:
    """What could help to find the text that was meant."""
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    lines = [n for n, line in enumerate(text.splitlines(), 1) if first and first in line]
    if lines:
        return f"its first line is at line {lines[0]}, so blanks or later lines differ"
    return "read the file again, and copy the text exactly"


def diff(before: str, after: str, path: str) -> str | None:
    """What was changed, as a unified diff; None for a file too long for one."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > 2 * DIFF_LINES:
        return None
    return "\n".join(difflib.unified_diff(old, new, path, path, lineterm=""))
