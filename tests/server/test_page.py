from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

Open = Callable[..., "Page"]


@pytest.fixture
def token(server: Any) -> str:
    header: str = server.client.headers["authorization"]
    return header.removeprefix("Bearer ")


@pytest.fixture
def open_page(server: Any, browser: Browser, token: str) -> Iterator[Open]:
    """Opens pages, each in a browser of its own that is logged in; none may complain."""
    complaints: list[str] = []
    contexts = []

    def hear(told: ConsoleMessage) -> None:
        # What was refused, or broke off, is not for the script to keep quiet about.
        if told.type == "error" and "Failed to load resource" not in told.text:
            complaints.append(told.text)

    def open_one(path: str = "", *, width: int = 1000, logged_in: bool = True) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", hear)
        if logged_in:
            page.goto(f"{server.url}login#{token}")
            page.wait_for_url(server.url)
        page.goto(server.url + path)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def _fits(page: Page) -> bool:
    fits: bool = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    return fits


def test_a_person_logs_in_and_out(server: Any, open_page: Open, token: str) -> None:
    page = open_page(logged_in=False)
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("That is not the token.").wait_for()
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Specs").wait_for()
    assert token not in page.content()
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Token").wait_for()
    page.goto(server.url)
    page.get_by_label("Token").wait_for()


def test_the_token_in_a_link_does_not_stay_in_the_address(
    server: Any, open_page: Open, token: str
) -> None:
    page = open_page(f"login#{token}", logged_in=False)
    page.get_by_role("heading", name="Specs").wait_for()
    assert page.url == server.url
    page.go_back()
    assert token not in page.url


def test_a_run_is_started_by_its_form_and_watched(server: Any, open_page: Open) -> None:
    page = open_page()
    form = page.get_by_role("form", name="quick")
    assert form.get_by_label("depth").input_value() == "2"
    assert form.get_by_label("share").input_value() == "0.5"
    assert form.get_by_label("tags").input_value() == "[]"
    assert form.get_by_label("key").get_attribute("type") == "password"
    form.get_by_label("topic").fill("cats")
    form.get_by_label("depth").select_option("3")
    form.get_by_label("loud").check()
    form.get_by_label("key").fill("a-secret-from-the-form")
    form.get_by_label("tags").fill("[not json")
    form.get_by_role("button", name="Run").click()
    form.get_by_text("This has to be JSON").wait_for()
    form.get_by_label("tags").fill('["a"]')
    form.get_by_role("button", name="Run").click()
    page.wait_for_url("**/watch/*")
    page.get_by_text("It is about cats.").first.wait_for()
    run_id = page.url.rsplit("/", 1)[1]
    server.ended(run_id)
    inputs = json.loads(server.log(run_id)[0])["inputs"]
    assert inputs == {
        "topic": "cats",
        "depth": 3,
        "share": 0.5,
        "loud": True,
        "tags": ["a"],
        "key": "[secret:key]",
    }
    assert "a-secret-from-the-form" not in page.content()
    page.get_by_role("link", name="All runs").click()
    page.locator(f'a[href="/watch/{run_id}"]').click()
    page.get_by_text("It is about cats.").first.wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the log").click()
    assert download.value.suggested_filename == f"quick-{run_id}.jsonl"


def test_what_the_server_refuses_is_told_in_the_form(open_page: Open) -> None:
    page = open_page()
    form = page.get_by_role("form", name="open")
    form.get_by_label("prompt").fill(" ")
    form.get_by_role("button", name="Run").click()
    # The browser tells of the answer too.
    form.get_by_text("is empty").wait_for()


def test_two_watch_a_run_and_one_of_them_leads_it(server: Any, open_page: Open) -> None:
    run_id = server.start("slow")
    leader, watcher = open_page(f"watch/{run_id}"), open_page(f"watch/{run_id}")
    leader.get_by_label("Message to the run").fill("Come to an end")
    leader.keyboard.press("Enter")
    for page in (leader, watcher):
        page.get_by_text("Come to an end").first.wait_for()
    leader.get_by_role("button", name="Stop").click()
    for page in (leader, watcher):
        page.locator(".status", has_text="aborted").first.wait_for()
    assert server.ended(run_id)["status"] == "aborted"


def test_a_reload_in_the_middle_goes_on_where_it_was(server: Any, open_page: Open) -> None:
    run_id = server.start("pieces")
    page = open_page(f"watch/{run_id}")
    page.get_by_text("Let me").first.wait_for()
    page.reload()
    page.locator(".status", has_text="ok").first.wait_for()
    page.get_by_text("This is what I found, all of it.").first.wait_for()
    count = page.evaluate("PiRun.shown.run.count")
    assert count == len(server.log(run_id))


class Line:
    """A way to the server that can be cut."""

    def __init__(self, server: Any) -> None:
        self._to = urlsplit(server.url)
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._take)]
        self._threads[0].start()
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}/"

    def cut(self) -> None:
        """Break all connections; new ones can be made."""
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self._listening.accept()
                other = socket.create_connection((self._to.hostname, self._to.port))
                self._ends += [one, other]
                self._threads.append(threading.Thread(target=_carry, args=(one, other)))
                self._threads[-1].start()


def _carry(one: socket.socket, other: socket.socket) -> None:
    with one, other, suppress(OSError):
        while True:
            for here in select.select([one, other], [], [])[0]:
                if not (data := here.recv(65536)):
                    return
                (other if here is one else one).sendall(data)


def test_a_browser_comes_back_by_itself_without_gap_or_double(
    server: Any, open_page: Open, token: str
) -> None:
    run_id = server.start("slow")
    with Line(server) as line:
        page = open_page(logged_in=False)
        page.goto(f"{line.url}login#{token}")
        page.wait_for_url(line.url)
        page.goto(f"{line.url}watch/{run_id}")
        for _ in range(3):
            count = page.evaluate("PiRun.shown?.run.count ?? 0")
            page.wait_for_function("count => (PiRun.shown?.run.count ?? 0) > count", arg=count)
            line.cut()
            page.get_by_text("The connection is lost").wait_for()
            page.get_by_text("The connection is lost").wait_for(state="detached")
        server.lead(run_id, "abort")
        page.locator(".status", has_text="aborted").first.wait_for()
        assert page.evaluate("PiRun.shown.run.count") == len(server.log(run_id))


def test_what_a_run_asks_is_answered_in_the_page(server: Any, open_page: Open) -> None:
    run_id = server.start("asks")
    page, other = open_page(f"watch/{run_id}"), open_page(f"watch/{run_id}")
    for each in (page, other):
        each.get_by_text("echo it-ran").last.wait_for()
    page.get_by_role("button", name="Allow").click()
    other.get_by_role("button", name="Allow").wait_for(state="detached")
    other.get_by_label("Answer").fill("green")
    other.get_by_role("button", name="Answer").click()
    page.locator(".status", has_text="ok").first.wait_for()
    assert page.locator(".ask").count() == 0
    assert server.ended(run_id)["text"].endswith("green")


def test_all_pages_fit_a_phone(server: Any, open_page: Open) -> None:
    run_id = server.start("asks")
    page = open_page(width=390)
    page.get_by_role("form", name="quick").wait_for()
    assert _fits(page)
    page.goto(f"{server.url}watch/{run_id}")
    page.get_by_role("button", name="Deny").wait_for()
    assert _fits(page)
    page.get_by_role("button", name="Stop").click()
    page.locator(".status", has_text="aborted").first.wait_for()
    assert _fits(page)
    page.goto(f"{server.url}login")
    assert _fits(page)


def test_what_cannot_be_shown_is_told(server: Any, open_page: Open) -> None:
    left = server.start("slow")
    server.until(left, lambda run: run["status"] == "running")
    (path,) = server.logs.glob(f"*-{left}.jsonl")
    torn = "zzzzzzzzzzzz"
    (server.logs / f"slow-{torn}.jsonl").write_bytes(path.read_bytes())
    server.lead(left, "abort")
    page = open_page(f"watch/{torn}")
    page.get_by_text("This run was interrupted").wait_for()


def test_axe_finds_no_serious_fault(
    server: Any, open_page: Open, serious_faults: Callable[[Page], list[str]]
) -> None:
    run_id = server.start("asks")
    page = open_page()
    page.locator("#runs li").first.wait_for()
    assert serious_faults(page) == []
    page.goto(f"{server.url}watch/{run_id}")
    page.get_by_role("button", name="Allow").click()
    page.get_by_label("Answer").wait_for()
    assert serious_faults(page) == []
    page.goto(f"{server.url}login")
    assert serious_faults(page) == []
    server.lead(run_id, "abort")
