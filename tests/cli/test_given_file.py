import os
import threading
from pathlib import Path

import pytest

from runner.cli import given_file
from runner.cli.given_file import read_whole
from runner.error import UsageError


def test_what_never_ends_is_refused_at_its_limit() -> None:
    with pytest.raises(UsageError, match="/dev/zero: it has more than 2 MiB; 2 MiB are taken"):
        read_whole("/dev/zero", limit=2 << 20)


def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(UsageError, match="pipe: nobody writes to it"):
        read_whole(str(pipe), wait=0.05)


def test_a_pipe_with_a_writer_is_read_however_slow_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)

    def write() -> None:
        os.write(writer, b"slowly")
        os.close(writer)

    later = threading.Timer(0.05, write)
    later.start()
    assert read_whole(str(pipe), wait=0) == b"slowly"
    later.join()


def test_a_descriptor_is_read_as_it_is_also_where_it_is_empty() -> None:
    for said in (b"", b"said before"):
        reader, writer = os.pipe()
        os.write(writer, said)
        os.close(writer)

        assert read_whole(f"/dev/fd/{reader}") == said
        os.close(reader)


def test_nothing_is_in_the_null_device() -> None:
    assert read_whole(os.devnull) == b""


@pytest.mark.parametrize("name", ["", "nowhere", ".", "\0"])
def test_what_is_no_file_is_told(name: str) -> None:
    with pytest.raises(UsageError, match="name a file that can be read"):
        read_whole(name)


def test_stdin_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_file, "MAX_BYTES", 1 << 20)
    descriptor = os.open("/dev/zero", os.O_RDONLY)

    with pytest.raises(UsageError, match="stdin: it has more than 1 MiB"):
        given_file.read_stdin(descriptor)
    os.close(descriptor)
