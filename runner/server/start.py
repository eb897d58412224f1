"""From what a command was told to a server that runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner import api
from runner.error import UsageError
from runner.log.place import FOLDER
from runner.server.access import Access, is_local
from runner.server.hosting import Bounds, Hosting
from runner.server.listening import listen, port_of, url_of
from runner.server.serving import Signals, serve
from runner.server.spec import compile_specs
from runner.thread import run_in_loop

_SHORTEST = 16
"""Characters of a token where others than this machine may guess at it."""


@dataclass(slots=True, frozen=True)
class Wanted:
    """How a server is to be."""

    host: str
    """The address that it listens on."""
    port: int
    """0: one that is free."""
    token: str | None
    """What clients have to know; None: one is made."""
    names: Sequence[str]
    """More names that it is called by."""
    bounds: Bounds
    grace: float
    """Seconds that runs have to end by themselves when it is stopped."""
    logs: str | None
    """The folder of logs; None for the usual one."""
    verbose: bool
    """Whether bugs are told with their tracebacks."""


def start(
    specs: Sequence[str], options: api.RunOptions, wanted: Wanted, say: Callable[[str], None]
) -> int:
    """Serve specs until a signal comes; gives the exit code.

    Args:
        specs: Their files.
        options: How they are run.
        wanted: How they are served.
        say: Tells a line to who started it.

    Raises:
        SpecError: with all that is wrong with the specs; nothing is served.
        UsageError: where they can't be served like that.
    """
    host = wanted.host.strip("[]")
    token = _token(wanted.token, host)
    served = compile_specs(specs, options)
    folder = Path(wanted.logs) if wanted.logs else FOLDER
    hosting = Hosting(served, wanted.bounds, folder, verbose=wanted.verbose)
    listening = listen(host, wanted.port)
    access = Access(token, host, port_of(listening), wanted.names)
    with Signals() as signals, listening:
        say(f"serving {', '.join(served) or 'no spec'} at {url_of(listening)}")
        if wanted.token is None:
            # What stands after the # is not sent: the login page takes it from the address.
            say(f"token: {token}")
            say(f"open {url_of(listening)}login#{token}")
        if not is_local(host):
            say("others can reach it, and what is sent is not encrypted")
        run_in_loop(serve(hosting, access, listening, signals, grace=wanted.grace, say=say))
    return 0 if signals.received is None else 128 + signals.received


def _token(given: str | None, host: str) -> str:
    if given is None:
        return secrets.token_urlsafe(32)
    if not given or not all("!" <= char <= "~" for char in given):
        raise UsageError(
            "the token has to be of visible ASCII characters, without spaces; leave it out, and "
            "one is made"
        )
    if len(given) < _SHORTEST and not is_local(host):
        raise UsageError(
            f"others can reach {host}, so a token needs {_SHORTEST} characters; leave it out, and "
            "one is made"
        )
    return given
