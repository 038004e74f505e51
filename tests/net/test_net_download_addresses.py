"""Which addresses belong to the open internet."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.net.download import is_public, resolve

PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "192.0.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "not an address",
    "",
    "2130706433",
]
PUBLIC = ["8.8.8.8", "104.16.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_inside_somebodys_network_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_open_internet_is_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_property_a_translated_address_is_judged_as_what_it_leads_to(
    address: ipaddress.IPv4Address,
) -> None:
    translations = [
        f"::ffff:{address}",
        str(ipaddress.IPv6Address((0x0064_FF9B << 96) | int(address))),
        str(ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80))),
    ]
    assert [is_public(one) for one in translations] == [is_public(str(address))] * 3


async def test_names_are_looked_up_as_the_system_does() -> None:
    assert "127.0.0.1" in await resolve("localhost", 443)
