"""HTTP requests as tools of a spec, and the built-in ``fetch``, against a server of our own."""

import base64
import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runner import run_spec
from runner.api import RunOptions, check
from runner.api.replay import replay

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


class Server(ThreadingHTTPServer):
    """Tells what it was asked; some paths answer otherwise."""

    seen: list[dict[str, Any]]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        seen = {
            "method": self.command,
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": self.rfile.read(length).decode(),
        }
        self.server.seen.append(seen)
        name = self.path.split("?")[0]
        if name.startswith("/to/"):
            self.say(int(name.split("/")[2]), b"", Location=self.path.split("?", 1)[1])
        elif name == "/png":
            self.say(200, PNG, **{"Content-Type": "image/png"})
        elif name == "/page":
            self.say(200, b"<title>T</title><p>one<p>two", **{"Content-Type": "text/html"})
        elif name == "/bomb":
            self.say(200, gzip.compress(bytes(100_000_000)), **{"Content-Encoding": "gzip"})
        elif name == "/binary":
            self.say(200, b"\0\1\2", **{"Content-Type": "application/octet-stream"})
        elif name == "/missing":
            self.say(404, b"no such thing " + b"x" * 5000, **{"Content-Type": "text/plain"})
        else:
            said = json.dumps(seen).encode()
            self.say(200, said, **{"Content-Type": "application/json"})

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = answer  # noqa: N815

    def say(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            try:
                self.wfile.write(body)
            except OSError:  # it has seen enough
                self.close_connection = True


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.seen = []
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs one tool once for each arguments; gives the messages with the results."""

    def made(
        tool: Any, *calls: dict[str, Any], environ: dict[str, str] | None = None, **more: Any
    ) -> list[dict[str, Any]]:
        path, log = tmp_path / "spec.yaml", tmp_path / "log.jsonl"
        name = tool.get("name") or tool["use"]
        script = [{"tool_calls": [{"name": name, "arguments": each}]} for each in calls]
        spec = {
            "version": 1,
            "model": {"provider": "scripted", "script": [*script, {"text": "done"}]},
            "prompt": "Hello",
            "tools": [tool],
            **more,
        }
        path.write_text(json.dumps(spec), "utf-8")
        events: list[dict[str, Any]] = []
        log.unlink(missing_ok=True)
        options = RunOptions(log=str(log), environ=environ or {})
        result = run_spec(path, on_event=events.append, options=options)
        assert result.status == "ok", result.error
        assert replay(log).difference is None
        ends = [event["message"] for event in events if event["type"] == "message_end"]
        return [message for message in ends if message["role"] == "tool_result"]

    return made


def text_of(message: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in message["content"])


def weather(server: Server, **http: Any) -> dict[str, Any]:
    url = f"{server.base}/w/{{{{ args.city | urlencode }}}}/now"
    properties = {"city": {"type": "string"}, "more": {}}
    return {
        "name": "weather",
        "description": "Today's weather.",
        "parameters": {"type": "object", "properties": properties},
        "http": {"url": url, **http},
    }


def test_arguments_fill_in_a_request(run: Run, server: Server) -> None:
    tool = weather(
        server,
        method="POST",
        query={
            "units": "{{ args.more.units }}",
            "no": "{{ args.no | default(none) }}",
            "n": [1, 2],
        },
        headers={"X-City": "{{ args.city }}"},
        json={"city": "{{ args.city }}", "days": "{{ args.more.days }}", "plain": True},
    )
    (result,) = run(tool, {"city": "Köln/Deutz", "more": {"units": "a&b", "days": 3}} | {})
    assert result["is_error"]  # a header takes no ü
    (result,) = run(tool, {"city": "Ulm", "more": {"units": "a&b", "days": 3}})
    (seen,) = server.seen
    assert json.loads(text_of(result)) == seen
    assert result["details"]["status"] == 200
    assert seen["path"] == "/w/Ulm/now?units=a%26b&n=1&n=2"
    assert seen["headers"]["x-city"] == "Ulm"
    assert seen["headers"]["content-type"] == "application/json"
    assert json.loads(seen["body"]) == {"city": "Ulm", "days": 3, "plain": True}


@pytest.mark.parametrize(
    ("city", "path"),
    [
        ("a/../../admin", "/w/a%2F..%2F..%2Fadmin/now"),
        ("x?y=1#z", "/w/x%3Fy%3D1%23z/now"),
        ("@127.0.0.1:1", "/w/%40127.0.0.1%3A1/now"),
        ("a\r\nX-Bad: 1", "/w/a%0D%0AX-Bad%3A%201/now"),
        ("\\..\\", "/w/%5C..%5C/now"),
        ("%2e%2e", "/w/%252e%252e/now"),
        ("", "/w//now"),
        ("..", None),
        (".", None),
    ],
)
def test_an_argument_stays_in_its_place(
    run: Run, server: Server, city: str, path: str | None
) -> None:
    (result,) = run(weather(server), {"city": city})
    assert result["is_error"] == (path is None)
    assert [seen["path"] for seen in server.seen] == ([path] if path else [])


@pytest.mark.parametrize("value", ["a\r\nX-Bad: 1", "a\nb", "ü", " a", "a\0b"])
def test_no_argument_makes_a_header(run: Run, server: Server, value: str) -> None:
    (result,) = run(weather(server, headers={"X-City": "{{ args.city }}"}), {"city": value})
    assert result["is_error"]
    assert not server.seen


@pytest.mark.parametrize(
    "url",
    [
        "http://{{ args.host }}/",
        "http://a.example{{ args.path }}",
        "{{ args.url }}",
        "file:///{{ args.path }}",
        "{% if inputs %}http://a.example/{{ args.x }}{% endif %}",
        "a.example/x",
    ],
)
def test_no_argument_says_where_it_leads(tmp_path: Path, url: str) -> None:
    tool = {"name": "x", "description": "x", "http": {"url": url}}
    model = {"provider": "scripted", "script": []}
    spec = {"version": 1, "model": model, "prompt": "x", "tools": [tool]}
    (tmp_path / "spec.yaml").write_text(json.dumps(spec), "utf-8")
    faults = [fault for fault in check(str(tmp_path / "spec.yaml")) if not fault.warning]
    assert [fault.path for fault in faults] == ["tools[0].http.url"]


def test_secrets_reach_the_server_alone(run: Run, server: Server, tmp_path: Path) -> None:
    key = tmp_path / "key.txt"
    key.write_text("from-a-file\n", "utf-8")
    headers = {
        "Authorization": {"env": "TOKEN", "prefix": "Bearer "},
        "X-File": {"file": "key.txt"},
        "X-Command": {"command": ["printf", "from-%s-command", "a"]},
    }
    results = run(weather(server, headers=headers), {"city": "a"}, environ={"TOKEN": "t0ken-t0ken"})
    (seen,) = server.seen
    assert seen["headers"]["authorization"] == "Bearer t0ken-t0ken"
    assert seen["headers"]["x-file"] == "from-a-file"
    assert seen["headers"]["x-command"] == "from-a-command"
    said = (tmp_path / "log.jsonl").read_text("utf-8") + json.dumps(results)
    assert "[secret:TOKEN]" in said
    assert not any(each in said for each in ("t0ken", "from-a-file", "from-a-command"))


def test_a_secret_that_is_not_there_is_found_before_the_run(server: Server, tmp_path: Path) -> None:
    from runner.error import SpecError

    tool = weather(server, headers={"X": {"env": "NOT_SET_ANYWHERE"}})
    spec = {
        "version": 1,
        "model": {"provider": "scripted", "script": [{"text": "x"}]},
        "prompt": "x",
        "tools": [tool],
    }
    (tmp_path / "spec.yaml").write_text(json.dumps(spec), "utf-8")
    with pytest.raises(SpecError, match="NOT_SET_ANYWHERE is not set"):
        run_spec(tmp_path / "spec.yaml", options=RunOptions(log="none", environ={}))


def url_tool(server: Server, **http: Any) -> dict[str, Any]:
    tool = weather(server, **http)
    tool["http"]["url"] = f"{server.base}/{{{{ args.city }}}}"
    return tool


def test_answers_are_read_by_their_kind(run: Run, server: Server) -> None:
    png, page, missing, binary, bomb = run(
        url_tool(server, max_bytes=100_000),
        *({"city": each} for each in ("png", "page", "missing", "binary", "bomb")),
    )
    (image,) = png["content"]
    assert (image["type"], image["mime_type"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]) == PNG
    assert text_of(page) == "T\n\none\ntwo"
    assert missing["is_error"]
    assert text_of(missing).startswith("HTTP 404 Not Found\nno such thing")
    assert len(text_of(missing)) < 2100
    assert missing["details"]["status"] == 404
    assert binary["is_error"]
    assert "neither text nor an image" in text_of(binary)
    assert bomb["is_error"]
    assert "100000 bytes" in text_of(bomb)


def test_redirects_stay_with_the_host(run: Run, server: Server) -> None:
    def tool(target: str, status: int = 302) -> dict[str, Any]:
        made = weather(server, headers={"Authorization": "secret"}, method="POST", body="data")
        made["http"]["url"] = f"{server.base}/to/{status}?{target}"
        return made

    (result,) = run(tool("/there"), {})
    first, then = server.seen
    assert (first["method"], then["method"], then["path"]) == ("POST", "GET", "/there")
    assert then["headers"]["authorization"] == "secret"
    server.seen.clear()
    run(tool("/there", 307), {})
    assert [seen["body"] for seen in server.seen] == ["data", "data"]
    server.seen.clear()
    for target in (f"http://localhost:{server.server_port}/x", "http://127.0.0.1:1/x", "//h.test/"):
        (result,) = run(tool(target), {})
        assert result["is_error"]
        assert "another host" in text_of(result)
    assert len(server.seen) == 3
    (result,) = run(tool("/to/302?/to/302?/to/302?/to/302?/to/302?/to/302?/x"), {})
    assert "redirects more than 5 times" in text_of(result)


def test_what_a_tool_says_of_itself(tmp_path: Path, server: Server) -> None:
    from runner.api.prepared import prepare

    tools = [
        {**weather(server), "name": "get"},
        {**weather(server, method="POST"), "name": "post", "timeout": 5},
        {**weather(server, method="PUT"), "name": "put", "idempotent": True},
    ]
    model = {"provider": "scripted", "script": []}
    spec = {"version": 1, "model": model, "prompt": "x", "tools": tools}
    (tmp_path / "spec.yaml").write_text(json.dumps(spec), "utf-8")
    plan = prepare(str(tmp_path / "spec.yaml"), RunOptions(log="none")).plan
    assert [tool.idempotent for tool in plan.options.tools] == [True, False, True]
    assert [tool.timeout for tool in plan.options.tools] == [60, 5, 60]


# --- fetch ----------------------------------------------------------------------------------------


def test_fetch_keeps_away_from_this_machine(run: Run, server: Server) -> None:
    port = server.server_port
    urls = [
        f"{server.base}/x",
        f"http://localhost:{port}/x",
        f"http://LOCALHOST.:{port}/x",
        f"http://2130706433:{port}/x",
        f"http://0x7f.0.0.1:{port}/x",
        f"http://0177.0.0.1:{port}/x",
        f"http://127.1:{port}/x",
        f"http://[::ffff:127.0.0.1]:{port}/x",
        f"http://[::1]:{port}/x",
        f"http://0:{port}/x",
        "http://169.254.169.254/latest/meta-data/",
        f"http://a.example@127.0.0.1:{port}/x",
        f"http://127.0.0.1:{port}\\@a.example/x",
        f"http://①②⑦.0.0.1:{port}/x",
        "file:///etc/passwd",
        "ftp://a.example/",
        "gopher://127.0.0.1:1/",
        "//a.example/",
        "http://",
        "http:///x",
        "x" * 9000,
    ]
    results = run({"use": "fetch"}, *({"url": url} for url in urls))
    assert [result["is_error"] for result in results] == [True] * len(urls)
    assert not server.seen


def test_fetch_may_be_let_in(run: Run, server: Server) -> None:
    call = {"url": f"http://localhost:{server.server_port}/x"}
    for options in ({"allow_private": True}, {"allow_hosts": ["localhost"]}):
        (result,) = run({"use": "fetch", **options}, call)
        assert json.loads(text_of(result))["path"] == "/x"
    other = {"url": f"http://127.0.0.1:{server.server_port}/x"}
    (result,) = run({"use": "fetch", "allow_hosts": ["localhost"]}, other)
    assert result["is_error"]


def test_fetch_looks_at_each_redirect(run: Run, server: Server) -> None:
    port = server.server_port
    tool = {"use": "fetch", "allow_hosts": [f"127.0.0.1:{port}"]}
    targets = [f"http://localhost:{port}/x", "http://[::1]/x", "file:///etc/passwd", "//0x7f.1/"]
    urls = [f"{server.base}/to/302?{target}" for target in targets]
    for result in run(tool, *({"url": url} for url in urls)):
        assert result["is_error"]
    assert len(server.seen) == len(urls)


def test_a_name_is_asked_for_once(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads elsewhere the second time gets no second time."""
    answers = [("127.0.0.1", server.server_port), ("10.0.0.1", 80)]
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: Any, *args: Any, **more: Any) -> Any:
        if host == "rebind.test":
            asked.append(host)
            return [(2, 1, 6, "", answers[len(asked) - 1])]
        return real(host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    tool = {"use": "fetch", "allow_hosts": ["rebind.test"]}
    (result,) = run(tool, {"url": f"http://rebind.test:{server.server_port}/x"})
    assert not result["is_error"]
    assert asked == ["rebind.test"]
    assert server.seen[0]["headers"]["host"] == f"rebind.test:{server.server_port}"


def test_fetch_takes_nothing_from_the_environment(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    (result,) = run({"use": "fetch", "allow_private": True}, {"url": f"{server.base}/x"})
    assert not result["is_error"]


def test_fetch_sends_and_bounds_what_comes_back(run: Run, server: Server) -> None:
    tool = {"use": "fetch", "allow_private": True}
    headers = {"Content-Type": "text/plain", "Host": "other.test"}
    posted, hosted, bomb, body = run(
        tool,
        {"url": server.base, "method": "POST", "body": "x=1", "headers": {"Accept": "text/plain"}},
        {"url": server.base, "headers": headers},
        {"url": f"{server.base}/bomb"},
        {"url": server.base, "body": "x"},
    )
    seen = json.loads(text_of(posted))
    assert (seen["method"], seen["body"], seen["headers"]["accept"]) == (
        "POST",
        "x=1",
        "text/plain",
    )
    assert hosted["is_error"]
    assert bomb["is_error"]
    assert body["is_error"]


def test_with_permissions_a_redirect_elsewhere_is_asked_for_anew(run: Run, server: Server) -> None:
    tool = {"use": "fetch", "allow_private": True}
    url = f"{server.base}/to/302?http://localhost:{server.server_port}/x"
    (result,) = run(tool, {"url": url}, permissions={"allow": [f"fetch({server.base}/*)"]})
    assert result["is_error"]
    assert "which was not followed: http://localhost" in text_of(result)
    (result,) = run(tool, {"url": url})
    assert not result["is_error"]
