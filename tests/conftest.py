from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium.

    It is a module's, not the session's: while Playwright's synchronous interface is open, its
    thread counts as one that runs an event loop, in which no other test could `asyncio.run`.
    A module that uses it runs what is asynchronous in a thread, or in a process.
    """
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.skip("no Chromium here: it is Debian's package chromium")
    reason = "no Playwright here: it comes with the extra dev"
    sync_api = pytest.importorskip("playwright.sync_api", reason=reason)
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield chromium
        chromium.close()
