"""Programs in a sandbox of bubblewrap (``bwrap``): they read all and write to the workspace alone.

There is no network but a loopback of its own, no process of others is seen, ``/tmp`` is empty and
private, and what is started ends with who started it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

PROGRAM = "bwrap"
_EMPTY = ("/tmp", "/run")
"""Folders of which nothing is seen: others' files, and the sockets of this machine's servers."""
MISSING = (
    f"the sandbox needs bubblewrap, and there is no program {PROGRAM} in the PATH; install it (the "
    "package is called bubblewrap), or take `sandbox` away"
)


def is_there() -> bool:
    """Whether the program is installed."""
    return shutil.which(PROGRAM) is not None


def confine(
    workspace: Path, *, read_only: bool, also_read: Callable[[], Iterable[Path]]
) -> Callable[[Sequence[str]], list[str]]:
    """What makes an argv that runs another one in a sandbox.

    Args:
        workspace: The folder that can be written to, and in which the program starts.
        read_only: Whether that can only be read too.
        also_read: Gives folders that can be read also where they are in one that is empty.
    """
    folder = str(workspace)

    def confined(argv: Sequence[str]) -> list[str]:
        bound: list[str] = []
        for more in map(str, also_read()):
            if more.startswith(tuple(f"{empty}/" for empty in _EMPTY)):
                bound += ["--ro-bind", more, more]
        bound += ["--ro-bind" if read_only else "--bind", folder, folder]
        return [
            *(PROGRAM, "--unshare-all", "--die-with-parent"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *(word for empty in _EMPTY for word in ("--tmpfs", empty)),
            *bound,
            *("--chdir", folder, "--", *argv),
        ]

    return confined
