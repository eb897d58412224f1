from __future__ import annotations

import json
import signal
import threading
from typing import Any

import httpx
import pytest


def _end(server: Any, run_id: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(server.log(run_id)[-1])
    return event


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_what_takes_too_long(serve: Any, number: int, code: int) -> None:
    server = serve("--grace", "0.2", specs=["slow"])
    ids = [server.start("slow") for _ in range(3)]
    for run_id in ids:
        server.until(run_id, lambda run: run["status"] == "running")
    got: list[Any] = []
    reader = threading.Thread(target=lambda: got.extend(server.events(ids[0])))
    reader.start()
    assert server.stop(number) == code
    reader.join()
    for run_id in ids:
        end = _end(server, run_id)
        assert (end["type"], end["status"], end["exit_code"]) == ("run_end", "aborted", code)
    assert [line for _, line in got] == server.log(ids[0])


def test_what_ends_by_itself_is_waited_for(serve: Any) -> None:
    server = serve("--grace", "20", specs=["pieces"])
    run_id = server.start("pieces")
    server.until(run_id, lambda run: run["status"] == "running")
    server.process.send_signal(signal.SIGTERM)
    server.process.stderr.readline()  # it says that it is stopping
    answer = server.client.post("/runs", json={"spec": "pieces"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
    assert int(answer.headers["retry-after"]) > 0
    assert server.process.wait(30) == 143
    assert _end(server, run_id)["status"] == "ok"


def test_a_second_signal_ends_at_once_and_the_log_can_be_resumed(serve: Any) -> None:
    server = serve("--grace", "60", specs=["slow"])
    run_id = server.start("slow")
    server.until(run_id, lambda run: run["status"] == "running")
    server.process.send_signal(signal.SIGTERM)
    server.process.stderr.readline()
    assert server.stop(signal.SIGTERM) == 143
    assert _end(server, run_id)["type"] != "run_end"
    again = serve(specs=[])
    assert again.run(run_id)["status"] == "interrupted"


def test_a_server_with_nothing_to_do_ends_at_once(serve: Any) -> None:
    server = serve("--grace", "60", specs=[])
    assert server.client.get("/runs").json() == {"runs": []}
    assert server.stop() == 143
    with pytest.raises(httpx.ConnectError):
        server.client.get("/runs")


def test_a_stalled_reader_does_not_hold_the_end(serve: Any) -> None:
    server = serve("--grace", "0", specs=["slow"])
    run_id = server.start("slow")
    with server.client.stream("GET", f"/runs/{run_id}/events"):
        assert server.stop() == 143
    assert _end(server, run_id)["status"] == "aborted"
