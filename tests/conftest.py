from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AXE = Path(sys.prefix, "npm", "node_modules", "axe-core", "axe.min.js")
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


@pytest.fixture(scope="session")
def serious_faults() -> Callable[[Page], list[str]]:
    """What axe-core calls serious or critical in a page, each as a line."""
    if not AXE.is_file():
        pytest.skip(f"no axe-core here: npm install --prefix {AXE.parents[2]} axe-core")
    script = AXE.read_text(encoding="utf-8")

    def find(page: Page) -> list[str]:
        page.evaluate(f"{script}; 0")
        found = page.evaluate("axe.run().then((result) => result.violations)")
        return [
            f"{fault['impact']}: {fault['help']}: {node['html'][:200]}"
            for fault in found
            if fault["impact"] in ("serious", "critical")
            for node in fault["nodes"]
        ]

    return find
