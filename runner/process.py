"""Child processes: started without a shell, bounded in time and output, and never left behind.

A child has its own session, so that it and all that it started can be ended together: asked first
(SIGTERM), and after a moment made to (SIGKILL). That is done however a child ends, also when it
ends by itself: what it left running in the background ends with it. `runner.guardian` does it where
this process is killed, and at this process's end for what left its session. Text is UTF-8 in any
locale.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from runner.captured import Captured
from runner.error import RunError
from runner.guardian import GUARDIAN

MAX_OUTPUT = 1 << 20
"""Bytes that are kept of what a child says, where nothing else is asked for."""
_CHUNK = 1 << 16
"""Bytes of one read: what a pipe holds on Linux."""
_PIPE_MAX = 1 << 20
"""Bytes that a pipe holds at most."""
_GRACE = 0.5
"""Seconds between asking a group to end and making it."""
_FIRST_STEP = 0.01
"""Seconds between the first two looks at whether a group is gone; twice that to the next."""
_SHORT_SECRET = 6
"""A secret shorter than this is looked for as a whole value only: `1` stands in many a path."""
PLAIN = frozenset(
    (
        *("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "HOME", "LANG", "LANGUAGE", "LOGNAME"),
        *("NODE_EXTRA_CA_CERTS", "PATH", "REQUESTS_CA_BUNDLE", "SHELL", "SSL_CERT_DIR"),
        *("SSL_CERT_FILE", "TERM", "TMPDIR", "TZ", "USER"),
    )
)
"""Variables that any program may need, and that are meant for all."""
PLAIN_PREFIXES = ("LC_", "XDG_")
"""What others begin with."""


class StartError(RunError):
    """A program could not be started.

    Attributes:
        program: What was to be started.
        reason: Why not.
    """

    def __init__(self, program: str, reason: str) -> None:
        super().__init__(f'"{program}" can\'t be started: {reason}')
        self.program = program
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of a child."""

    exit_code: int
    """As the child gave it; ``-N`` where signal N ended it."""
    stdout: str
    stderr: str
    left_out: int
    """Bytes of output that were read and not kept."""
    timed_out: bool
    """Whether it was ended because its time was up."""


def environment_of(
    environ: Mapping[str, str],
    *,
    bare: bool,
    secret_names: Collection[str] = (),
    secret_values: Collection[str] = (),
) -> dict[str, str]:
    """What a child has of an environment: nothing that is secret.

    Args:
        environ: The environment.
        bare: Whether it has but the few variables that any program needs (`PLAIN`, and those that
            begin with one of `PLAIN_PREFIXES`).
        secret_names: Variables that hold a secret.
        secret_values: Secrets. A variable that contains one is left out.
    """
    values = [v for v in secret_values if len(v) >= _SHORT_SECRET]
    short = {v for v in secret_values if v}
    return {
        name: value
        for name, value in environ.items()
        if not (bare and name not in PLAIN and not name.startswith(PLAIN_PREFIXES))
        and name not in secret_names
        and value not in short
        and not any(secret in value for secret in values)
    }


def program_path(program: str, folder: Path) -> str:
    """A program as a spec names it: one that begins with ``./`` or ``../`` is in the folder."""
    return str((folder / program).resolve()) if program.startswith(("./", "../")) else program


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    time_limit: float | None = None,
    max_output: int = MAX_OUTPUT,
) -> Finished:
    """Run a program to its end, or for ``time_limit`` seconds; see `Child`.

    Raises:
        StartError: if it can't be started.
    """
    child = Child(argv, cwd=cwd, env=env, stdin=stdin, max_output=max_output)
    return await child.run(time_limit)


class Child:
    """A program that is run once, and what it says.

    Args:
        argv: The program and its arguments; a program without ``/`` is looked for in the
            ``PATH`` of ``env``.
        cwd: Where it runs.
        env: All of its environment, but for the variable by which `runner.guardian` knows it.
        stdin: What it reads; where this is empty, so is its stdin.
        max_output: Bytes that are kept of its stdout, and as many of its stderr.
        merged: Whether what it says on stderr is taken as said on stdout, in the order of both.
    """

    _process: subprocess.Popen[bytes]

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        max_output: int = MAX_OUTPUT,
        merged: bool = False,
    ) -> None:
        self.stdout = Captured(max_output)
        self.stderr = Captured(max_output)
        self._argv = argv
        self._cwd = cwd
        self._env = env
        self._stdin = memoryview(stdin)
        self._merged = merged
        self._loop = asyncio.get_running_loop()
        self._open: dict[IO[bytes], Captured] = {}
        self._exited = asyncio.Event()
        self._silent = asyncio.Event()
        self._group_is_gone = False

    async def run(self, time_limit: float | None = None) -> Finished:
        """Run it to its end, or for ``time_limit`` seconds.

        When this returns or raises, the child and its group are gone and its pipes are closed.
        When it is cancelled it ends them first, then raises; `stdout` and `stderr` hold what was
        said until then.

        Raises:
            StartError: if it can't be started.
        """
        self._process = start(
            self._argv, self._cwd, self._env, has_input=bool(self._stdin), merged=self._merged
        )
        timed_out = False
        try:
            self._connect()
            self._watch()
            async with asyncio.timeout(time_limit):
                await self._exited.wait()
        except TimeoutError:
            timed_out = True
        finally:
            await self._end()
        code = self._process.returncode
        return Finished(
            exit_code=-signal.SIGKILL if code is None else code,
            stdout=self.stdout.text,
            stderr=self.stderr.text,
            left_out=self.stdout.left_out + self.stderr.left_out,
            timed_out=timed_out,
        )

    def _connect(self) -> None:
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdout is not None
        self._open = {stdout: self.stdout}
        if stderr is not None:
            self._open[stderr] = self.stderr
        for pipe in self._open:
            os.set_blocking(pipe.fileno(), False)
            self._loop.add_reader(pipe.fileno(), self._read, pipe)
        if stdin is not None:
            os.set_blocking(stdin.fileno(), False)
            self._loop.add_writer(stdin.fileno(), self._write, stdin)

    # --- the end ----------------------------------------------------------------------------------

    async def _end(self) -> None:
        """End the group and let go of all that is held; without patience if cancelled here."""
        deadline = time.monotonic() + _GRACE
        try:
            self._signal(signal.SIGTERM)
            await _within(_GRACE, self._exited)
            self._reap()
            # Nothing tells of the end of a group: it has to be looked for.
            step = _FIRST_STEP
            group = self._process.pid
            while self._signal(0) and group_lives(group) and time.monotonic() < deadline:
                await asyncio.sleep(step)
                step *= 2
            self._signal(signal.SIGKILL)
            await _within(_GRACE, self._exited)
            self._reap()
            # Only one that left the group can still hold a pipe, and may do so for ever.
            await _within(_GRACE, self._silent)
        finally:
            self._signal(signal.SIGKILL)
            self._close()
            GUARDIAN.release(self._process.pid)

    def _signal(self, number: int) -> bool:
        """Send a signal to the group; whether there is one.

        The number of a group is free for others once all of it is gone and reaped, so after that
        nothing is sent.
        """
        if not self._group_is_gone:
            try:
                os.killpg(self._process.pid, number)
            except (ProcessLookupError, PermissionError):
                self._group_is_gone = True
        return not self._group_is_gone

    def _reap(self) -> None:
        if self._exited.is_set():
            self._process.wait()

    def _close(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        for pipe, captured in list(self._open.items()):
            # What is in the pipe was said in time, however late this loop comes to read it.
            for _ in range(_PIPE_MAX // _CHUNK):
                if not (data := pipe.read(_CHUNK)):
                    break
                captured.add(data)
            self._drop(pipe)
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._close_stdin(self._process.stdin)

    def _watch(self) -> None:
        """Learn of the child's end."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                # Readable at the end, with nothing reaped: until then its number is its own.
                fd = os.pidfd_open(self._process.pid)
                self._loop.add_reader(fd, self._on_exit, fd)
                return
        threading.Thread(target=self._wait_in_thread, daemon=True).start()

    def _on_exit(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        os.close(fd)
        self._exited.set()

    def _wait_in_thread(self) -> None:
        self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._exited.set)

    # --- the pipes --------------------------------------------------------------------------------

    def _read(self, pipe: IO[bytes]) -> None:
        data = pipe.read(_CHUNK)
        if data:
            self._open[pipe].add(data)
        elif data is not None:
            self._drop(pipe)

    def _drop(self, pipe: IO[bytes]) -> None:
        del self._open[pipe]
        self._loop.remove_reader(pipe.fileno())
        pipe.close()
        if not self._open:
            self._silent.set()

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            written = pipe.write(self._stdin[:_CHUNK])
        except BrokenPipeError:  # it reads no more, which is its own affair
            written = len(self._stdin)
        self._stdin = self._stdin[written or 0 :]
        if not self._stdin:
            self._close_stdin(pipe)

    def _close_stdin(self, pipe: IO[bytes]) -> None:
        self._loop.remove_writer(pipe.fileno())
        pipe.close()


def group_lives(group: int) -> bool:
    """Whether a group has more than dead members that nobody reaped.

    An orphan is reaped by process 1, which in many a container does so late or never.
    """
    try:
        numbers = [n for n in os.listdir("/proc") if n.isdecimal()]
    except OSError:
        return True
    for number in numbers:
        try:
            stat = Path(f"/proc/{number}/stat").read_bytes()
        except OSError:  # gone since
            continue
        # After the name, which may hold anything: state, parent, group.
        state, _, of = stat.rpartition(b")")[2].split()[:3]
        if int(of) == group and state not in b"ZX":
            return True
    return False


async def _within(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def start(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    has_input: bool,
    merged: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, with pipes and without a shell.

    The guardian knows of it; `GUARDIAN.release` is for who ends it.

    Args:
        argv: The program and its arguments.
        cwd: Where it runs.
        env: All of its environment, but for the variable by which `runner.guardian` knows it.
        has_input: Whether its stdin is a pipe; else it is empty.
        merged: Whether what it says on stderr comes by stdout too.

    Raises:
        StartError: if it can't be started.
    """
    if not argv or not argv[0]:
        raise StartError(" ".join(argv), "the command names no program")
    all_of_it = {**env, **GUARDIAN.mark()}
    try:
        child = subprocess.Popen(
            [_utf8(item) for item in argv],
            cwd=cwd,
            env={_native(name): _native(value) for name, value in all_of_it.items()},
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except ValueError as error:
        raise StartError(argv[0], f"{error} in its arguments or environment") from error
    except OSError as error:
        raise StartError(argv[0], _why(error, argv[0], cwd)) from error
    GUARDIAN.watch(child.pid)
    return child


def _utf8(text: str) -> bytes:
    """Text as a child reads it; a lone surrogate that stands for no byte of a path is U+FFFD."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _native(text: str) -> bytes:
    """Text of the environment, byte for byte as this process got it."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return _utf8(text)


def _why(error: OSError, program: str, cwd: Path) -> str:
    """Why the system would not start a program."""
    path = cwd / program if "/" in program else None
    if not cwd.is_dir():
        return f"there is no folder {cwd} to run it in"
    if isinstance(error, FileNotFoundError):
        if path is not None and path.exists():
            return f"{path} is there, but not the interpreter that its first line names"
        return f"there is no such program{'' if path else ' in the PATH'}"
    if isinstance(error, PermissionError):
        if path is not None and path.is_dir():
            return "it is a folder"
        return "it may not be executed; is `chmod +x` missing?"
    if error.errno == errno.ENOEXEC:
        return "it is neither a program nor a script that begins with #!"
    return (error.strerror or str(error)).lower()
