"""Errors by the stage at which they arise, and the exit code of each.

::

    PiRunError
    ├── UsageError              2   a wrong option, input or file name; nothing was run
    │   └── SpecError           2   faults of a spec, each with its place; nothing was run
    ├── RunError                3   a run could not go on
    │   ├── ProviderError       3   the model's server, or what it sent
    │   ├── HookError           3   a hook that failed where failing ends the run
    │   └── TemplateError       3   a template that could not be rendered in the middle of a run
    └── LogError                6   a log or a file that could not be read or written

Anything else that escapes is a bug of pi-run, exit code 70.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Status = Literal["ok", "failed", "error", "limit", "denied", "aborted"]
"""How a run ended."""

ErrorKind = Literal[
    "auth",
    "bad_request",
    "not_found",
    "context_overflow",
    "refused",
    "rate_limit",
    "quota",
    "overloaded",
    "server",
    "network",
    "timeout",
    "protocol",
    "exhausted",
]
"""What went wrong between pi-run and a model."""

RETRYABLE: frozenset[ErrorKind] = frozenset(
    ("rate_limit", "overloaded", "server", "network", "timeout", "protocol")
)
"""Kinds after which the same request may well succeed."""

BUG = 70
"""Exit code of a fault of pi-run itself."""

_EXIT_CODES: dict[str, int] = {
    "ok": 0,
    "failed": 1,
    "error": 3,
    "limit": 4,
    "denied": 5,
    "aborted": 3,
}


def exit_code(status: Status, signal: int | None = None) -> int:
    """The process exit code of a run.

    Args:
        status: How the run ended.
        signal: The signal that aborted it, if one did: 2 (SIGINT) gives 130, 15 (SIGTERM) 143.
            A run that was aborted without one, such as by its own model, gives 3.
    """
    if status == "aborted" and signal is not None:
        return 128 + signal
    return _EXIT_CODES[status]


class PiRunError(Exception):
    """The root of all errors that are meant for a person to read."""

    exit_code = BUG


class UsageError(PiRunError):
    """What was asked for can't be done as asked; nothing was run."""

    exit_code = 2


class Fault:
    """One thing that is wrong in a spec, with its place.

    Printed as ``FILE:LINE:COLUMN: PATH: what is wrong; what would be right``.
    """

    __slots__ = ("column", "file", "line", "message", "path", "warning")

    def __init__(
        self,
        file: str,
        line: int,
        column: int,
        path: str,
        message: str,
        *,
        warning: bool = False,
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.path = path
        self.message = message
        self.warning = warning

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.path}: {self.message}"

    def __repr__(self) -> str:
        return f"Fault({str(self)!r})"


class SpecError(UsageError):
    """A spec is wrong. ``faults`` has each thing that is, in the order of the file."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = sorted(faults, key=lambda f: (f.file, f.line, f.column))
        super().__init__("\n".join(map(str, self.faults)))


class RunError(PiRunError):
    """A run had to end; what it did until then is in its log."""

    exit_code = 3


class ProviderError(RunError):
    """A model's server failed, refused, or sent what can't be understood.

    Attributes:
        kind: One of `ErrorKind`.
        status: The HTTP status, where there was one.
        retry_after: Seconds that the server asked to wait, where it did.
        retryable: Whether the same request may succeed; by default what the kind says.
    """

    def __init__(
        self,
        message: str,
        kind: ErrorKind,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.status = status
        self.retry_after = retry_after
        self.retryable = kind in RETRYABLE if retryable is None else retryable


class HookError(RunError):
    """A hook failed, and its ``on_error`` says that this ends the run."""


class TemplateError(RunError):
    """A template could not be rendered with the values of this run."""


class LogError(PiRunError):
    """A log or another file can't be read or written."""

    exit_code = 6


_ADDRESS = re.compile(r"(<[^<>]*) at 0x[0-9A-Fa-f]*(?=>|\Z)")
"""Of an object, as Python shows it."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like a wrong one, if one is like it at all."""
    import difflib

    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error's text about a wrong name: its nearest known one, or all of them."""
    names = list(known)
    if near := nearest(name, names):
        return f'did you mean "{near}"?'
    return "known: " + ", ".join(names) if names else "none is known"


def describe(error: BaseException) -> str:
    """An exception in one line for a person: its message, or its type where that is empty.

    Where in memory an object is that it names is left out: that is another place in each run.
    """
    return _in_one_line(text_of(error)) or type(error).__name__


def named(error: BaseException) -> str:
    """An exception that nobody foresaw, in one line: its type, and its message."""
    name = type(error).__name__
    return f"{name}: {_in_one_line(_message(error)) or name}"


def text_of(error: BaseException) -> str:
    """An exception's message; empty where a person's class can't even tell it.

    That of a key that is missing is nothing but the key, and gets the exception's type before it.
    """
    text = _message(error)
    bare = type(error).__str__ is KeyError.__str__ and bool(error.args)
    return f"{type(error).__name__}: {text}" if bare else text


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _in_one_line(text: str) -> str:
    return _ADDRESS.sub(r"\1", " ".join(text.split()))
