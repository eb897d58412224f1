"""Keeps a person's code in a replay from the network, from programs and from tools.

What only runs again to be compared must have no effect, and depend on nothing that is not in the
log. Python tells of each such attempt before it is made (PEP 578); whoever makes one gets an error,
and the replay ends with it, even where it was swallowed.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import CodeType
from typing import Any

from runner.error import HookError
from runner.python_file import file_of


class Offline:
    """What a replay allows to nobody."""

    def __init__(self) -> None:
        self._tools: set[str] = set()
        self._hooks: set[str] = set()
        self.attempt: HookError | None = None
        """The first one that was made."""

    def forbid(self, target: str, folder: Path) -> None:
        """Have the file of a tool not be loaded."""
        self._tools.add(str(file_of(target, folder)))

    def allow(self, target: str, folder: Path) -> None:
        """Let the file of a hook be loaded, whatever tools are in it too."""
        self._hooks.add(str(file_of(target, folder)))

    @contextmanager
    def guarding(self, who: str) -> Iterator[None]:
        """Hold what is done here, and in threads and tasks that begin here, to it.

        Args:
            who: What works here, as it is called in an error.
        """
        _install()
        token = _here.set((self, who))
        try:
            yield
        finally:
            _here.reset(token)

    def check(self) -> None:
        """Tell the first attempt.

        Raises:
            HookError: if there was one.
        """
        if self.attempt is not None:
            raise self.attempt

    def see(self, who: str, event: str, args: tuple[Any, ...]) -> None:
        """Look at what is about to be done.

        Raises:
            HookError: if it must not be.
        """
        what = self._imported(args) if event == "exec" else _FORBIDDEN[event](*args)
        if what is not None:
            error = HookError(
                f"{who} tried to {what} in a replay, which has neither network, programs nor tools"
            )
            self.attempt = self.attempt or error
            raise error

    def _imported(self, args: tuple[Any, ...]) -> str | None:
        file = args[0].co_filename if isinstance(args[0], CodeType) else None
        if file in self._tools and file not in self._hooks:
            return f"import the tools of {file}"
        return None


_here: ContextVar[tuple[Offline, str] | None] = ContextVar("offline", default=None)


def _open(_: Any, family: int, *__: Any) -> str | None:
    # An event loop talks to itself by a pair of sockets that lead nowhere.
    return None if family == getattr(socket, "AF_UNIX", None) else "open a socket"


def _reach(_: Any, address: Any) -> str:
    return f"connect to {address!r:.100}"


def _resolve(host: Any, *_: Any) -> str:
    return f"look up the host {host!r:.100}"


def _start(program: Any = None, *_: Any) -> str:
    return f"start the program {program!r:.100}"


def _fork(*_: Any) -> str:
    return "start a process"


_FORBIDDEN: dict[str, Callable[..., str | None]] = {
    "socket.__new__": _open,
    "socket.connect": _reach,
    "socket.bind": _reach,
    "socket.sendto": _reach,
    "socket.sendmsg": _reach,
    "socket.getaddrinfo": _resolve,
    "socket.gethostbyname": _resolve,
    "socket.gethostbyaddr": _resolve,
    "subprocess.Popen": _start,
    "os.system": _start,
    "os.exec": _start,
    "os.posix_spawn": _start,
    "os.spawn": lambda _, program, *__: _start(program),
    "os.startfile": _start,
    "os.fork": _fork,
    "os.forkpty": _fork,
}
_installed = False


def _install() -> None:
    """Be told of attempts from now on; a process is never rid of that again."""
    global _installed
    if not _installed:
        sys.addaudithook(_audit)
        _installed = True


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event not in _FORBIDDEN and event != "exec":
        return
    here = _here.get()
    if here is not None:
        offline, who = here
        offline.see(who, event, args)
