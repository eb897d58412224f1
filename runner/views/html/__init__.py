"""A run, or the comparison of two, as one page of HTML that needs nothing else.

The page's script takes the events of a log one by one: in a report they stand in the page as JSON,
on a live page they come from the server's stream. All that models, tools and specs said is data to
it: it is only ever put into the page as text, and a policy in the page's head lets nothing run or
load but what the page itself brings along.
"""

from __future__ import annotations

from runner.views.html.page import comparison, live_page, report, script, style
from runner.views.html.slim import Slim

__all__ = ["Slim", "comparison", "live_page", "report", "script", "style"]
