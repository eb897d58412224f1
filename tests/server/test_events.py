from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest


def test_readers_at_once_each_get_every_line_of_the_log(server: Any) -> None:
    run_id = server.start("pieces")
    got: list[list[Any]] = [[] for _ in range(4)]

    def read(number: int) -> None:
        time.sleep(0.2 * number)
        got[number] += server.events(run_id)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(len(got))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = server.log(run_id)
    assert json.loads(lines[-1])["type"] == "run_end"
    for each in got:
        assert each == list(enumerate(lines))


def test_a_stream_goes_on_after_each_event_without_gap_or_double(server: Any) -> None:
    run_id = server.start("pieces")
    seen: list[Any] = []
    # While it runs: each time a few events, then the connection breaks.
    while not seen or json.loads(seen[-1][1])["type"] != "run_end":
        for count, event in enumerate(server.events(run_id, seen[-1][0] if seen else None), 1):
            seen.append(event)
            if count == 3:
                break
    lines = server.log(run_id)
    assert seen == list(enumerate(lines))
    # When it has ended: after each one there is.
    for last in range(len(lines)):
        assert list(server.events(run_id, last)) == list(enumerate(lines))[last + 1 :]


def test_a_browser_that_has_all_is_told_not_to_come_back(server: Any) -> None:
    run_id = server.start("quick", inputs={"topic": "x"})
    server.ended(run_id)
    last = str(len(server.log(run_id)) - 1)
    answer = server.client.get(f"/runs/{run_id}/events", headers={"Last-Event-ID": last})
    assert answer.status_code == 204


@pytest.mark.parametrize("last", ["", "x", "-1", "1.5", "9" * 20, "²"])
def test_an_id_that_is_none(server: Any, last: str) -> None:
    run_id = server.start("quick", inputs={"topic": "x"})
    headers = {"Last-Event-ID": last.encode()}
    answer = server.client.get(f"/runs/{run_id}/events", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_id")


def test_an_event_that_is_still_to_come(server: Any) -> None:
    run_id = server.start("slow")
    headers = {"Last-Event-ID": "100000"}
    answer = server.client.get(f"/runs/{run_id}/events", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_such_event")
    server.lead(run_id, "abort")


def test_questions_come_with_the_stream(server: Any) -> None:
    run_id = server.start("asks")
    told: list[list[Any]] = []
    with server.client.stream("GET", f"/runs/{run_id}/events") as answer:
        kind = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: ") and kind == "questions":
                told.append(json.loads(line[6:]))
                if told[-1]:
                    (asked,) = told[-1]
                    server.lead(run_id, f"questions/{asked['id']}", answer="allow")
            elif not line:
                kind = ""
    kinds = [[question["kind"] for question in each] for each in told]
    assert [each for each in kinds if each] == [["permission"], ["question"]]
    assert kinds[-1] == []


def test_a_reader_that_takes_nothing_holds_up_neither_a_run_nor_another_reader(serve: Any) -> None:
    big = """\
version: 1
name: big
model:
  provider: scripted
  script: [{text: "{{ inputs.text }}", deltas: 4000}]
inputs: {text: {type: string}}
prompt: Go.
"""
    server = serve(specs=[])
    server.close()
    (server.folder / "big.yaml").write_text(big, encoding="utf-8")
    server = serve(str(server.folder / "big.yaml"), specs=[])
    run_id = server.start("big", inputs={"text": "word " * 600_000})
    address = urlsplit(server.url)
    stalled = []
    for _ in range(20):
        one = socket.create_connection((address.hostname, address.port))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        bearer = server.client.headers["authorization"]
        request = f"GET /runs/{run_id}/events HTTP/1.1\r\nHost: {address.netloc}\r\n"
        one.sendall(f"{request}Authorization: {bearer}\r\n\r\n".encode())
        stalled.append(one)
    try:
        assert server.ended(run_id)["status"] == "ok"
        lines = server.log(run_id)
        size = sum(map(len, lines))
        assert size > 10_000_000
        # What they don't take is held for none of them.
        assert _peak(server.process.pid) < 60_000_000 + 10 * size
        assert list(server.events(run_id)) == list(enumerate(lines))
    finally:
        for one in stalled:
            one.close()
    assert server.run(run_id)["status"] == "ok"


def _peak(pid: int) -> int:
    """The most bytes of memory that a process had so far."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) * 1024


def test_the_head_of_a_stream_is_no_stream(server: Any) -> None:
    run_id = server.start("slow")
    answer = server.client.head(f"/runs/{run_id}/events")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    server.lead(run_id, "abort")
