"""What gets into a page, and what is left out of it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runner.views.html import Slim, comparison, report

Event = dict[str, Any]

TEXT = st.text() | st.sampled_from(
    ["</script>", "<!--<script>", "\u2028", "]]>", "\ud800", "@DATA@"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


class Parts(HTMLParser):
    """The elements of a page, as a browser would part them, and the texts of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.data: dict[str, list[str]] = {}
        self._into: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        given = dict(attrs)
        if tag == "script":
            name = given.get("data-log") or given.get("id") or "script"
            self._into = self.data.setdefault(name, [])

    def handle_endtag(self, tag: str) -> None:
        self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)


def parts_of(page: str) -> Parts:
    parts = Parts()
    parts.feed(page)
    return parts


def kept(events: list[Event]) -> list[Event]:
    return [json.loads(line) for line in Slim().lines(events)]


@given(st.lists(JSON, max_size=4), TEXT)
def test_any_log_comes_through_as_it_is(values: list[Any], name: str) -> None:
    start: Event = {"type": "run_start", "spec": {"name": name}}
    events = [start, *({"type": "something_new", "value": value} for value in values)]
    plain = parts_of("".join(report([{"type": "run_start"}])))

    parts = parts_of("".join(report(events)))

    assert parts.names == plain.names
    assert [one for text in parts.data["a"] for one in json.loads(text)] == events
    assert parts.data["script"] == plain.data["script"]


@given(JSON, TEXT)
def test_so_do_differences(value: Any, name: str) -> None:
    found = [{"turn": 1, "path": name, "a": value}]
    parts = parts_of("".join(comparison([], [], found, names=(name, "b"))))

    assert json.loads("".join(parts.data["differences"])) == found
    assert json.loads("".join(parts.data["page"])) == {"kind": "diff", "a": name, "b": "b"}


def test_it_is_alone_in_the_world() -> None:
    page = "".join(report([{"type": "run_start"}]))
    parts = parts_of(page)

    assert not {"img", "iframe", "object", "embed", "base"} & set(parts.names)
    assert parts.names.count("link") == 1
    assert '<link rel="icon" href="data:,">' in page
    # Names of SVG's namespace are no addresses that anybody asks for.
    assert set(re.findall(r"https?://[^\s'\"]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in page


# --- what is left out -----------------------------------------------------------------------------


def delta(text: str) -> Event:
    kind = {"kind": "text", "index": 0, "text": text}
    return {"type": "message_update", "message_id": "m1", "delta": kind}


def test_pieces_of_an_answer_go_where_it_is_there_whole() -> None:
    message = {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "ab"}]}
    end = {"type": "message_end", "message": message}

    assert kept([delta("a"), delta("b"), end]) == [end]


def test_pieces_of_one_that_broke_off_are_put_together() -> None:
    start = {"type": "message_start", "message": {"id": "m1", "role": "assistant"}}

    last = kept([start, delta("a"), delta("b")])[-1]
    assert last["delta"]["text"] == "ab"


def test_a_result_is_told_once() -> None:
    content = [{"type": "text", "text": "x"}]
    call = {"type": "tool_execution_end", "tool_call_id": "c", "result": {"content": content}}
    message = {"id": "m2", "role": "tool_result", "tool_call_id": "c", "content": content}
    changed = {**message, "content": [{"type": "text", "text": "y"}]}

    same = kept([call, {"type": "message_end", "message": message}])
    other = kept([call, {"type": "message_end", "message": changed}])

    assert "content" not in same[1]["message"]
    assert other[1]["message"] == changed


def test_long_texts_and_images_are_cut_and_told() -> None:
    image = {"type": "image", "mime_type": "image/png", "data": "A" * (5 << 20)}
    slim = Slim()
    lines = list(slim.lines([{"type": "new", "text": "x" * 300_000, "image": image}]))

    event = json.loads(lines[0])
    assert event["text"].startswith("x" * 200_000 + "… (100,000 more characters")
    assert event["image"]["data"] == ""
    assert slim.notices() == ["2 texts and images were cut; the log has them whole"]


def test_of_many_updates_of_a_call_the_first_are_kept() -> None:
    update = {"type": "tool_execution_update", "tool_call_id": "c", "update": 1}

    assert len(kept([update] * 80)) == 50
