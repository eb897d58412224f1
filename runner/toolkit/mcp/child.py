"""A server that is a child process: pipes that are read no faster than they are used, and its end.

Where this process is killed `runner.guardian` ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from runner.captured import Captured
from runner.guardian import GUARDIAN
from runner.process import group_lives, start

_CHUNK = 1 << 16
"""Bytes of one read."""
_KEPT = 1 << 14
"""Bytes that are kept of what it says on stderr."""
_PATIENCE = 1.0
"""Seconds that it has to end by itself once its stdin is closed."""
_GRACE = 0.5
"""Seconds between asking its group to end and making it."""
_LATE = 0.2
"""Seconds after its end in which what it said last is still read, whoever else holds its pipe."""
_STEP = 0.01
"""Seconds between the first two looks at whether its group is gone; twice that to the next."""


class ServerProcess:
    """A program that is talked to by its stdin and stdout, for as long as it is needed.

    Raises:
        StartError: if it can't be started.
    """

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self.stderr = Captured(_KEPT)
        self.ended = asyncio.Event()
        """Set when it has ended, by whatever cause."""
        self._loop = asyncio.get_running_loop()
        self._process = start(argv, cwd, env, has_input=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout
        self._stderr: IO[bytes] = self._process.stderr
        self._cut = False
        self._wake = asyncio.Event()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(self._stderr.fileno(), self._read_stderr)
        self._watch()

    @property
    def exit_code(self) -> int | None:
        """As it gave it; ``-N`` where signal N ended it; None before its end."""
        return self._process.poll()

    # --- talking ----------------------------------------------------------------------------------

    async def read(self) -> bytes:
        """What it says next on stdout; empty at the end. Called by one task at a time."""
        while not self._stdout.closed:
            try:
                data = self._stdout.read(_CHUNK)
            except OSError:
                break
            if data is not None:
                return data
            if self._cut:
                break
            await self._until_ready(self._stdout, writing=False)
        return b""

    async def write(self, data: bytes) -> None:
        """Say all of this to its stdin. Called by one task at a time.

        Raises:
            OSError: if it reads no more.
        """
        left = memoryview(data)
        while left:
            if self._stdin.closed:
                raise BrokenPipeError("its stdin is closed")
            written = self._stdin.write(left)
            if written is None:
                await self._until_ready(self._stdin, writing=True)
            else:
                left = left[written:]

    async def _until_ready(self, pipe: IO[bytes], *, writing: bool) -> None:
        ready = asyncio.Event() if writing else self._wake
        ready.clear()
        number = pipe.fileno()
        if writing:
            self._loop.add_writer(number, ready.set)
        else:
            self._loop.add_reader(number, ready.set)
        try:
            await ready.wait()
        finally:
            if not pipe.closed:
                if writing:
                    self._loop.remove_writer(number)
                else:
                    self._loop.remove_reader(number)

    def _read_stderr(self) -> None:
        try:
            data = self._stderr.read(_CHUNK)
        except OSError:
            data = b""
        if data:
            self.stderr.add(data)
        elif data is not None:
            self._loop.remove_reader(self._stderr.fileno())

    # --- the end ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Learn of its end."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                # Readable at the end, with nothing reaped: until then its number is its own.
                descriptor = os.pidfd_open(self._process.pid)
                self._loop.add_reader(descriptor, self._on_exit, descriptor)
                return
        threading.Thread(target=self._wait_in_thread, daemon=True).start()

    def _wait_in_thread(self) -> None:
        self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._on_exit, None)

    def _on_exit(self, descriptor: int | None) -> None:
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
        self.ended.set()
        # What it started may hold the pipe open for ever.
        self._loop.call_later(_LATE, self._cut_off)

    def _cut_off(self) -> None:
        self._cut = True
        self._wake.set()

    async def end(self) -> None:
        """End it and all that it started: asked by the end of its stdin, then told, then made."""
        try:
            self._stdin.close()
            await self._within(_PATIENCE)
            self._signal(signal.SIGTERM)
            await self._within(_GRACE)
            deadline = time.monotonic() + _GRACE
            step = _STEP
            while self._signal(0) and group_lives(self._process.pid):
                if time.monotonic() > deadline:
                    break
                await asyncio.sleep(step)
                step *= 2
        finally:
            self.kill()

    async def _within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()

    def _signal(self, number: int) -> bool:
        """Send a signal to its group; whether there is one."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def kill(self) -> None:
        """Make it end now, with its group, and let go of all that is held. May be called twice."""
        if self._stdout.closed:
            return
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        for pipe in (self._stdout, self._stderr):
            self._loop.remove_reader(pipe.fileno())
        self._read_stderr_rest()
        self._cut_off()
        for pipe in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(OSError):
                pipe.close()
        GUARDIAN.release(self._process.pid)

    def _read_stderr_rest(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._stderr.read(_CHUNK):
                self.stderr.add(data)
