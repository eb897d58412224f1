from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from runner.server.access import Access
from runner.server.body import MAX_BODY


@pytest.fixture
def anyone(server: Any) -> Iterator[httpx.Client]:
    """A client without the token."""
    with httpx.Client(base_url=server.url) as client:
        yield client


PATHS = [
    ("GET", "/"),
    ("GET", "/specs"),
    ("GET", "/runs"),
    ("POST", "/runs"),
    ("GET", "/runs/000000000000"),
    ("GET", "/runs/000000000000/events"),
    ("GET", "/runs/000000000000/log"),
    ("POST", "/runs/000000000000/abort"),
    ("POST", "/runs/000000000000/steer"),
    ("POST", "/runs/000000000000/questions/q1"),
    ("GET", "/openapi.json"),
    ("GET", "/watch/000000000000"),
    ("GET", "/assets/view.js"),
    ("GET", "/assets/home.js"),
    ("POST", "/logout"),
    ("GET", "/nothing"),
    ("GET", "/login/"),
    ("GET", "//login"),
    ("GET", "/login/../specs"),
    ("OPTIONS", "/runs"),
    ("TRACE", "/runs"),
]


STRANGERS = [
    {},
    {"Authorization": "Bearer wrong"},
    {"Authorization": "Bearer"},
    {"Authorization": "Basic YTpi"},
    {"Cookie": "pi_run=x"},
    {"Cookie": '"; x=\\'},
]


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_nothing_answers_without_the_token(anyone: httpx.Client, method: str, path: str) -> None:
    for headers in STRANGERS:
        answer = anyone.request(method, path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "no_token"


def test_a_browser_without_the_token_gets_the_login_page(anyone: httpx.Client) -> None:
    for path in ("/", "/watch/000000000000", "/runs"):
        answer = anyone.get(path, headers={"Accept": "text/html,*/*"})
        assert answer.status_code == 401
        assert 'action="/login"' in answer.text
    for path in re.findall(r'(?:href|src)="(/assets/[^"]+)"', anyone.get("/login").text):
        assert anyone.get(path).status_code == 200


def test_logging_in_and_out(server: Any, anyone: httpx.Client) -> None:
    wrong = anyone.post("/login", data={"token": "wrong"})
    assert wrong.status_code == 401
    assert "That is not the token" in wrong.text
    token = server.client.headers["authorization"].removeprefix("Bearer ")
    answer = anyone.post("/login", data={"token": token})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert token not in cookie
    assert anyone.get("/runs").status_code == 200
    assert anyone.get("/").headers["content-type"].startswith("text/html")
    assert anyone.post("/logout").status_code == 303
    assert anyone.get("/runs").status_code == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("{}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1", 200),
        ("[::1]:{port}", 200),
        ("evil.example", 421),
        ("evil.example:{port}", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.", 421),
        ("10.0.0.1", 421),
        ("a@127.0.0.1", 200),
        ("127.0.0.1@evil.example", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_by_what_names_the_server_is_called(server: Any, host: str, status: int) -> None:
    own = urlsplit(server.url)
    name = host.format(own.netloc, port=own.port)
    assert server.client.get("/runs", headers={"Host": name}).status_code == status


def test_a_name_that_is_allowed(serve: Any) -> None:
    server = serve("--allow-host", "runs.example", specs=[])
    assert server.client.get("/runs", headers={"Host": "Runs.Example:443"}).status_code == 200
    assert server.client.get("/runs", headers={"Host": "other.example"}).status_code == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 404),
        ({"Origin": "{own}"}, 404),
        ({"Sec-Fetch-Site": "same-origin"}, 404),
        ({"Sec-Fetch-Site": "none"}, 404),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, 404),
        ({"Origin": "null"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": "file://"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_pages_of_other_origins_change_nothing(
    server: Any, headers: dict[str, str], status: int
) -> None:
    own = server.url.rstrip("/")
    given = {name: value.format(own=own) for name, value in headers.items()}
    answer = server.client.post("/runs/000000000000/abort", json={}, headers=given)
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"{}", "text/plain", 415, "not_json"),
        (b"spec=quick", "application/x-www-form-urlencoded", 415, "not_json"),
        (b"{}", "", 415, "not_json"),
        (b"", "application/json", 400, "invalid_json"),
        (b"{", "application/json", 400, "invalid_json"),
        (b"\xff", "application/json", 400, "invalid_json"),
        (b'{"spec": NaN}', "application/json", 400, "invalid_json"),
        (b"[" * 100_000, "application/json", 400, "invalid_json"),
        (b'{"spec": "\\ud800"}', "application/json; charset=utf-8", 422, "no_such_spec"),
        (b'"' + b"x" * MAX_BODY + b'"', "application/json", 413, "too_large"),
    ],
)
def test_bodies_that_are_not_taken(
    server: Any, content: bytes, kind: str, status: int, code: str
) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = server.client.post("/runs", content=content, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_body_of_no_told_length_is_bounded_too(server: Any) -> None:
    pieces = (b" " * 65536 for _ in range(MAX_BODY // 65536 + 2))
    headers = {"Content-Type": "application/json"}
    assert server.client.post("/runs", content=pieces, headers=headers).status_code == 413


def test_headers_are_bounded(anyone: httpx.Client) -> None:
    # The answer may be lost, since the rest of the request is not read.
    with suppress(httpx.TransportError):
        assert anyone.get("/login", headers={"X-More": "x" * 200_000}).status_code == 400
    assert anyone.get("/login", headers={"X-More": "x" * 20_000}).status_code == 200


def test_every_answer_is_protected(server: Any, anyone: httpx.Client) -> None:
    for answer in (
        *(server.client.get(path) for path in ("/", "/specs", "/nothing", "/assets/view.js")),
        anyone.get("/specs"),
        anyone.get("/login"),
        server.client.get("/specs", headers={"Host": "evil.example"}),
        server.client.put("/specs"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers


def test_a_method_that_there_is_not(server: Any) -> None:
    answer = server.client.put("/runs")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "not_allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_children_of_a_run_do_not_see_the_token(serve: Any) -> None:
    spec = """\
version: 1
name: env
model:
  provider: scripted
  script:
    - tool_calls: [{name: shell, arguments: {command: "env; cat /proc/$PPID/environ | wc -c"}}]
    - {text: "{{ last.text }}"}
prompt: Go.
tools: [shell]
"""
    server = serve(specs=[])
    server.close()
    (server.folder / "env.yaml").write_text(spec, encoding="utf-8")
    server = serve("env.yaml", specs=[])
    text = server.ended(server.start("env"))["text"]
    assert "PATH=" in text
    token = server.client.headers["authorization"].removeprefix("Bearer ")
    assert token not in text


def test_under_any_address_an_address_is_a_name() -> None:
    access = Access("token", "0.0.0.0", 1)
    assert access.is_own_name("192.168.1.7:1")
    assert not access.is_own_name("evil.example:1")
