"""Recorded logs beside specs: written, replayed, renewed, and never in a CI."""

import http.server
import json
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

COMMAND = str(Path(sysconfig.get_path("scripts")) / "pi-run")
Write = Callable[..., None]

WELL = "expect: [{contains: well}]\n"
ANSWER = {
    "id": "1",
    "object": "chat.completion.chunk",
    "choices": [{"index": 0, "delta": {"content": "all is well"}, "finish_reason": "stop"}],
}


def lines_of(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_record_writes_a_log_where_there_is_none(pytester: pytest.Pytester, write: Write) -> None:
    write(quiet="", good=WELL)
    first = pytester.runpytest("--record", "-v")

    first.assert_outcomes(passed=2)
    first.stdout.fnmatch_lines(["good.yaml::record PASSED*", "quiet.yaml::record PASSED*"])
    logs = {log.stem: log.read_bytes() for log in pytester.path.glob("*.jsonl")}
    assert sorted(logs) == ["good", "quiet"]
    start, *_, end = lines_of(pytester.path / "good.jsonl")
    assert (start["type"], end["type"]) == ("run_start", "run_end")
    assert not start.keys() & {"t", "run_id", "started_at"}
    again = pytester.runpytest("--record", "-v")
    again.stdout.fnmatch_lines(["good.yaml::replay PASSED*", "quiet.yaml::replay PASSED*"])
    assert {log.stem: log.read_bytes() for log in pytester.path.glob("*.jsonl")} == logs
    assert not [path for path in pytester.path.iterdir() if path.name.startswith(".good")]


def test_a_log_is_replayed_against_the_spec_as_it_is(
    pytester: pytest.Pytester, write: Write
) -> None:
    write(a=WELL)
    pytester.runpytest("--record").assert_outcomes(passed=1)
    spec = pytester.path / "a.yaml"
    spec.write_text(spec.read_text("utf-8").replace("How are you", "Are you well"), "utf-8")
    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "_* a.yaml: replay _*",
            "E   differs at seq 4, turn 1: message_start.message.content[[]0[]].text",
            'E     recorded: "How are you?"',
            'E     new:      "Are you well?"',
            "E     likely cause: a message was changed, or a template",
            "",
            "a.jsonl:5: not as recorded",
            "",
            "where this is meant, renew the log: *",
            "FAILED a.yaml::replay - not as recorded: differs at seq 4*",
        ]
    )


def test_a_replay_holds_expectations(pytester: pytest.Pytester, write: Write) -> None:
    write(a="")
    pytester.runpytest("--record").assert_outcomes(passed=1)
    log = pytester.path / "a.jsonl"
    # As `pi-run a.yaml --frozen --log a.jsonl` keeps it, though what it expects was not met.
    write(a="expect:\n  - contains: well\n  - contains: bad\n")
    log.unlink()
    pytester.run(COMMAND, "a.yaml", "--frozen", "--log", "a.jsonl")
    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">   - contains: bad",
            "E   contains: 'bad' is not in 'all is well'",
            "a.yaml:6: expectation not met",
        ]
    )


def test_a_recorded_failure_is_replayed_as_that(pytester: pytest.Pytester, write: Write) -> None:
    write(short="follow_ups: {messages: [{text: more}]}\nlimits: {turns: 1}\n")
    pytester.run(COMMAND, "short.yaml", "--frozen", "--log", "short.jsonl")
    log = (pytester.path / "short.jsonl").read_bytes()

    assert lines_of(pytester.path / "short.jsonl")[-1]["status"] == "limit"
    pytester.runpytest().assert_outcomes(passed=1)
    pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)
    assert (pytester.path / "short.jsonl").read_bytes() == log


def test_a_run_that_fails_is_not_recorded(pytester: pytest.Pytester, write: Write) -> None:
    write(bad="expect: [{contains: bad}]\n")
    write(short="follow_ups: {messages: [{text: more}]}\n")

    pytester.runpytest("--record").assert_outcomes(failed=2)
    assert list(pytester.path.glob("*.jsonl")) == []


def test_a_run_that_is_never_the_same_is_not_recorded(
    pytester: pytest.Pytester, write: Write
) -> None:
    write(a="system_prompt: 'You are {{ run.id }}.'\n")
    result = pytester.runpytest("--record")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E   it is not the same each time; see pi-run doctor a.yaml"])
    assert list(pytester.path.glob("*.jsonl")) == []


def test_snapshot_update_renews(pytester: pytest.Pytester, write: Write) -> None:
    write(a=WELL, none=WELL)
    pytester.runpytest("--record", "a.yaml").assert_outcomes(passed=1)
    write("still well", a=WELL)

    pytester.runpytest("--snapshot-update").assert_outcomes(passed=2)
    assert lines_of(pytester.path / "a.jsonl")[-1]["text"] == "still well"
    assert not (pytester.path / "none.jsonl").exists()


def test_a_log_is_renewed_as_it_was_recorded(pytester: pytest.Pytester, write: Write) -> None:
    write("'{{ inputs.who }}'", a="inputs: {who: {type: string}}\n")
    options = ("-i", "who=me", "--prompt", "Who?", "--set", "limits.turns=3")
    pytester.run(COMMAND, "a.yaml", *options, "--frozen", "--log", "a.jsonl")
    log = (pytester.path / "a.jsonl").read_bytes()

    pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)
    assert (pytester.path / "a.jsonl").read_bytes() == log


def test_what_cant_be_renewed_keeps_its_log(pytester: pytest.Pytester, write: Write) -> None:
    write(a=WELL)
    pytester.runpytest("--record").assert_outcomes(passed=1)
    log = (pytester.path / "a.jsonl").read_bytes()
    write("all is bad", a=WELL)

    pytester.runpytest("--snapshot-update").assert_outcomes(failed=1)
    assert (pytester.path / "a.jsonl").read_bytes() == log


def test_nothing_is_written_while_ci_is_set(
    pytester: pytest.Pytester, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(a=WELL)
    pytester.runpytest("--record").assert_outcomes(passed=1)
    log = (pytester.path / "a.jsonl").read_bytes()
    write("still well", a=WELL, b=WELL)
    monkeypatch.setenv("CI", "true")
    result = pytester.runpytest_subprocess("--record", "--snapshot-update", "-v")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["a.yaml::replay PASSED*", "E   there is no b.jsonl, and nothing is recorded while CI*"]
    )
    assert (pytester.path / "a.jsonl").read_bytes() == log
    assert not (pytester.path / "b.jsonl").exists()
    pytester.runpytest().assert_outcomes(passed=2)


@pytest.mark.parametrize("text", ["", '{"seq":0,"type":"run_sta', "<<<<<<< HEAD\n"])
def test_a_broken_log_fails(pytester: pytest.Pytester, write: Write, text: str) -> None:
    write(a=WELL)
    (pytester.path / "a.jsonl").write_text(text, encoding="utf-8")

    for options in ([], ["--record"], ["--snapshot-update"]):
        result = pytester.runpytest(*options)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["E   a.jsonl: line 1: *"])
        assert (pytester.path / "a.jsonl").read_text("utf-8") == text


def test_a_log_that_breaks_off_fails_until_it_is_renewed(
    pytester: pytest.Pytester, write: Write
) -> None:
    write(a=WELL)
    pytester.runpytest("--record").assert_outcomes(passed=1)
    log = pytester.path / "a.jsonl"
    whole = log.read_bytes()
    log.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))

    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["E   the log breaks off before its run ended"])
    pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)
    assert log.read_bytes() == whole


def test_data_of_that_name_is_no_log(pytester: pytest.Pytester, write: Write) -> None:
    write(a=WELL)
    (pytester.path / "a.jsonl").write_text('{"issue": "It crashes."}\n', encoding="utf-8")

    pytester.runpytest().assert_outcomes(passed=1)
    result = pytester.runpytest("--record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E   a.jsonl is no log of pi-run, so it is left as it is"])
    assert (pytester.path / "a.jsonl").read_text("utf-8") == '{"issue": "It crashes."}\n'


def test_parts_of_others_are_not_recorded(pytester: pytest.Pytester, write: Write) -> None:
    write(base="")
    (pytester.path / "over.yaml").write_text("extends: base.yaml\nprompt: a\n", encoding="utf-8")

    pytester.runpytest("--record").assert_outcomes(passed=1, deselected=1)
    assert [log.name for log in pytester.path.glob("*.jsonl")] == ["over.jsonl"]


@pytest.mark.slow
def test_logs_are_recorded_under_xdist(pytester: pytest.Pytester, write: Write) -> None:
    write(**{f"spec{n}": WELL for n in range(4)})

    pytester.runpytest_subprocess("-n", "2", "--record").assert_outcomes(passed=4)
    assert len(list(pytester.path.glob("*.jsonl"))) == 4


@pytest.fixture
def requests() -> Iterator[tuple[str, list[str]]]:
    """The address of a model's server, and the requests that it got."""
    got: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            got.append(self.path)
            body = f"data: {json.dumps(ANSWER)}\n\ndata: [DONE]\n\n".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", got
        server.shutdown()


def test_a_real_model_is_asked_no_more_than_is_needed(
    pytester: pytest.Pytester, requests: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, got = requests
    spec = pytester.path / "a.yaml"
    model = f"model: {{provider: openai, id: a, base_url: '{url}', api_key: {{env: THE_KEY}}}}\n"
    spec.write_text(f"{model}prompt: a\n{WELL}", encoding="utf-8")
    monkeypatch.setenv("THE_KEY", "a-key-of-mine")
    pytester.runpytest("--record").assert_outcomes(passed=1)
    assert len(got) == 1
    monkeypatch.delenv("THE_KEY")

    pytester.runpytest().assert_outcomes(passed=1)
    pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)
    assert len(got) == 1
    monkeypatch.setenv("THE_KEY", "a-key-of-mine")
    spec.write_text(f"{model}prompt: b\n{WELL}", encoding="utf-8")
    pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)
    assert len(got) == 2
    assert "a-key-of-mine" not in (pytester.path / "a.jsonl").read_text("utf-8")
