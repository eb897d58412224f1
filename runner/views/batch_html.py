"""A batch as one HTML page that needs nothing else: its totals, and a table of its runs.

All that runs, rows and specs say is escaped, and no script is allowed on the page.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from runner import json_text
from runner.views.batch import summary
from runner.views.escape import one_line, visible
from runner.views.text import tokens

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ border-bottom: 1px solid #8884; padding: .3em .6em; text-align: left; vertical-align: top }}
td.n {{ text-align: right; font-variant-numeric: tabular-nums }}
td.t {{ max-width: 30em; overflow-wrap: anywhere }}
tr.bad td:nth-child(3) {{ color: #c22; font-weight: bold }}
</style></head><body>
<h1>{title}</h1>
"""  # noqa: E501 (as it stands in the page)
_COLUMNS = ("row", "inputs", "status", "turns", "tokens", "cost", "seconds", "said", "log")
_SHOWN = 500
"""Characters of a text that the table shows; all of it is in the log."""


def page(head: Mapping[str, Any], runs: Iterable[Mapping[str, Any]], file: str) -> Iterator[str]:
    """The page in pieces.

    Args:
        head: A report's head.
        runs: Its runs.
        file: Where the page will lie, from which it links to the logs.
    """
    title = "Batch " + ", ".join(spec["name"] for spec in head["specs"])
    yield _HEAD.format(title=_text(title))
    yield "".join(f"<p>{_text(line)}</p>\n" for line in summary(head))
    yield "<table><thead><tr>" + "".join(f"<th>{name}</th>" for name in _COLUMNS)
    yield "</tr></thead><tbody>\n"
    folder = os.path.dirname(os.path.abspath(file))
    for run in runs:
        yield _row(run, folder)
    yield "</tbody></table></body></html>\n"


def _row(run: Mapping[str, Any], folder: str) -> str:
    said = run["error"] or "; ".join(run["failed"]) or run["text"]
    cost = "" if run["cost_usd"] is None else f"{run['cost_usd']:.6f}"
    numbers = (run["turns"], tokens(run["usage"]), cost, f"{run['seconds']:.2f}")
    cells = [
        f'<td class="n">{run["line"]} #{run["number"]}</td>',
        f'<td class="t">{_text(one_line(json_text.line(run["inputs"]), _SHOWN))}</td>',
        f"<td>{_text(run['status'])}</td>",
        *(f'<td class="n">{number}</td>' for number in numbers),
        f'<td class="t">{_text(one_line(said, _SHOWN))}</td>',
        f"<td>{_link(run['log'], folder)}</td>",
    ]
    kind = "" if run["exit_code"] == 0 else ' class="bad"'
    return f"<tr{kind}>{''.join(cells)}</tr>\n"


def _link(log: str | None, folder: str) -> str:
    if log is None:
        return ""
    path = os.path.relpath(os.path.abspath(log), folder)
    # A first part with a colon would be taken for a scheme.
    return f'<a href="./{html.escape(quote(path))}">log</a>'


def _text(text: str) -> str:
    return html.escape(visible(text))
