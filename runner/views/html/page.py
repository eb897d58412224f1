"""The page around the events: its parts are files beside this one, put together and hashed."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from runner import json_text
from runner.views.escape import one_line
from runner.views.html.slim import Event, Slim

_FOLDER = Path(__file__).parent
_SCRIPTS = (
    *("text", "model", "events", "parts", "items", "lines", "sections", "lanes", "timeline"),
    *("chart", "outline", "head", "keys", "find", "view", "live", "compared", "diff", "page"),
)
"""The page's script, in the order in which its files build on each other."""
_PIECE = 1 << 19
"""Characters of JSON that stand in one element: the page reads one after the other."""


def report(
    events: Iterable[Event],
    *,
    notices: Sequence[str] = (),
    parting: Mapping[str, Any] | None = None,
    slim: Slim | None = None,
) -> Iterator[str]:
    """A page that shows a run, piece by piece, in memory that doesn't grow with the log.

    Args:
        events: Those of a log, in its order; of a part of one, with the run's start and end.
        notices: Sentences for the reader, such as which part of the log it is.
        parting: Where a replay parted from the log, as of `runner.views.replay.parting_json`.
        slim: Makes events fit for the page, and knows afterwards what was left out.
    """
    slim = slim or Slim()
    stream = iter(events)
    first = next(stream, None)
    name = _name(first)
    told = [_notice(text) for text in notices]
    yield _head(f"{name} · pi-run")
    yield _data("page", {"kind": "report", "name": name, "notices": told, "parting": parting})
    yield from _log("a", slim.lines(_chain(first, stream)))
    yield _data("notices", [_notice(text) for text in slim.notices()])
    yield _tail()


def comparison(
    a: Iterable[Event],
    b: Iterable[Event],
    differences: Iterable[Mapping[str, Any]],
    *,
    names: tuple[str, str],
) -> Iterator[str]:
    """A page that shows how two runs differ, piece by piece.

    Args:
        a: The first log's events.
        b: The second log's events.
        differences: As of `pi-run diff --format json`, in the order of the logs.
        names: What the logs are called.
    """
    yield _head(f"{names[0]} and {names[1]} · pi-run")
    yield _data("page", {"kind": "diff", "a": names[0], "b": names[1]})
    yield from _log("a", Slim().lines(a))
    yield from _log("b", Slim().lines(b))
    yield from _log("differences", Slim().values(differences))
    yield _tail()


def live_page(name: str) -> str:
    """A page of a run that goes on: what serves it gives it the events, by the page's script.

    Args:
        name: What the run is called until its first event came.
    """
    return _head(f"{name} · pi-run") + _data("page", {"kind": "live", "name": name}) + _tail()


def _name(first: Event | None) -> str:
    spec = first.get("spec") if first else None
    return one_line(str(spec["name"]) if spec and "name" in spec else "run", 80)


def _chain(first: Event | None, rest: Iterator[Event]) -> Iterator[Event]:
    if first is not None:
        yield first
    yield from rest


def _notice(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- parts ----------------------------------------------------------------------------------------


def _log(name: str, lines: Iterable[str]) -> Iterator[str]:
    """Values as JSON lists, each in an element of its own."""
    gathered: list[str] = []
    size = 0
    for line in lines:
        gathered.append(line)
        size += len(line)
        if size > _PIECE:
            yield _element(f'data-log="{name}"', "[" + ",\n".join(gathered) + "]")
            gathered, size = [], 0
    if gathered:
        yield _element(f'data-log="{name}"', "[" + ",\n".join(gathered) + "]")


def _data(name: str, value: Any) -> str:
    return _element(f'id="{name}"', json_text.line(value))


def _element(attribute: str, text: str) -> str:
    """JSON as an element that is no script. In JSON a "<" only stands in texts."""
    safe = text.replace("<", "\\u003c")
    return f'<script type="application/json" {attribute}>{safe}</script>\n'


@cache
def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """The script of all pages, for a server that has pages of its own."""
    return "".join(_asset(f"{name}.js") for name in _SCRIPTS)


def style() -> str:
    """The style sheet of all pages."""
    return _asset("page.css")


@cache
def _template() -> tuple[str, str]:
    head, _, tail = _asset("page.html").partition("@DATA@\n")
    return head, tail


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _policy() -> str:
    rules = [
        "default-src 'none'",
        f"script-src {_hash(script())}",
        f"style-src {_hash(style())}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        # No text becomes markup, whoever tries: not even the page's own script may.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    return "; ".join(rules)


def _head(title: str) -> str:
    head = _template()[0]
    head = head.replace("@POLICY@", _policy()).replace("@STYLE@", style())
    # Last, so that nothing in it is taken for a place of the template.
    return head.replace("@TITLE@", html.escape(one_line(title, 160)))


def _tail() -> str:
    return _template()[1].replace("@SCRIPT@", script())
