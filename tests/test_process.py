import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.error import RunError
from runner.guardian import GUARDIAN, NAME
from runner.process import (
    Child,
    Finished,
    StartError,
    environment_of,
    program_path,
    run,
)

ENV = {"PATH": os.environ["PATH"]}


def finish(argv: Sequence[str], cwd: Path = Path("/"), **options: Any) -> Finished:
    return asyncio.run(run(argv, cwd=cwd, env=options.pop("env", ENV), **options))


def shell(script: str, cwd: Path = Path("/"), **options: Any) -> Finished:
    return finish(["sh", "-c", script], cwd, **options)


def reason(argv: Sequence[str], cwd: Path = Path("/"), env: Mapping[str, str] = ENV) -> str:
    with pytest.raises(StartError) as raised:
        finish(argv, cwd, env=env)
    assert isinstance(raised.value, RunError)
    return str(raised.value)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def all_gone(pids: Path) -> bool:
    """Whether no process of these is left; one that was killed may take a moment to go."""
    numbers = [int(n) for n in pids.read_text(encoding="utf-8").split()]
    assert numbers
    for _ in range(300):
        if not any(map(is_alive, numbers)):
            return True
        time.sleep(0.01)
    return False


def is_written(path: Path) -> bool:
    return path.exists() and path.read_text(encoding="utf-8").endswith("\n")


async def until(path: Path) -> None:
    while not is_written(path):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


@pytest.fixture(params=["pidfd", "thread"])
def watcher(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def none(pid: int) -> int:
        raise OSError

    if request.param == "thread":
        monkeypatch.setattr(os, "pidfd_open", none)
    return str(request.param)


@pytest.mark.usefixtures("watcher")
def test_what_a_program_says_and_how_it_ends() -> None:
    done = shell("echo out; echo err >&2; exit 7")
    assert done == Finished(7, "out\n", "err\n", 0, timed_out=False)
    assert shell("kill -9 $$").exit_code == -9


def test_arguments_are_never_split_and_no_shell_reads_them(tmp_path: Path) -> None:
    text = "a 'b' \"c\"; touch made.txt $(touch made.txt)\n*"
    assert finish(["printf", "[%s]", text, ""], tmp_path).stdout == f"[{text}][]"
    assert list(tmp_path.iterdir()) == []


def test_a_program_has_the_folder_and_the_environment_that_it_is_given(tmp_path: Path) -> None:
    done = finish(["env"], tmp_path, env={"A": "ä", "PATH": ENV["PATH"]})
    marked = {f"{name}={value}" for name, value in GUARDIAN.mark().items()}
    told = set(done.stdout.splitlines()) - {"_=/usr/bin/env"}
    assert told == {"A=ä", f"PATH={ENV['PATH']}"} | marked
    assert finish(["pwd"], tmp_path).stdout == f"{tmp_path.resolve()}\n"


def test_stdin_is_what_is_given_or_empty() -> None:
    assert finish(["cat"]).stdout == ""
    assert finish(["cat"], stdin=b"a\nb").stdout == "a\nb"
    megabytes = b"x" * (3 << 20)
    assert finish(["wc", "-c"], stdin=megabytes).stdout.strip() == str(len(megabytes))
    assert shell("exec <&-; echo no", stdin=megabytes).stdout == "no\n"
    assert finish(["true"], stdin=megabytes).exit_code == 0


def test_text_is_utf8_and_what_is_not_is_replaced() -> None:
    assert finish(["printf", "%s", "Größe ☃ 😀"]).stdout == "Größe ☃ 😀"
    assert finish(["printf", r"a\377b"]).stdout == "a\ufffdb"
    assert finish(["printf", "%s", "a\ud83db"]).stdout == "a\ufffdb"


def test_text_is_utf8_in_the_c_locale() -> None:
    code = (
        "import asyncio, pathlib, sys; from runner.process import run;"
        "done = asyncio.run(run(['sh', '-c', 'printf %s \"$1 $X\"', '-', '\\u2603'],"
        "  cwd=pathlib.Path('/'), env={'PATH': '/usr/bin:/bin', 'X': '\\xe4'}));"
        "sys.stdout.buffer.write(done.stdout.encode())"
    )
    env = {"PATH": ENV["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = finish([sys.executable, "-W", "error", "-c", code], env=env)
    assert done.stdout == "☃ ä", done.stderr


@pytest.mark.usefixtures("watcher")
def test_the_time_is_bounded_and_what_was_said_is_kept(tmp_path: Path) -> None:
    done = shell("echo first words; sleep 60 & echo $! $$ > p; wait", tmp_path, time_limit=0.3)
    assert (done.stdout, done.timed_out, done.exit_code) == ("first words\n", True, -15)
    assert all_gone(tmp_path / "p")


def test_one_that_ignores_the_request_to_end_is_made_to(tmp_path: Path) -> None:
    script = "trap '' TERM; echo $$ > p; while :; do sleep 60; done"
    done = shell(script, tmp_path, time_limit=0.2)
    assert (done.timed_out, done.exit_code) == (True, -9)
    assert all_gone(tmp_path / "p")


@pytest.mark.usefixtures("watcher")
def test_what_runs_in_the_background_ends_with_it(tmp_path: Path) -> None:
    done = shell("sleep 60 & echo $! > p; echo done", tmp_path)
    assert (done.stdout, done.exit_code) == ("done\n", 0)
    assert all_gone(tmp_path / "p")


def test_a_deaf_one_in_the_background_ends_too(tmp_path: Path) -> None:
    script = "(trap '' TERM; sleep 60; sleep 60) & echo $! > p"
    assert shell(script, tmp_path).exit_code == 0
    assert all_gone(tmp_path / "p")


def test_one_that_leaves_the_group_with_the_pipe_does_not_hang_the_reader(tmp_path: Path) -> None:
    done = shell("setsid sh -c 'echo $$ > p; sleep 4' & sleep 0.2; echo here", tmp_path)
    assert done.stdout == "here\n"
    pid = int((tmp_path / "p").read_text(encoding="utf-8"))
    assert is_alive(pid)
    os.killpg(pid, 9)


@pytest.mark.usefixtures("watcher")
def test_at_a_cancellation_the_group_is_gone_and_what_was_said_is_there(tmp_path: Path) -> None:
    async def main() -> Child:
        script = "echo so far; sleep 60 & echo $! $$ > p; wait"
        child = Child(["sh", "-c", script], cwd=tmp_path, env=ENV)
        task = asyncio.create_task(child.run())
        await until(tmp_path / "p")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return child

    child = asyncio.run(main())
    assert child.stdout.text == "so far\n"
    assert all_gone(tmp_path / "p")


def test_a_second_cancellation_ends_it_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        script = "trap '' TERM; echo $$ > p; while :; do sleep 60; done"
        child = Child(["sh", "-c", script], cwd=tmp_path, env=ENV)
        task = asyncio.create_task(child.run())
        await until(tmp_path / "p")
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()
        task.cancel()
        await asyncio.sleep(0)
        assert task.cancelled()

    asyncio.run(main())
    assert all_gone(tmp_path / "p")


def test_a_loop_that_is_closed_in_the_middle_leaves_no_process(tmp_path: Path) -> None:
    async def main() -> None:
        script = "echo $$ > p; sleep 60"
        task = asyncio.create_task(run(["sh", "-c", script], cwd=tmp_path, env=ENV))
        await until(tmp_path / "p")
        assert not task.done()

    asyncio.run(main())
    assert all_gone(tmp_path / "p")


def test_output_without_end_costs_constant_memory() -> None:
    done = shell("yes 0123456789abcde | head -c 64000000; echo end", max_output=1000)
    assert done.stdout.startswith("0123456789abcde\n")
    assert done.stdout.endswith("0123456789abcde\nend\n")
    assert len(done.stdout) < 1100
    assert done.left_out == 64_000_004 - 1000
    assert f"[… {done.left_out} bytes are left out here …]" in done.stdout


def test_output_within_the_bound_is_whole() -> None:
    assert shell("printf 1234567890", max_output=10).stdout == "1234567890"
    assert shell("printf 12345678901", max_output=10).left_out == 1


def test_why_a_program_can_not_be_started(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("echo x", encoding="utf-8")
    (tmp_path / "lost").write_text("#!/no/such/interpreter\n", encoding="utf-8")
    (tmp_path / "lost").chmod(0o755)
    assert reason(["no-such-auditor-here", "x"]) == (
        '"no-such-auditor-here" can\'t be started: there is no such program in the PATH'
    )
    assert reason(["./nothing"], tmp_path).endswith("there is no such program")
    assert "may not be executed" in reason(["./plain"], tmp_path)
    assert "interpreter" in reason(["./lost"], tmp_path)
    assert "folder" in reason(["/tmp"])
    assert f"no folder {tmp_path}/gone" in reason(["true"], tmp_path / "gone")
    (tmp_path / "plain").chmod(0o755)
    assert "#!" in reason(["./plain"], tmp_path)
    assert "null byte" in reason(["echo", "a\0b"])
    assert "too long" in reason(["echo", "x" * 3_000_000])
    assert "no program" in reason([])
    assert "no program" in reason([""])


def test_sixty_four_run_at_once() -> None:
    async def main() -> list[Finished]:
        calls = [
            run(["sh", "-c", f"sleep 0.2; echo {n}; echo e{n} >&2"], cwd=Path("/"), env=ENV)
            for n in range(64)
        ]
        return await asyncio.gather(*calls)

    before = len(os.listdir("/proc/self/fd"))
    assert [d.stdout.strip() for d in asyncio.run(main())] == [str(n) for n in range(64)]
    assert len(os.listdir("/proc/self/fd")) == before


def test_it_works_in_a_loop_of_another_thread() -> None:
    found: list[Finished] = []
    thread = threading.Thread(target=lambda: found.append(shell("echo x")))
    thread.start()
    thread.join()
    assert found[0].stdout == "x\n"


def test_a_childs_environment_has_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "DEMO_KEY": "robin-0815",
        "COPY": "Bearer robin-0815",
        "SHORT": "12",
        "OTHER": "stays 12",
    }.items():
        monkeypatch.setenv(name, value)
    env = environment_of(
        os.environ,
        bare=False,
        secret_names=["DEMO_KEY"],
        secret_values=["robin-0815", "12", ""],
    )
    assert not {"DEMO_KEY", "COPY", "SHORT"} & set(env)
    assert env["OTHER"] == "stays 12"
    assert env["PATH"] == os.environ["PATH"]


def test_a_bare_environment_has_what_any_program_needs_alone() -> None:
    given = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "LD_PRELOAD": "x.so", "A_TOKEN": "t"}
    env = environment_of(given, bare=True, secret_values=["/root/"])
    assert env == {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C"}
    assert environment_of(given, bare=True, secret_names=["HOME"]).keys() == {"PATH", "LC_ALL"}


def test_a_program_of_the_specs_folder(tmp_path: Path) -> None:
    assert program_path("./a.sh", tmp_path) == str(tmp_path / "a.sh")
    assert program_path("../a.sh", tmp_path) == str(tmp_path.parent / "a.sh")
    assert program_path("git", tmp_path) == "git"
    assert program_path("/bin/sh", tmp_path) == "/bin/sh"


LEAVING = """\
import asyncio, os, sys
from pathlib import Path
from runner.guardian import GUARDIAN, temporary_folder
from runner.process import run

async def main():
    await run(["true"], cwd=Path("."), env=dict(os.environ))
    # In the group, and out of it.
    script = (
        "sleep 60 & echo $! > a.part; setsid sleep 60 & sleep 0.1; "
        "echo $! >> a.part; mv a.part numbers;" + sys.argv[1]
    )
    with temporary_folder("kept-") as folder:
        Path(folder, "x").mkdir()
        Path("folder").write_text(str(folder))
        await run(["sh", "-c", script], cwd=Path("."), env=dict(os.environ))

asyncio.run(main())
"""


@pytest.mark.parametrize("is_killed", [True, False])
def test_nothing_outlives_this_process(tmp_path: Path, is_killed: bool) -> None:
    end = "sleep 60" if is_killed else "exit"
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", LEAVING, end], cwd=tmp_path, env=env)
    numbers = tmp_path / "numbers"
    while not numbers.exists():
        time.sleep(0.01)
    if is_killed:
        process.kill()
    process.wait()
    assert all_gone(numbers)
    folder = Path((tmp_path / "folder").read_text("utf-8"))
    while folder.exists():
        time.sleep(0.01)


def test_what_has_no_mark_outlives_this_process(tmp_path: Path) -> None:
    code = LEAVING.replace("setsid", f"env -u {NAME} setsid")
    subprocess.run([sys.executable, "-c", code, "exit"], cwd=tmp_path, check=True)
    _, left = map(int, (tmp_path / "numbers").read_text("utf-8").split())
    time.sleep(0.3)
    assert is_alive(left)
    os.kill(left, signal.SIGKILL)
