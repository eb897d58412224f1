"""Which addresses a model may have a program on this machine connect to.

A server on this machine or in its network trusts who can reach it, and a model's reader may be told
by any web page what to ask for. So an address has to be one of the public internet, whatever way it
is written in and whatever name leads to it.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from fnmatch import fnmatchcase

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All that is given out of IPv6; a network's own addresses, and translators, lie elsewhere."""
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))
"""Registered for protocols, relays and examples by RFC 6890 and 9637."""
# A number of any base as the last label: the system would read the whole as an IPv4 address.
_NUMERIC = re.compile(r"(?:.*\.)?(?:0[xX][0-9a-fA-F]*|\d+)\.?")


class RefusedAddressError(ValueError):
    """An address that a model may not have connected to; says why."""


class AddressGuard:
    """Holds hosts against what may be connected to.

    Args:
        allow_private: Whether all addresses may.
        allow_hosts: Patterns of hosts, with a port or without, that may whatever they lead to.
    """

    def __init__(self, *, allow_private: bool = False, allow_hosts: Sequence[str] = ()) -> None:
        self._allow_private = allow_private
        self._allow_hosts = [each.lower() for each in allow_hosts]

    def allows_all(self, host: str, port: int) -> bool:
        """Whether a host may be connected to whatever it leads to."""
        names = (host.lower(), f"{host.lower()}:{port}")
        return self._allow_private or any(
            fnmatchcase(name, pattern) for name in names for pattern in self._allow_hosts
        )

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a host, all of which may be connected to.

        Raises:
            RefusedAddressError: where one of them may not, or there is none.
        """
        allowed = self.allows_all(host, port)
        if not allowed and _NUMERIC.fullmatch(host) and not _is_plain(host):
            raise RefusedAddressError(
                f"{host} is an address in a form that hides what it is; write it as 1.2.3.4"
            )
        found = await _resolved(host, port)
        for address in () if allowed else found:
            if why := refused(address):
                via = "" if address == host else f" leads to {address}, which"
                raise RefusedAddressError(f"{host}{via} is {why}, and may not be fetched")
        return found


def refused(address: str) -> str | None:
    """What an address is that may not be connected to; None if it may."""
    for each in _meant(ipaddress.ip_address(address.partition("%")[0])):
        if each.is_loopback:
            return "this machine"
        if each.is_multicast or not each.is_global or _is_special(each):
            return "no address of the public internet"
    return None


def _is_special(address: Address) -> bool:
    """Whether it has a use of its own that not every version of Python knows."""
    if address.version == 6 and address not in _UNICAST:
        return True
    return any(address in network for network in _SPECIAL if network.version == address.version)


def _meant(address: Address) -> list[Address]:
    """An address and those that it stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    low = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _NAT64:
        return [low]
    meant: list[Address] = [address]
    if address.sixtofour is not None:
        meant.append(address.sixtofour)
    if address.teredo is not None:
        meant.append(address.teredo[1])
    if address in _COMPATIBLE:
        meant.append(low)
    return meant


def _is_plain(host: str) -> bool:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


async def _resolved(host: str, port: int) -> list[str]:
    from runner.thread import call_in_thread

    try:
        found = await call_in_thread(
            lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), f"look up {host}"
        )
    except (OSError, UnicodeError) as error:
        raise RefusedAddressError(f"there is no host {host!r:.200}: {_why(error)}") from error
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def _why(error: OSError | UnicodeError) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
