"""Ends what this process left where it is killed itself, and can end nothing any more.

A shell of a few lines, in a session of its own, reads from a pipe that this process alone writes to
which process groups and temporary folders there are. When the pipe ends, so has this process: what
is left is killed, then removed. It is started for the first of them.

A group is told only once its first process runs, and a process can leave it. So each child also has
a variable in its environment that no other process's have, and so has what it starts: all that have
it are killed too, also where this process ends well. A child that is just being started may have
let go of the pipe and not yet have that variable, so they are looked for again a moment later.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

NAME = "PI_RUN_CHILD_OF"
"""The variable that all children have, and theirs: one without it outlives this process."""
_SHELL = "/bin/sh"
# What is held stands between blanks, and none of it has one. A process that is killed may have
# started another one meanwhile, so they are looked for until there is none, within reason. Not
# every `sleep` knows fractions.
_SCRIPT = """\
trap '' HUP INT TERM
held=
while read -r what name; do
  case $what in
    +) held="$held $name " ;;
    -) case $held in
         *" $name "*) held="${held%%" $name "*}${held#*" $name "}" ;;
       esac ;;
  esac
done
exec 2>/dev/null
for each in $held; do
  case $each in
    /*) ;;
    *) kill -s KILL -- "-$each" ;;
  esac
done
for pause in 0 0.1 0.4; do
  sleep $pause || sleep 1
  for round in 1 2 3 4 5 6 7 8 9 10; do
    found=$(grep -lsF -- "$1" /proc/[0-9]*/environ)
    [ -n "$found" ] || break
    for each in $found; do
      each=${each#/proc/}
      kill -s KILL "${each%/environ}"
    done
  done
  for each in $held; do
    case $each in
      /*) rm -rf -- "$each" ;;
    esac
  done
done
"""
_PLAIN = re.compile(r"/[\w./-]+", re.ASCII)
"""A path that is one word to a shell, whatever it does with it."""


class Guardian:
    """Tells the shell what there is, and starts it."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        self._mark = ""

    def mark(self) -> Mapping[str, str]:
        """What the environment of a child has to have, which is started after this."""
        self._begin()
        return {NAME: self._mark}

    def watch(self, group: int) -> None:
        """Have a group of processes killed if this process is."""
        self._begin()
        self._tell(f"+ {group}\n")

    def release(self, group: int) -> None:
        """Forget a group, whose number may be another's from now on."""
        self._tell(f"- {group}\n")

    def watch_folder(self, folder: Path) -> None:
        """Have a folder removed, with all that is in it, if this process is killed."""
        self._begin()
        if _PLAIN.fullmatch(str(folder)):
            self._tell(f"+ {folder}\n")

    def release_folder(self, folder: Path) -> None:
        """Forget a folder, which is gone."""
        if _PLAIN.fullmatch(str(folder)):
            self._tell(f"- {folder}\n")

    def forget(self) -> None:
        """Have nothing to do with what another process started, of which this is a copy."""
        self._mark = ""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _begin(self) -> None:
        self._mark = self._mark or f"{os.getpid()}-{os.urandom(8).hex()}"
        if self._pipe is None:
            # Without it all else works, so that is no reason to start no child.
            with contextlib.suppress(OSError, AttributeError, NotImplementedError):
                self._pipe = _start(f"{NAME}={self._mark}")

    def _tell(self, line: str) -> None:
        if self._pipe is None:
            return
        try:
            os.write(self._pipe, line.encode("ascii"))
        except BlockingIOError:  # it was stopped, and reads no more
            pass
        except OSError:  # it was killed
            os.close(self._pipe)
            self._pipe = None


def _start(mark: str) -> int:
    reads, writes = os.pipe()
    try:
        os.set_blocking(writes, False)
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.posix_spawn(
                _SHELL,
                [_SHELL, "-c", _SCRIPT, _SHELL, mark],
                {"PATH": os.environ.get("PATH", os.defpath)},
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


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A new folder of the system's temporary one, which is gone after this, or after a kill."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix=prefix))
    GUARDIAN.watch_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        GUARDIAN.release_folder(folder)
