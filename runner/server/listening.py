"""The address that a server listens on."""

from __future__ import annotations

import socket

from runner.error import UsageError

_BACKLOG = 1024
"""Connections that wait to be taken."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes one that is free.

    Raises:
        UsageError: where it can't listen there.
    """
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        # From here on who was told the address is answered, if not at once.
        listening.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or "it is no host"
        raise UsageError(
            f"can't listen on {host}, port {port}: {reason.lower()}; choose others with --host "
            "and --port, such as --port 0 for one that is free"
        ) from None
    return listening


def port_of(listening: socket.socket) -> int:
    """The port that it listens on."""
    port: int = listening.getsockname()[1]
    return port


def url_of(listening: socket.socket) -> str:
    """The address to open."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
