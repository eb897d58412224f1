"""Which addresses a model may have connected to."""

import asyncio
import socket
from typing import Any

import pytest

from runner.toolkit.address import AddressGuard, RefusedAddressError, refused

PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.8.9.10",
    "169.254.169.254",
    "172.16.0.1",
    "192.168.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "::ffff:0:127.0.0.1",
    "fec0::1",
    "100::1",
    "5f00::1",
    "3fff::1",
    "192.0.0.1",
    "192.88.99.1",
    "2002:7f00:1::",
    "2001:db8::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
]
PUBLIC = ["1.1.1.1", "93.184.216.34", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700::1111"]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused(address: str) -> None:
    assert refused(address) is not None


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_not(address: str) -> None:
    assert refused(address) is None


def ask(guard: AddressGuard, host: str) -> list[str]:
    return asyncio.run(guard.addresses(host, 80))


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "127.1",
        "017700000001",
        "0177.0.0.1",
        "0",
        "0x7f.0.0.1.",
    ],
)
def test_no_form_of_an_address_hides_it(host: str) -> None:
    with pytest.raises(RefusedAddressError):
        ask(AddressGuard(), host)


def test_names_are_what_they_lead_to() -> None:
    with pytest.raises(RefusedAddressError, match=r"localhost leads to .*this machine"):
        ask(AddressGuard(), "localhost")
    assert ask(AddressGuard(allow_private=True), "localhost")
    assert ask(AddressGuard(allow_hosts=["*host"]), "LOCALHOST")
    assert ask(AddressGuard(allow_hosts=["localhost:80"]), "localhost")
    with pytest.raises(RefusedAddressError):
        ask(AddressGuard(allow_hosts=["localhost:81", "*.localhost"]), "localhost")


def test_one_private_address_of_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: Any, **__: Any) -> list[Any]:
        return [(2, 1, 6, "", ("1.1.1.1", 80)), (2, 1, 6, "", ("127.0.0.1", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(RefusedAddressError):
        ask(AddressGuard(), "both.example")


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 300, "x..y", "\udcff"])
def test_what_is_no_host_is_told(host: str) -> None:
    with pytest.raises(RefusedAddressError, match="there is no host"):
        ask(AddressGuard(), host)
