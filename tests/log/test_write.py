from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.error import LogError
from runner.log.place import default_path, new_run_id
from runner.log.write import LogWriter

Event = dict[str, Any]


def event(seq: int, kind: str, **fields: Any) -> Event:
    return {"seq": seq, "t": seq / 10, "type": kind, **fields}


START = event(0, "run_start", format="pi-run-log/1", run_id="a")
END = event(1, "run_end", status="ok")


def write_log(path: Path, *events: Event) -> None:
    with LogWriter.open(path) as log:
        for each in events or (START, END):
            log.write(each)


def lines(path: Path) -> list[Event]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_writes_a_line_an_event_with_its_keys_in_order(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.jsonl"
    write_log(path, START, event(1, "turn_start", turn=1, odd="\u2028\x7f\ud83dé"))
    assert path.read_bytes().split(b"\n")[1:] == [
        b'{"seq":1,"t":0.1,"type":"turn_start","turn":1,"odd":"\\u2028\\u007f\\ud83d\xc3\xa9"}',
        b"",
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "kind", ["run_start", "turn_end", "tool_execution_start", "tool_execution_end", "run_end"]
)
def test_is_on_disk_at_a_write_point(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out.jsonl"
    with LogWriter.open(path) as log:
        log.write(event(0, "message_update"))
        assert path.read_bytes() == b""
        log.write(event(1, kind))
        assert [e["type"] for e in lines(path)] == ["message_update", kind]


def test_durable_syncs_the_file_and_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(stat.S_ISDIR(os.fstat(fd).st_mode)))
    with LogWriter.open(tmp_path / "out.jsonl", durable=True) as log:
        log.write(START)
        log.write(event(1, "turn_start"))
        log.write(event(2, "turn_end"))
    assert synced == [True, False, False]


def test_what_is_buffered_is_soon_there_for_who_follows(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"

    async def run() -> bytes:
        with LogWriter.open(path) as log:
            log.write(START)
            log.write(event(1, "message_update"))
            for _ in range(500):
                await asyncio.sleep(0.01)
                if b"message_update" in path.read_bytes():
                    break
            return path.read_bytes()

    assert b"message_update" in asyncio.run(run())


def test_a_long_stream_is_not_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with LogWriter.open(path) as log:
        for seq in range(20):
            log.write(event(seq, "message_update", text="x" * 10_000))
        assert path.stat().st_size > 100_000


def test_outputs_get_the_same_text(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    out: list[str] = []
    with LogWriter.open(path, outputs=[out.append]) as log:
        log.write(START)
        log.write(event(1, "turn_start", turn=1))
        log.write(END)
    assert "".join(out).encode() == path.read_bytes()
    only: list[str] = []
    with LogWriter.open(None, outputs=[only.append]) as log:
        assert log.path is None
        log.write(START)
    assert "".join(only).count("\n") == 1


def test_frozen_writes_the_canonical_form(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    call = {"tool_name": "nap", "arguments": {}}
    with LogWriter.open(path, frozen=True) as log:
        log.write(START)
        log.write(event(1, "tool_execution_start", tool_call_id="a", **call))
        log.write(event(2, "tool_execution_start", tool_call_id="b", **call))
        log.write(event(3, "tool_execution_end", tool_call_id="b", seconds=1))
        assert [e["type"] for e in lines(path)[1:]] == ["tool_execution_start"] * 2
        log.write(event(4, "tool_execution_end", tool_call_id="a", seconds=2))
        log.write(event(5, "run_end"))
    assert [e.get("tool_call_id") for e in lines(path)] == [None, "a", "b", "a", "b", None]
    assert not any("t" in e or "seconds" in e or "run_id" in e for e in lines(path))


def test_frozen_lets_go_of_what_a_broken_run_left_open(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with LogWriter.open(path, frozen=True) as log:
        for n, call in enumerate("ab"):
            log.write(event(n, "tool_execution_start", tool_call_id=call, tool_name="x"))
        log.write(event(2, "tool_execution_end", tool_call_id="b"))
    assert [e["seq"] for e in lines(path)] == [0, 1, 2]


def test_a_finished_log_is_replaced_once_the_new_run_begins(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_log(path)
    before = path.read_bytes()
    with LogWriter.open(path):
        pass
    with LogWriter.open(path) as log:
        assert path.read_bytes() == before
        log.write(event(0, "run_start", run_id="new"))
        assert [e["run_id"] for e in lines(path)] == ["new"]


def test_a_finished_log_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_log(path)
    with pytest.raises(LogError, match=r"out\.jsonl: holds a finished run"):
        LogWriter.open(path, replace_finished=False)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "pi-run resume"),
        (b'{"seq":0,"type":"run_start","format":"pi-run-log/1"}\n{"seq":1,"ty', "pi-run resume"),
        (b'{"seq":0,"type":"run_start","format":"pi-run-log/1"}\n\xff\n\xff\n', "pi-run resume"),
        (b"my letters\n", "is no log"),
        (b'{"my": "letters"}\n', "is no log"),
        (b'{"type": "run_start"}\n', "is no log"),
        (b"{" * 70_000, "is no log"),
        (b"\0", "is no log"),
    ],
)
def test_what_is_no_finished_log_is_left_as_it_is(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    path = tmp_path / "out.jsonl"
    if content is None:
        write_log(path, START, event(1, "turn_start"))
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(LogError, match=says) as caught:
        LogWriter.open(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_an_empty_file_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.touch()
    write_log(path)
    assert len(lines(path)) == 2


def test_a_log_that_was_never_begun_leaves_no_file(tmp_path: Path) -> None:
    LogWriter.open(tmp_path / "out.jsonl").close()
    assert not list(tmp_path.iterdir())


def test_there_is_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with LogWriter.open(path) as log:
        for attempt in (LogWriter.open, LogWriter.resume):
            with pytest.raises(LogError, match=r"out\.jsonl: another run"):
                attempt(path)
        log.write(START)
        with pytest.raises(LogError, match="another run"):
            LogWriter.open(path)
    code = f"""
from runner.log.write import LogWriter
log = LogWriter.resume({str(path)!r})
print("held", flush=True)
input()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    with pytest.raises(LogError, match="another run"):
        LogWriter.resume(path)
    other.communicate(b"\n")
    LogWriter.resume(path).close()


def test_resume_goes_on_after_the_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    write_log(path, START, event(1, "turn_start"))
    whole = path.read_bytes()
    for tail in (b"", b'{"seq":2,"t', b"\0\0\0", b'{"seq":2,"t\n'):
        path.write_bytes(whole + tail)
        LogWriter.resume(path).close()
        assert path.read_bytes() == whole + tail
        with LogWriter.resume(path) as log:
            log.write(event(2, "run_resume"))
        assert [e["type"] for e in lines(path)] == ["run_start", "turn_start", "run_resume"]


@pytest.mark.parametrize("content", [b"", b"letters\n", b'{"type":"run_start"}\n'])
def test_resume_refuses_what_is_no_log(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(content)
    with pytest.raises(LogError, match="is no log"):
        LogWriter.resume(path)
    with pytest.raises(LogError, match="No such file"):
        LogWriter.resume(tmp_path / "none.jsonl")


def test_a_path_that_cant_be_opened_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LogError, match=r"file/out\.jsonl: .*is a file, not a folder"):
        LogWriter.open(tmp_path / "file" / "out.jsonl")
    with pytest.raises(LogError, match="Is a directory"):
        LogWriter.open(tmp_path)
    with pytest.raises(LogError, match="File name too long"):
        LogWriter.open(tmp_path / ("x" * 300))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(LogError, match="Permission denied"):
        LogWriter.open(tmp_path / "out.jsonl")


def test_a_log_that_is_deleted_meanwhile_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    log = LogWriter.open(path)
    log.write(START)
    path.unlink()
    with pytest.raises(LogError, match=r"out\.jsonl: can't be written: it was deleted"):
        log.write(event(1, "turn_end"))
    with pytest.raises(LogError, match="deleted"):
        log.write(event(2, "message_update"))
    log.close()


FULL = """
import resource, signal, sys
from runner.error import LogError
from runner.log.write import LogWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
out = []
log = LogWriter.open(sys.argv[1], outputs=[out.append])
log.write({"seq": 0, "type": "run_start", "format": "pi-run-log/1"})
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
log.write({"seq": 1, "type": "turn_start", "text": "x" * 100})
for attempt in range(2):
    try:
        log.write({"seq": 2 + attempt, "type": "turn_end", "text": "y" * 2000})
    except LogError as error:
        print(error)
log.close()
print("".join(out).count("\\n"))
"""


def test_a_full_disk_is_an_error_and_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    says = f"{path}: can't be written: {os.strerror(errno.EFBIG)}"
    assert done.stdout.splitlines() == [says, says, "4"]
    assert [e["seq"] for e in lines(path)] == [0, 1]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_a_failure_that_no_one_heard_of_is_told_at_the_close(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    log = LogWriter.open(path)
    log.write(START)
    log.write(event(1, "turn_start"))
    path.unlink()
    with pytest.raises(LogError, match="deleted"):
        log.close()
    log.close()


def test_what_is_no_json_is_an_error_with_its_type(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (float("nan"), {1}, deep):
        with LogWriter.open(tmp_path / "out.jsonl") as log:
            log.write(START)
            with pytest.raises(LogError, match=r"out\.jsonl: a turn_end event can't be written"):
                log.write(event(1, "turn_end", value=value))
        (tmp_path / "out.jsonl").unlink()


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_log(path)
    assert os.read(reader, 10_000).count(b"\n") == 2
    os.close(reader)
    write_log(Path("/dev/null"))


def test_the_default_folder_keeps_itself_out_of_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = default_path("triage", "0abc")
    assert str(path) == ".pi-run/logs/triage-0abc.jsonl"
    write_log(path)
    assert Path(".pi-run/.gitignore").read_text(encoding="utf-8") == "*\n"
    Path(".pi-run/.gitignore").write_text("mine", encoding="utf-8")
    write_log(path)
    assert Path(".pi-run/.gitignore").read_text(encoding="utf-8") == "mine"


def test_run_ids_sort_by_time() -> None:
    times = [0, 1_700_000_000_000_000_000, 1_700_000_000_000_200_000, 9_000_000_000_000_000_000]
    ids = [new_run_id(time) for time in times]
    assert ids == sorted(ids)
    assert all(len(i) == 12 and i.isalnum() and i.islower() | i.isdigit() for i in ids)
    assert len({new_run_id(5) for _ in range(50)}) > 1
