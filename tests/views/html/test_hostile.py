"""What a model, a tool or a spec says is shown as text, whatever it is."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runner.views.html import comparison, report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Open = Callable[..., "Page"]
Events = list[dict[str, Any]]

EVIL = (
    "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"
    "<svg/onload=window.hurt=1>&lt;b&gt;{{7*7}}${7*7}`<!--<script>\u2028\u2029"
    "\u202egnp.\u202c\u2066\u200b\ufeff\x1b[31m\x00\x07\x9b\x7f\ud800\r"
)
SHOWN = (
    "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"
    "<svg/onload=window.hurt=1>&lt;b&gt;{{7*7}}${7*7}`<!--<script>\\u2028\\u2029"
    "\\u202egnp.\\u202c\\u2066\\u200b\\ufeff␛[31m␀␇\\x9b␡\\ud800␍"
)
USAGE = {"input": 1, "output": 1, "cache_read": 0, "cache_write": 0, "reasoning": 0}


def event(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


@pytest.fixture
def hostile() -> Events:
    """A run that says it everywhere where a text can be."""
    text = [{"type": "text", "text": EVIL}]
    call = {"type": "tool_call", "id": EVIL, "name": EVIL, "arguments": {EVIL: EVIL}}
    blocks = [{"type": "thinking", "text": EVIL}, *text, call, {"type": EVIL, "data": EVIL}]
    answer = {"id": EVIL, "role": "assistant", "provider": EVIL, "model": EVIL, "usage": USAGE}
    result = {"id": "m3", "role": "tool_result", "tool_call_id": EVIL, "tool_name": EVIL}
    pictures = [
        {"type": "image", "mime_type": f"image/svg+xml{EVIL}", "data": "PHN2Zz4="},
        {"type": "image", "mime_type": "image/png", "data": f'AAAA"{EVIL}'},
        {"type": "image", "mime_type": "image/png", "data": "AAAA"},
    ]
    plan = {"description": EVIL, "model": {"provider": EVIL, "id": EVIL}, "system_prompt": EVIL}
    call_id = {"tool_call_id": EVIL}
    fork = {"run_id": EVIL, "turn": EVIL}
    output = {"content": [*text, *pictures], "details": {EVIL: EVIL}}
    failed = {"content": blocks, "stop_reason": "error", "error": {"kind": EVIL, "message": EVIL}}
    start = {"run_id": EVIL, "started_at": EVIL, "runner_version": EVIL, "forked_from": fork}
    end = {"text": EVIL, "output": {EVIL: EVIL}, "usage": USAGE, "cost_usd": 0.1, "seconds": 1.0}
    whole = [
        event("run_start", spec={"name": EVIL}, plan=plan, inputs={EVIL: EVIL}, **start),
        event("run_resume", at_seq=EVIL, reason=EVIL, kept=[EVIL]),
        event("task_start", task_id=EVIL, iteration=2, item={EVIL: EVIL}),
        event("turn_start", turn=EVIL),
        event("message_end", message={"id": EVIL, "role": EVIL, "content": text}),
        event("model_request", provider=EVIL, model=EVIL, attempt=EVIL),
        event("model_retry", attempt=EVIL, delay=1, error=EVIL, fallback=EVIL),
        event("message_start", message={"id": EVIL, "role": "assistant"}),
        event("message_end", message={**answer, **failed}),
        event("tool_execution_start", **call_id, tool_name=EVIL, arguments={EVIL: EVIL}),
        event("hook_decision", **call_id, hook=EVIL, action=EVIL, reason=EVIL),
        event("tool_execution_update", **call_id, tool_name=EVIL, update={EVIL: EVIL}),
        event("tool_execution_end", **call_id, tool_name=EVIL, is_error=True, result=output),
        event("message_end", message={**result, "content": text, "is_error": True}),
        event("message_queued", queue=EVIL, source=EVIL, message={"content": text}),
        event("tool_unavailable", tool=EVIL, reason=EVIL),
        event(EVIL, **{EVIL: EVIL}),
        event("turn_start", turn=1, agent=f"main/{EVIL}#1"),
        event("limit_reached", limit=EVIL, value=EVIL, allowed=EVIL),
        event("task_end", task_id=EVIL, iteration=2, status=EVIL, output=EVIL),
        event("expectation", task_id=EVIL, kind=EVIL, passed=False, detail=EVIL),
        event("run_end", status=EVIL, exit_code=EVIL, error=EVIL, **end),
    ]
    return [{"seq": seq, "t": seq / 10, **one} for seq, one in enumerate(whole)]


def written(folder: Path, text: str) -> Path:
    path = folder / "page.html"
    # The lone surrogate stands escaped in the JSON, as it does in a log.
    path.write_text(text, encoding="utf-8")
    return path


def elements(page: Page) -> set[str]:
    names = "[...new Set([...document.querySelectorAll('*')].map(e => e.localName))]"
    return set(page.evaluate(names))


def test_nothing_that_was_said_becomes_markup(
    open_page: Open, hostile: Events, tmp_path: Path
) -> None:
    parting: dict[str, Any] = {"seq": 9, "agent": None, "turn": EVIL, "type": EVIL, "path": EVIL}
    parting |= {"recorded": EVIL, "new": [EVIL], "cause": EVIL, "prompts": [EVIL, EVIL + "x"]}
    pieces = report(hostile, notices=[EVIL], parting=parting)
    page = open_page(written(tmp_path, "".join(pieces)), height=6000)

    page.get_by_role("button", name="Unfold all").click()
    for details in page.get_by_role("button", name="Details of message").all():
        details.click()
    page.evaluate("document.querySelectorAll('.bar, .tl-mark, .column').forEach(b => b.click())")
    text = page.locator("body").inner_text()

    assert page.evaluate("window.hurt") is None
    assert not elements(page) & {"svg", "iframe", "object", "form"}
    assert page.locator("img").count() == 1
    assert page.locator("img[onerror], [onload]").count() == 0
    assert text.count(SHOWN) > 20
    assert not re.search("[\u2028\u2029\u202e\u2066\u200b\x00\x07\x1b\x7f\x9b]", text)
    assert not re.search("[\u202e\u2066\x1b]", page.title())


def test_nor_does_what_two_logs_say(open_page: Open, hostile: Events, tmp_path: Path) -> None:
    found = [
        {"turn": 1, "agent": EVIL, "path": EVIL, "a": EVIL, "b": {EVIL: EVIL}},
        {"turn": 1, "path": EVIL, "a": EVIL, "b": f"{EVIL}x"},
        {"turn": 1, "path": EVIL, "b": EVIL},
    ]
    pieces = comparison(hostile, hostile, found, names=(EVIL, EVIL))
    page = open_page(written(tmp_path, "".join(pieces)))
    for button in page.get_by_role("button", name="The turn in both").all():
        button.click()

    assert page.evaluate("window.hurt") is None
    assert not elements(page) & {"img", "svg", "iframe"}
    assert page.locator("body").inner_text().count(SHOWN) > 3


def test_the_data_in_the_page_is_the_log(hostile: Events) -> None:
    page = "".join(report(hostile))
    parts = re.findall(r'<script type="application/json" data-log="a">(.*?)</script>', page, re.S)

    kept = [event for part in parts for event in json.loads(part)]
    assert kept[0]["inputs"] == {EVIL: EVIL}
    assert kept[-1] == hostile[-1]
    assert page.count("<script") == page.count("</script>") == 4


def test_only_the_pages_own_script_may_run(hostile: Events) -> None:
    page = "".join(report(hostile))
    script = re.findall(r"<script>(.*?)</script>", page, re.S)
    style = re.findall(r"<style>(.*?)</style>", page, re.S)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)

    assert policy
    rules = dict(rule.split(" ", 1) for rule in policy.group(1).split("; "))
    assert rules["default-src"] == "'none'"
    assert "connect-src" not in rules
    for name, parts in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256("".join(parts).encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"


def test_a_browser_holds_the_page_to_that(browser: Browser, report_file: Path) -> None:
    page = browser.new_page()
    page.goto(report_file.as_uri())
    page.wait_for_selector("[data-ready]")
    reached: list[str] = []
    stopped: list[str | None] = []
    page.on("requestfinished", lambda request: reached.append(request.url))
    page.on("requestfailed", lambda request: stopped.append(request.failure))

    page.evaluate(
        """() => {
            const script = document.createElement("script");
            try { script.text = "window.hurt = 1"; } catch {}
            document.body.append(script);
            try { document.body.insertAdjacentHTML("beforeend", "<b id=hurt>"); } catch {}
            const image = document.createElement("img");
            const failed = new Promise((done) => { image.onerror = done; });
            image.src = "http://127.0.0.1:9/x.png";
            document.body.append(image);
            return fetch("http://127.0.0.1:9/x").catch(() => failed).then(() => null);
        }"""
    )

    assert page.evaluate("window.hurt") is None
    assert page.locator("#hurt").count() == 0
    assert reached == []
    assert set(stopped) == {"csp"}
    page.close()
