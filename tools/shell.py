"""The built-in tool ``shell``."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time

from runner import ToolContext, ToolResult, tool

KEPT = 25_000
"""Bytes of the output's beginning, and of its end, that are kept."""
GRACE = 0.5
"""Seconds between asking a command to end and making it."""
STEP = 0.05
"""Seconds between two looks at whether to stop."""


@tool(timeout=120)
def shell(command: str, context: ToolContext) -> ToolResult:
    """Run a command by sh in the workspace. Gives what it prints, stdout and stderr together.

    It reads nothing from stdin. What it leaves running in the background is ended with it.

    Args:
        command: The command line.
        context: The call.
    """
    try:
        process = subprocess.Popen(
            ["sh", "-c", command],
            cwd=context.workspace,
            env=dict(context.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return ToolResult(f"The command can't be run: {error}", is_error=True)
    output = Output()
    with process:
        assert process.stdout is not None
        try:
            follow(process, process.stdout.fileno(), output, context)
        finally:
            end(process, process.stdout.fileno(), output)
    return result(process.returncode, output)


class Output:
    """The beginning and the end of what is printed."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take what was printed next."""
        self.total += len(data)
        room = KEPT - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        if len(self.tail) > 4 * KEPT:
            del self.tail[:-KEPT]

    def text(self) -> str:
        """What was kept, with a note on what was not."""
        left = self.total - len(self.head) - min(len(self.tail), KEPT)
        if not left:
            return bytes(self.head + self.tail).decode(errors="replace")
        head, tail = self.head.decode(errors="replace"), self.tail[-KEPT:].decode(errors="replace")
        return f"{head}\n[… {left} bytes are left out here …]\n{tail}"


def follow(
    process: subprocess.Popen[bytes], pipe: int, output: Output, context: ToolContext
) -> None:
    """Read what a command prints until it ends, or is to be stopped."""
    os.set_blocking(pipe, False)
    is_open = True
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while not context.cancelled:
            if is_open and ready.select(STEP):
                is_open = read(pipe, output)
                if not is_open:
                    ready.unregister(pipe)
            elif has_ended(process, 0 if is_open else STEP):
                return


def has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a command ended, waiting for it so long. It stays unreaped: its number is its own."""
    deadline = time.monotonic() + seconds
    while True:
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        if os.waitid(os.P_PID, process.pid, how) is not None:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(STEP / 25)


def read(pipe: int, output: Output) -> bool:
    """Read what is there; whether more can come."""
    try:
        data = os.read(pipe, 1 << 16)
    except BlockingIOError:
        return True
    output.add(data)
    return bool(data)


def end(process: subprocess.Popen[bytes], pipe: int, output: Output) -> None:
    """End a command and all that it started, and read what was printed last."""
    if not has_ended(process, 0):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        has_ended(process, GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with contextlib.suppress(BlockingIOError):
        for _ in range(16):  # what a pipe holds; one that left the group may print for ever
            data = os.read(pipe, 1 << 16)
            output.add(data)
            if not data:
                break


def result(exit_code: int, output: Output) -> ToolResult:
    """What a command printed, and how it failed if it did."""
    text = output.text()
    if exit_code == 0:
        return ToolResult(text, {"exit_code": 0})
    how = f"exit code {exit_code}" if exit_code > 0 else f"signal {-exit_code}"
    said = f"{text.rstrip()}\n" if text.strip() else ""
    return ToolResult(f"{said}It ended with {how}.", {"exit_code": exit_code}, is_error=True)
