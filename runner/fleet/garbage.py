"""Garbage collection for a process in which many runs come and go."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = 5_000, 4, 4
"""Of the generations. Python's own are for a process with few objects, which looks seldom among
the old ones: there many a run that has ended would lie for long."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Look for cycles less often, and not among what is there now: modules, specs, templates.

    Each look went through all of these, which took a fifth of the time of a batch of small runs.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
