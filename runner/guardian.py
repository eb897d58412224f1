"""Ends the children of this process where it is killed itself, and can end nothing any more.

A shell of a few lines, in a session of its own, reads which process groups there are from a pipe
that this process alone writes to. When the pipe ends, so has this process: what is left is killed.
It is started for the first child.
"""

from __future__ import annotations

import contextlib
import os

_SHELL = "/bin/sh"
_SCRIPT = """\
trap '' HUP INT TERM
groups=
while read -r what group; do
  case $what in
    +) groups="$groups $group " ;;
    -) case $groups in
         *" $group "*) groups="${groups%%" $group "*}${groups#*" $group "}" ;;
       esac ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done 2>/dev/null
"""


class Guardian:
    """Tells the shell of groups, and starts it."""

    def __init__(self) -> None:
        self._pipe: int | None = None

    def watch(self, group: int) -> None:
        """Have a group of processes killed if this process is."""
        if self._pipe is None:
            # Without it all else works, so that is no reason to start no child.
            with contextlib.suppress(OSError, AttributeError, NotImplementedError):
                self._pipe = _start()
        self._tell(f"+ {group}\n")

    def release(self, group: int) -> None:
        """Forget a group, whose number may be another's from now on."""
        self._tell(f"- {group}\n")

    def forget(self) -> None:
        """Have nothing to do with what another process started, of which this is a copy."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _tell(self, line: str) -> None:
        if self._pipe is None:
            return
        try:
            os.write(self._pipe, line.encode("ascii"))
        except BlockingIOError:  # it was stopped, and reads no more
            pass
        except OSError:  # it was killed
            self.forget()


def _start() -> int:
    reads, writes = os.pipe()
    try:
        os.set_blocking(writes, False)
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.posix_spawn(
                _SHELL,
                [_SHELL, "-c", _SCRIPT],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reads, 0),
                    (os.POSIX_SPAWN_DUP2, nowhere, 1),
                    (os.POSIX_SPAWN_DUP2, nowhere, 2),
                ],
                setsid=True,
            )
        finally:
            os.close(nowhere)
    except BaseException:
        os.close(writes)
        raise
    finally:
        os.close(reads)
    return writes


GUARDIAN = Guardian()
"""The one of this process."""
os.register_at_fork(after_in_child=GUARDIAN.forget)
